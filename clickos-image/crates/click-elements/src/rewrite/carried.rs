// SPDX-License-Identifier: Apache-2.0
//! Flows of rewriters that go to another guest: the handlers `state`, `merge` and `hold`.
use alloc::rc::Rc;

use click_core::sort;
use click_wire::ipv4;

use super::kind::{DCCP, Kind};
use super::rewriter::Rewriter;
use crate::carried::{self, number};
use crate::flows::{At, FlowId, FlowTable, Shift};
use crate::prelude::*;

/// No flow's text is longer, whatever happened to its sequence numbers.
const LINE_BYTES: usize = 1024;
/// The most places of a part of the table, so that the part fits into an answer to the toolstack.
const PART_MOST: usize = 256;

/// A flow as its text has it.
struct Carried {
    input: u16,
    protocol: u8,
    flags: u8,
    reply_anno: u8,
    outputs: [u16; 2],
    age_ms: u64,
    /// Its packets before and after the rewrite.
    ids: [FlowId; 2],
    shifts: Option<[Shift; 2]>,
}

impl Rewriter {
    /// The handler `state`.
    pub const STATE: Handler<Self> = read_command(
        "state",
        |me, view| match view.param() {
            "" => Ok(me.state_text(view)),
            part => me.part_text(view, part),
        },
        Self::write_state,
    );
    /// The handler `merge`.
    pub const MERGE: Handler<Self> = command("merge", Self::write_merge);
    /// The handler `changes`.
    pub const CHANGES: Handler<Self> = read("changes", |me, view| match view.param() {
        "all" => {
            me.flows.borrow_mut().list_all();
            Ok(String::new())
        }
        bytes => {
            let most = view.surroundings().environment.limits.handler_bytes;
            Ok(me.changes_text(view, view.parse::<usize>(bytes)?.min(most)))
        }
    });
    pub const MERGE_LOST: Handler<Self> = read("merge_lost", |me, _| text(me.merge_lost));
    /// The handler `hold`.
    pub const HOLD: Handler<Self> = command(
        "hold",
        set!(|me, hold: Span, ctx| {
            me.held_ns = ctx.now_ns().saturating_add(hold.ns);
        }),
    );

    fn head(&self) -> &'static str {
        match self.kind {
            Kind::Ip => "ip-rewriter 1",
            Kind::Tcp => "tcp-rewriter 1",
            Kind::Udp => "udp-rewriter 1",
            Kind::Address => "address-rewriter 1",
            Kind::Pair => "pair-rewriter 1",
            Kind::Ping => "ping-rewriter 1",
        }
    }

    fn state_text(&self, view: &View<'_>) -> String {
        let table = self.flows.borrow();
        let mut order: Vec<(u64, u32)> = table
            .iter()
            .filter(|(_, flow)| self.owns(flow.owner))
            .map(|(slot, _)| (table.touched_ns(slot), slot))
            .collect();
        sort::by(&mut order, Ord::cmp);
        let newest = order.iter().rev();
        let lines = newest.map(|(touched_ns, slot)| {
            let age_ms = carried::age_ms(view.now_ns(), *touched_ns);
            self.state_line(&table, *slot, age_ms)
        });
        carried::render(self.head(), view, lines)
    }

    /// The flows in a part of the table's places. A flow keeps its place, so it is in one part.
    fn part_text(&self, view: &View<'_>, part: &str) -> Text {
        let places = view.surroundings().environment.limits.handler_bytes / LINE_BYTES;
        let (part, places): (usize, _) = (view.parse(part)?, places.clamp(1, PART_MOST));
        let table = self.flows.borrow();
        let Some(slots) = table.part(part, places) else {
            return Ok(String::new());
        };
        let own = slots.filter(|(_, flow)| self.owns(flow.owner));
        let lines = own.map(|(slot, _)| {
            let age_ms = carried::age_ms(view.now_ns(), table.touched_ns(slot));
            self.state_line(&table, slot, age_ms)
        });
        Ok(carried::render(self.head(), view, lines))
    }

    /// Changed flows, as many as fit; nothing if there is nothing.
    fn changes_text(&self, view: &View<'_>, bytes: usize) -> String {
        let (now_ns, mut text) = (view.now_ns(), String::new());
        let mut table = self.flows.borrow_mut();
        table.sweep(now_ns);
        for owner in self.first_owner..self.first_owner + self.inputs.len() as u16 {
            while let Some(slot) = table.take_changed(owner) {
                let age_ms = carried::age_ms(now_ns, table.touched_ns(slot));
                let line = self.state_line(&table, slot, age_ms);
                let head = if text.is_empty() {
                    self.head().len() + 1
                } else {
                    0
                };
                if text.len() + head + line.len() + 1 > bytes {
                    // a flow whose line fits nowhere is not copied
                    if !text.is_empty() {
                        table.give_back(slot);
                    }
                    return text;
                }
                if text.is_empty() {
                    text = format!("{}\n", self.head());
                }
                text += &line;
                text.push('\n');
            }
        }
        text
    }

    fn state_line(&self, table: &FlowTable, slot: u32, age_ms: u64) -> String {
        let flow = table.flow(At::new(slot, false));
        let (old, new) = (flow.ids[0], flow.rewritten(false));
        let id = |id: FlowId| {
            let (source, destination) = (id.source, id.destination);
            format!("{source} {} {destination} {}", id.sport, id.dport)
        };
        let shifts = table
            .shifts(slot)
            .map_or_else(String::new, |[there, back]| {
                format!(" {} {}", there.to_text(), back.to_text())
            });
        let [there, back] = flow.outputs;
        format!(
            "{} {} {} {} {there} {back} {age_ms} {} {}{shifts}",
            flow.owner - self.first_owner,
            flow.protocol,
            flow.flags,
            flow.reply_anno,
            id(old),
            id(new),
        )
    }

    fn write_state(&self, _view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let flows = carried::parse(self.head(), value, |words| self.carried(words))?;
        on_write(self, move |me, ctx| me.put_state(&flows, ctx.now_ns()))
    }

    fn write_merge(&self, _view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let flows = carried::parse(self.head(), value, |words| self.carried(words))?;
        on_write(self, move |me, ctx| me.merge(&flows, ctx.now_ns()))
    }

    /// Reads a line; nothing but flows that this rewriter could have opened is taken.
    fn carried(&self, words: &[&str]) -> Option<Carried> {
        let [input, protocol, flags, anno, there, back, age, ids @ ..] = words else {
            return None;
        };
        let (ids, shifts) = ids.split_at_checked(8)?;
        let found = Carried {
            input: number(input)?,
            protocol: number(protocol)?,
            flags: number(flags)?,
            reply_anno: number(anno)?,
            outputs: [number(there)?, number(back)?],
            age_ms: number(age)?,
            ids: [flow_id(&ids[..4])?, flow_id(&ids[4..])?],
            shifts: match shifts {
                [] => None,
                [there, back] if self.is_tcp() => {
                    Some([Shift::from_text(there)?, Shift::from_text(back)?])
                }
                _ => return None,
            },
        };
        self.could_open(&found).then_some(found)
    }

    fn could_open(&self, flow: &Carried) -> bool {
        let [old, new] = flow.ids;
        let protocols: &[u8] = match self.kind {
            Kind::Ip => &[ipv4::TCP, ipv4::UDP],
            Kind::Tcp => &[ipv4::TCP],
            Kind::Udp => &[ipv4::TCP, ipv4::UDP, DCCP],
            Kind::Address | Kind::Pair => &[0],
            Kind::Ping => &[ipv4::ICMP],
        };
        usize::from(flow.input) < self.inputs.len()
            && flow.outputs.iter().all(|port| *port < self.outputs)
            && protocols.contains(&flow.protocol)
            && self.kind.opening(old) == old
            && self.kind.settle(old) == Some(old)
            && self.kind.settle(new) == Some(new)
    }

    /// Replaces the flows of this rewriter.
    fn put_state(&mut self, flows: &[Carried], now_ns: u64) {
        let shared = Rc::clone(&self.flows);
        let mut table = shared.borrow_mut();
        let end = self.first_owner + self.inputs.len() as u16;
        table.remove_of(self.first_owner..end);
        for carried in flows {
            let map = self.kind.map(self.first_map, carried.protocol);
            if table.find_id(&carried.ids[0], map).is_none() {
                self.put(&mut table, carried, now_ns);
            }
        }
    }

    /// Adds flows of another guest. Where two have an address and port, the one heard of last stays.
    fn merge(&mut self, flows: &[Carried], now_ns: u64) {
        let shared = Rc::clone(&self.flows);
        let mut table = shared.borrow_mut();
        table.set_copying(true);
        for carried in flows {
            let map = self.kind.map(self.first_map, carried.protocol);
            let ids = [carried.ids[0], carried.ids[1].reverse()];
            let rivals = ids.map(|id| table.find_id(&id, map));
            let is_known = rivals[0].is_some_and(|at| table.flow(at).ids == ids);
            let wanted = table.len() + usize::from(!is_known);
            let at_ns = carried::at_ns(now_ns, carried.age_ms);
            let mut known = rivals.iter().flatten();
            if known.all(|at| table.touched_ns(at.slot()) < at_ns) {
                if let Some(at) = rivals[0] {
                    table.remove(at.slot());
                }
                self.put(&mut table, carried, now_ns);
            }
            self.merge_lost += (wanted - table.len()) as u64;
        }
        table.set_copying(false);
    }

    /// Opens a flow whose packets are not known.
    fn put(&self, table: &mut FlowTable, carried: &Carried, now_ns: u64) {
        let map = self.kind.map(self.first_map, carried.protocol);
        let [old, new] = carried.ids;
        let mut flow = self.flow(map, old, new);
        flow.owner = self.first_owner + carried.input;
        (flow.outputs, flow.protocol) = (carried.outputs, carried.protocol);
        (flow.flags, flow.reply_anno) = (carried.flags, carried.reply_anno);
        let touched_ns = carried::at_ns(now_ns, carried.age_ms);
        let at = table.insert(flow, self.clocks.of(self.kind, &flow), touched_ns);
        if let (Some(at), Some(shifts)) = (at, &carried.shifts) {
            table.set_shifts(at.slot(), shifts.clone());
        }
    }
}

fn flow_id(words: &[&str]) -> Option<FlowId> {
    let [source, sport, destination, dport] = words else {
        return None;
    };
    Some(FlowId {
        source: source.parse().ok()?,
        sport: number(sport)?,
        destination: destination.parse().ok()?,
        dport: number(dport)?,
    })
}
