// SPDX-License-Identifier: Apache-2.0
//! How rewriters find what they refer to, and take flows over from the configuration before.
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::sort;

use super::clocks::Clocks;
use super::mapper;
use super::rewriter::{Capacity, Input, Rewriter};
use super::spec::Spec;
use crate::flows::{At, Flow, FlowId, FlowTable};
use crate::prelude::*;

/// Elements that refer to each other for their capacity.
const MAX_REFERENCES: usize = 32;

impl Rewriter {
    /// The table of the element the capacity comes from.
    pub(super) fn shared_flows(
        ctx: &mut Context<'_>,
        name: &str,
    ) -> Result<Rc<RefCell<FlowTable>>, String> {
        let mut name = name.to_string();
        for _ in 0..MAX_REFERENCES {
            if name == ctx.name() {
                break;
            }
            let found = ctx.peer(&name, |element| {
                let other = element.as_any_mut().downcast_ref::<Self>();
                other.map(|other| (other.capacity.clone(), Rc::clone(&other.flows)))
            });
            match found.flatten() {
                Some((Capacity::Own, flows)) => return Ok(flows),
                Some((Capacity::Of(next), _)) => name = next,
                None => return Err(format!("MAPPING_CAPACITY: no rewriter \"{name}\"")),
            }
        }
        Err("MAPPING_CAPACITY: rewriters refer to each other".into())
    }

    /// Puts the element of its name into a specification.
    pub(super) fn resolve(&mut self, ctx: &mut Context<'_>, input: usize) -> Result<(), String> {
        let Spec::Named(name, outputs) = &self.inputs[input].spec else {
            return Ok(());
        };
        let outputs = *outputs;
        let mapper = match ctx.peer(name, mapper::of) {
            None => {
                return Err(format!(
                    "input spec {input}: unknown specification \"{name}\""
                ));
            }
            Some(None) => return Err(format!("input spec {input}: \"{name}\" is not an IPMapper")),
            Some(Some(mapper)) => mapper,
        };
        if self.endpoints && outputs.is_none() {
            return Err(format!(
                "input spec {input}: expected {name} FOUTPUT ROUTPUT with ENDPOINTS, got \"{name}\""
            ));
        }
        let beyond = mapper.borrow().beyond(ctx.outputs());
        if let Some(port) = beyond.filter(|_| outputs.is_none()) {
            return Err(format!("input spec {input}: no output {port}"));
        }
        mapper.borrow_mut().serves(&self.flows);
        let watch = mapper.borrow().watch();
        if let Some(watch) = watch {
            self.flows.borrow_mut().watch(watch);
        }
        self.inputs[input].spec = Spec::Mapper(mapper, outputs);
        Ok(())
    }

    /// Takes places in the table.
    pub(super) fn register(&mut self) -> Option<()> {
        let flows = Rc::clone(&self.flows);
        let mut table = flows.borrow_mut();
        self.first_map = table.add_maps(2)?;
        if self.endpoints {
            table.track_endpoints(self.first_map..self.first_map + 2);
        }
        let by_address = |input: &Input| matches!(input.spec, Spec::Bound(_, true));
        if self.inputs.iter().any(by_address) {
            table.track_peers();
        }
        self.first_owner = table.add_owners(self.inputs.len())?;
        let has_pattern = |input: &Input| matches!(input.spec, Spec::Pattern(..));
        if self.inputs.iter().any(has_pattern) {
            table.track_freed();
        }
        self.clocks = Clocks::register(&self.timeouts, &mut table)?;
        Some(())
    }

    /// Takes flows of the configuration before over, those silent longest first.
    pub(super) fn adopt(&mut self, old: &Self) {
        if old.kind != self.kind {
            return;
        }
        self.keep_timeouts(old);
        let before = old.flows.borrow();
        let mut order: Vec<(u64, u32)> = before
            .iter()
            .filter(|(_, flow)| {
                old.owns(flow.owner) && self.fits(old, flow, flow.owner - old.first_owner)
            })
            .map(|(slot, _)| (before.touched_ns(slot), slot))
            .collect();
        sort::by(&mut order, Ord::cmp);
        let flows = Rc::clone(&self.flows);
        let mut table = flows.borrow_mut();
        for (touched_ns, slot) in order {
            let mut flow = *before.flow(At::new(slot, false));
            flow.owner = flow.owner - old.first_owner + self.first_owner;
            flow.map = flow.map - old.first_map + self.first_map;
            let at = table.insert(flow, self.clocks.of(self.kind, &flow), touched_ns);
            if let (Some(at), Some(shifts)) = (at, before.shifts(slot)) {
                table.set_shifts(at.slot(), shifts.clone());
            }
        }
    }

    /// True if a flow of the configuration before can go on that came in at this input.
    fn fits(&self, old: &Self, flow: &Flow, input: u16) -> bool {
        let known = |port: &u16| *port < self.outputs;
        if usize::from(input) >= self.inputs.len() || !flow.outputs.iter().all(known) {
            return false;
        }
        // a log has learned that the port is free
        let was_given = || {
            old.givers(&flow.ids, input)
                .any(|given| given == Some(true))
        };
        let mut now = self.givers(&flow.ids, input);
        self.is_no_others(&flow.ids, input) && (now.all(|given| given.is_some()) || !was_given())
    }

    /// True if no mapper gives the public port of a flow to another host than to that of the flow.
    pub(super) fn is_no_others(&self, ids: &[FlowId; 2], input: u16) -> bool {
        self.givers(ids, input).all(|given| given != Some(false))
    }

    /// The answers of the mapper of an input, or of those of the endpoints that it leads to.
    fn givers(&self, ids: &[FlowId; 2], input: u16) -> impl Iterator<Item = Option<bool>> {
        let one = &self.inputs[usize::from(input)];
        let is_own = !matches!(one.spec, Spec::Bound(..));
        let inputs = match is_own {
            true => core::slice::from_ref(one),
            false => &self.inputs,
        };
        inputs.iter().filter_map(move |input| match &input.spec {
            Spec::Mapper(mapper, _) => Some(mapper.borrow().gives(ids, is_own)),
            _ => None,
        })
    }
}
