// SPDX-License-Identifier: Apache-2.0
//! Elements that decide for a rewriter which of several patterns a flow gets.
use alloc::rc::Rc;
use core::cell::RefCell;

use super::pattern::{Draw, Outputs, Pattern};
use super::port_blocks::PortBlockMapper;
use super::server_pool::ServerPool;
use crate::flows::{FlowId, FlowTable, Watch};
use crate::prelude::*;

/// Decides about new flows.
pub trait Map {
    /// The new addresses and ports of a flow, and its outputs. Flows of one `map` share no ports.
    fn rewrite(
        &mut self,
        id: FlowId,
        map: u16,
        draw: Draw<'_>,
        taken: &dyn Fn(&FlowId) -> bool,
    ) -> Option<(FlowId, Outputs)>;

    /// False if a new flow is refused, also one of an endpoint that has flows.
    fn admits(&mut self, _id: &FlowId) -> bool {
        true
    }

    /// True if the mapper gives the public port of a flow to its inside host, false if to another one; `None` if to none.
    /// `is_own` says that the flow is of the mapper; others go to endpoints that it may have made.
    fn gives(&self, _ids: &[FlowId; 2], _is_own: bool) -> Option<bool> {
        Some(true)
    }

    /// The rewriter got a flow from another guest.
    fn took_over(&mut self) {}

    /// Who is to know of each flow of the rewriters that ask.
    fn watch(&self) -> Option<Rc<dyn Watch>> {
        None
    }

    /// A rewriter with these flows asks from now on.
    fn serves(&mut self, _flows: &Rc<RefCell<FlowTable>>) {}

    /// The first output beyond a rewriter's outputs.
    fn beyond(&self, outputs: usize) -> Option<u16>;
}

/// A decider that an element shares with rewriters.
pub type Shared = Rc<RefCell<dyn Map>>;

/// How a pattern is chosen.
pub enum Choose {
    /// One after the other, beginning with this one.
    InTurn(usize),
    /// The one whose point on a circle comes next after that of the source address: points and patterns, sorted.
    BySource(Vec<(u32, usize)>),
}

/// A chooser of patterns.
pub struct Mapper {
    pub patterns: Vec<(Pattern, Outputs)>,
    pub choose: Choose,
}

/// The element; rewriters keep what is in it.
pub struct MapperElement {
    mapper: Rc<RefCell<Mapper>>,
}

/// The decider of an element that rewriters name.
pub fn of(element: &mut dyn Element) -> Option<Shared> {
    let any = element.as_any_mut();
    if let Some(element) = any.downcast_ref::<MapperElement>() {
        return Some(element.mapper.clone());
    }
    if let Some(element) = any.downcast_ref::<ServerPool>() {
        return Some(element.shared());
    }
    Some(any.downcast_ref::<PortBlockMapper>()?.shared())
}

impl Element for MapperElement {}

/// Spreads numbers over the circle (the finalizer of MurmurHash3, by Appleby).
pub fn point(number: u32) -> u32 {
    let mut h = number;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

impl Mapper {
    /// The element for these patterns.
    pub fn element(patterns: Vec<(Pattern, Outputs)>, choose: Choose) -> Built {
        let mapper = Rc::new(RefCell::new(Self { patterns, choose }));
        Some(Box::new(MapperElement { mapper }))
    }
}

impl Map for Mapper {
    fn rewrite(
        &mut self,
        id: FlowId,
        _map: u16,
        draw: Draw<'_>,
        taken: &dyn Fn(&FlowId) -> bool,
    ) -> Option<(FlowId, Outputs)> {
        let count = self.patterns.len();
        let (first, tries) = match &mut self.choose {
            Choose::InTurn(next) => (*next, count),
            Choose::BySource(circle) => {
                let own = point(id.source.into());
                let after = circle.partition_point(|(point, _)| *point < own);
                (circle[after % circle.len()].1, 1)
            }
        };
        for n in (first..first + tries).map(|n| n % count) {
            if let Choose::InTurn(next) = &mut self.choose {
                *next = (n + 1) % count;
            }
            let (pattern, outputs) = &mut self.patterns[n];
            if let Some(id) = pattern.rewrite(id, &mut *draw, taken, None) {
                return Some((id, *outputs));
            }
        }
        None
    }

    fn beyond(&self, outputs: usize) -> Option<u16> {
        let used = self.patterns.iter().flat_map(|(_, outputs)| *outputs);
        used.into_iter().find(|port| usize::from(*port) >= outputs)
    }
}
