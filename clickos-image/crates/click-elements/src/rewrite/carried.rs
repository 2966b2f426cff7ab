// SPDX-License-Identifier: Apache-2.0
//! Flows of rewriters that go to another guest: the handlers `state`, `merge` and `block_new_flows`.
use alloc::rc::Rc;
use core::cell::RefMut;
use core::ops::Range;

use click_wire::ipv4;

use super::kind::{DCCP, Kind};
use super::rewriter::Rewriter;
use super::spec::Spec;
use crate::carried::{self, number};
use crate::flows::{self, At, Changes, Copied, FlowId, FlowTable, Shift, is_older};
use crate::prelude::*;

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

impl Carried {
    /// The ends as the table has them.
    fn ends(&self) -> [FlowId; 2] {
        [self.ids[0], self.ids[1].reverse()]
    }
}

/// The flows of a rewriter in the table that it may share.
struct Own<'a> {
    table: RefMut<'a, FlowTable>,
    head: &'static str,
    owners: Range<u16>,
}

impl Copied for Own<'_> {
    fn head(&self) -> &'static str {
        self.head
    }

    fn owners(&self) -> Range<u16> {
        self.owners.clone()
    }

    fn used(&self) -> u32 {
        self.table.used()
    }

    fn heard(&self, slot: u32) -> Option<(u16, u64)> {
        self.table.heard(slot)
    }

    fn line(&self, slot: u32, now_ns: u64) -> String {
        let flow = self.table.flow(At::new(slot, false));
        let age_ms = carried::age_ms(now_ns, self.table.touched_ns(slot));
        let (old, new) = (flow.ids[0], flow.rewritten(false));
        let id = |id: FlowId| {
            let (source, destination) = (id.source, id.destination);
            format!("{source} {} {destination} {}", id.sport, id.dport)
        };
        let shifts = self
            .table
            .shifts(slot)
            .map_or_else(String::new, |[there, back]| {
                format!(" {} {}", there.to_text(), back.to_text())
            });
        let [there, back] = flow.outputs;
        format!(
            "{} {} {} {} {there} {back} {age_ms} {} {}{shifts}",
            flow.owner - self.owners.start,
            flow.protocol,
            flow.flags,
            flow.reply_anno,
            id(old),
            id(new),
        )
    }

    fn changes(&mut self) -> &mut Option<Box<Changes>> {
        self.table.changes()
    }
}

impl Rewriter {
    /// The handler `state`.
    pub const STATE: Handler<Self> = read_command(
        "state",
        |me, view| flows::state(&me.own(), view),
        Self::write_state,
    );
    /// The handler `merge`.
    pub const MERGE: Handler<Self> = command("merge", Self::write_merge);
    /// The handler `changes`.
    pub const CHANGES: Handler<Self> =
        read("changes", |me, view| flows::changes(&mut me.own(), view));
    pub const MERGE_LOST: Handler<Self> = read("merge_lost", |me, _| text(me.merge_lost));
    /// The handler `block_new_flows`.
    pub const BLOCK_NEW_FLOWS: Handler<Self> = command(
        "block_new_flows",
        set!(|me, lease: Span, ctx| {
            me.blocked_until_ns = ctx.now_ns().saturating_add(lease.ns);
        }),
    );
    /// Its name before 1.0, for one more release.
    pub const HOLD: Handler<Self> = Handler {
        name: "hold",
        ..Self::BLOCK_NEW_FLOWS
    };

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

    fn own(&self) -> Own<'_> {
        Own {
            table: self.flows.borrow_mut(),
            head: self.head(),
            owners: self.first_owner..self.first_owner + self.inputs.len() as u16,
        }
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
            let is_new = table.find_id(&carried.ids[0], map).is_none();
            if is_new && self.is_no_others(&carried.ends(), carried.input) {
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
            let ids = carried.ends();
            if !self.is_no_others(&ids, carried.input) {
                self.merge_lost += 1;
                continue;
            }
            let rivals = ids.map(|id| table.find_id(&id, map));
            let is_known = rivals[0].is_some_and(|at| table.flow(at).ids == ids);
            let wanted = table.len() + usize::from(!is_known);
            let at_ns = carried::at_ns(now_ns, carried.age_ms);
            let mut known = rivals.iter().flatten();
            let gives_way =
                |at: &At| is_older(table.touched_ns(at.slot()), table.flow(*at).is_copy, at_ns);
            if known.all(gives_way) {
                if let Some(at) = rivals[0] {
                    table.remove(at.slot());
                }
                if let Some(at) = self.put(&mut table, carried, now_ns) {
                    table.flow_mut(at).is_copy = true;
                }
            }
            self.merge_lost += (wanted - table.len()) as u64;
        }
        table.set_copying(false);
    }

    /// Opens a flow whose packets are not known.
    fn put(&self, table: &mut FlowTable, carried: &Carried, now_ns: u64) -> Option<At> {
        let map = self.kind.map(self.first_map, carried.protocol);
        let [old, new] = carried.ids;
        let mut flow = self.flow(map, old, new);
        flow.owner = self.first_owner + carried.input;
        (flow.outputs, flow.protocol) = (carried.outputs, carried.protocol);
        (flow.flags, flow.reply_anno) = (carried.flags, carried.reply_anno);
        let touched_ns = carried::at_ns(now_ns, carried.age_ms);
        let at = table.insert(flow, self.clocks.of(self.kind, &flow), touched_ns)?;
        if let Some(shifts) = &carried.shifts {
            table.set_shifts(at.slot(), shifts.clone());
        }
        if let Spec::Mapper(mapper, _) = &self.inputs[usize::from(carried.input)].spec {
            mapper.borrow_mut().took_over();
        }
        Some(at)
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
