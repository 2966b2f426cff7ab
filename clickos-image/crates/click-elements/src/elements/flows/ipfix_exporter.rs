// SPDX-License-Identifier: Apache-2.0
//! Counts IPv4 flows and exports them in messages of IPFIX (RFC 7011).
//!
//! # Synopsis
//! `IPFIXExporter([DOMAIN, ACTIVE, IDLE, TEMPLATE, CAPACITY])`: packets with the same addresses, protocol and ports are
//! a flow, and each direction has a record. A flow is exported once it is silent for IDLE (default 15s), and every
//! ACTIVE (default 60s) while it goes on. DOMAIN (default 0) is the observation domain's number. The template goes with
//! the first message and every TEMPLATE (default 60s). CAPACITY (default: what the router allows) is the most flows; when
//! there are more, the element exports and forgets the one silent longest.
//! # Ports
//! 1/2, push. Output 0 gives the packets unchanged, which need a marked IP header; others are not counted. Output 1 gives
//! messages for UDPIPEncap and port 4739, of at most 1,368 bytes. The element looks at 16,384 flows every second.
//! # Handlers
//! * `size` (read): flows known. `exported` (read): records sent. `lost` (read): records without a buffer for their message.
//! * `flush` (write): exports all flows and forgets them.
//! # Example
//! `in -> MarkIPHeader(14) -> x :: IPFIXExporter -> out; x[1] -> UDPIPEncap(10.0.0.1, 4739, 10.0.0.9, 4739) -> arp;`
use click_core::memory::{RESERVE, has_room};

use crate::flow_key::key_of;
use crate::flows::{At, Flow, FlowId, FlowTable, Keys, MAX_FLOWS, Times};
use crate::ip_packet::header;
use crate::ipfix::{Counts, End, Message};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPFIXExporter",
    ports: "1/2",
    processing: "h/h",
    flow: "x/xy",
    args: &[
        keyword("DOMAIN"),
        keyword("ACTIVE"),
        keyword("IDLE"),
        keyword("TEMPLATE"),
        keyword("CAPACITY"),
    ],
    handlers: &[
        read("size", |me: &mut IPFIXExporter, _| {
            text(me.known.table.len())
        }),
        read("exported", |me, _| text(me.exported)),
        read("lost", |me, _| text(me.lost)),
        command("flush", run!(|me, ctx| me.flush(ctx))),
    ],
    build,
    ..Class::DEFAULT
};

const SECOND_NS: u64 = 1_000_000_000;
const PAUSE_NS: u64 = SECOND_NS;
/// Flows that are looked at in one go for those to export.
const LOOKED_AT: usize = 16_384;
/// Maps of flows without ports begin here; those of TCP and UDP are below.
const PLAIN_MAPS: u16 = 2;

fn build(a: &mut Args<'_>) -> Built {
    let mut span = |name: &str, seconds: u64| {
        let default = Span {
            ns: seconds * SECOND_NS,
        };
        Some(a.or(name, default)?.ns)
    };
    let (active, idle, template) = (span("ACTIVE", 60), span("IDLE", 15), span("TEMPLATE", 60));
    let most = a.environment().limits.flows.min(MAX_FLOWS);
    let (domain, capacity) = (a.or("DOMAIN", 0u32), a.or("CAPACITY", most)?);
    if !(1..=most).contains(&capacity) {
        let message = format!("{capacity} is out of range, it is 1 to {most}");
        a.error("CAPACITY", message);
        return None;
    }
    Some(Box::new(IPFIXExporter {
        known: Known::new(capacity, idle?)?,
        active_ns: active?,
        idle_ns: idle?,
        template_ns: template?,
        domain: domain?,
        template_at_ns: 0,
        sequence: 0,
        exported: 0,
        lost: 0,
        message: Message::default(),
    }))
}

/// A flow's counts.
#[derive(Clone, Copy)]
struct Record {
    id: FlowId,
    protocol: u8,
    counts: [Counts; 2],
    /// The time of the last export, or of the first packet.
    since_ns: u64,
}

/// The flows and their counts, by slot of the table.
struct Known {
    table: FlowTable,
    times: Times,
    records: Vec<Option<Record>>,
    /// The slot to look at next.
    hand: usize,
}

impl Known {
    fn new(capacity: usize, idle_ns: u64) -> Option<Self> {
        let mut table = FlowTable::new(capacity, Keys([1; 4]));
        table.add_owners(1)?;
        let rest = table.add_list(idle_ns, false)?;
        Some(Self {
            table,
            times: Times {
                guaranteed: None,
                rest,
            },
            records: Vec::new(),
            hand: 0,
        })
    }

    /// Makes room for the record of a slot; false if the memory takes no more.
    fn reach(&mut self, slot: usize) -> bool {
        if slot < self.records.len() {
            return true;
        }
        let bytes = 2 * (slot + 1) * size_of::<Option<Record>>();
        if slot >= self.records.capacity() && !has_room(RESERVE + bytes) {
            return false;
        }
        self.records.resize(slot + 1, None);
        true
    }
}

struct IPFIXExporter {
    known: Known,
    active_ns: u64,
    idle_ns: u64,
    template_ns: u64,
    domain: u32,
    template_at_ns: u64,
    sequence: u32,
    exported: u64,
    lost: u64,
    message: Message,
}

/// The key, map and TCP flags of a packet of at least an IP header; ports are 0 where there are none.
fn key(packet: &Packet) -> Option<(FlowId, u16, u8)> {
    let header = header(packet)?;
    if let Some(key) = key_of(packet.network()?, 0) {
        return Some((key.id, key.map, key.flags));
    }
    let id = FlowId {
        source: header.source(),
        destination: header.destination(),
        ..FlowId::NONE
    };
    Some((id, PLAIN_MAPS + u16::from(header.protocol()), 0))
}

impl IPFIXExporter {
    fn count(&mut self, ctx: &mut Context<'_>, packet: &Packet) {
        let Some(((id, map, flags), header)) = key(packet).zip(header(packet)) else {
            return;
        };
        let now_ns = ctx.now_ns();
        let bytes = header.total_len() as u64;
        let known = self.known.table.find_id(&id, map);
        let Some(at) = known.or_else(|| self.open(ctx, id, map, header.protocol())) else {
            return;
        };
        self.known.table.touch(at, self.known.times, now_ns);
        let slot = at.slot() as usize;
        let Some(Some(record)) = self.known.records.get_mut(slot) else {
            return;
        };
        let counts = &mut record.counts[usize::from(at.is_reply())];
        if counts.packets == 0 {
            counts.first_ns = now_ns;
        }
        counts.last_ns = now_ns;
        counts.packets += 1;
        counts.bytes += bytes;
        counts.tcp_flags |= flags;
    }

    /// Begins a flow. If the table is full, the flow silent longest is exported and leaves its place.
    fn open(&mut self, ctx: &mut Context<'_>, id: FlowId, map: u16, protocol: u8) -> Option<At> {
        let (now_ns, times) = (ctx.now_ns(), self.known.times);
        let flow = Flow::new(map, [id, id.reverse()]);
        let at = self.known.table.insert(flow, times, now_ns)?;
        let slot = at.slot() as usize;
        if !self.known.reach(slot) {
            self.known.table.remove(at.slot());
            return None;
        }
        let record = Record {
            id,
            protocol,
            counts: [Counts::default(); 2],
            since_ns: now_ns,
        };
        if let Some(before) = self.known.records[slot].replace(record) {
            self.export(ctx, &before, End::NoRoom);
        }
        Some(at)
    }

    /// Adds the records of a flow's directions that had packets to the message.
    fn export(&mut self, ctx: &mut Context<'_>, record: &Record, end: End) {
        let ids = [record.id, record.id.reverse()];
        for (id, counts) in ids.iter().zip(&record.counts) {
            if counts.packets == 0 {
                continue;
            }
            self.message.add(id, record.protocol, counts, end);
            if self.message.is_full() {
                self.send(ctx);
            }
        }
    }

    /// Sends the message, with the template if it is time.
    fn send(&mut self, ctx: &mut Context<'_>) {
        let (now_ns, count) = (ctx.now_ns(), self.message.count() as u64);
        let template = now_ns >= self.template_at_ns;
        if template {
            self.template_at_ns = now_ns.saturating_add(self.template_ns);
        }
        let bytes = self
            .message
            .take(now_ns, self.sequence, self.domain, template);
        // RFC 7011, 3.1: a collector finds lost records by gaps in the sequence
        self.sequence = self.sequence.wrapping_add(count as u32);
        match ctx.pool().packet_from(&bytes) {
            Some(packet) => {
                self.exported += count;
                ctx.push_one(1, packet);
            }
            None => self.lost += count,
        }
    }

    /// Looks at some flows and exports those that are due.
    fn look(&mut self, ctx: &mut Context<'_>) {
        let now_ns = ctx.now_ns();
        for _ in 0..LOOKED_AT.min(self.known.records.len()) {
            let slot = self.known.hand % self.known.records.len();
            self.known.hand = slot + 1;
            let Some(record) = self.known.records[slot] else {
                continue;
            };
            let [there, back] = record.counts.map(|counts| counts.last_ns);
            if now_ns.saturating_sub(there.max(back)) >= self.idle_ns {
                self.end(ctx, slot, &record, End::Idle);
            } else if now_ns.saturating_sub(record.since_ns) >= self.active_ns {
                self.go_on(ctx, slot, record);
            }
        }
        let template = now_ns >= self.template_at_ns;
        if template || self.message.count() > 0 {
            self.send(ctx);
        }
    }

    /// Exports a flow that goes on; the next record counts from zero.
    fn go_on(&mut self, ctx: &mut Context<'_>, slot: usize, mut record: Record) {
        self.export(ctx, &record, End::Active);
        record.since_ns = ctx.now_ns();
        for counts in &mut record.counts {
            let last_ns = counts.last_ns;
            *counts = Counts {
                last_ns,
                ..Counts::default()
            };
        }
        self.known.records[slot] = Some(record);
    }

    fn end(&mut self, ctx: &mut Context<'_>, slot: usize, record: &Record, end: End) {
        self.export(ctx, record, end);
        self.known.records[slot] = None;
        self.known.table.remove(slot as u32);
    }

    fn flush(&mut self, ctx: &mut Context<'_>) {
        for slot in 0..self.known.records.len() {
            if let Some(record) = self.known.records[slot] {
                self.end(ctx, slot, &record, End::Forced);
            }
        }
        if self.message.count() > 0 {
            self.send(ctx);
        }
    }
}

impl Element for IPFIXExporter {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let keys = Keys([ctx.random(), ctx.random(), ctx.random(), ctx.random()]);
        self.known.table.set_keys(keys);
        ctx.set_timer(ctx.now_ns() + PAUSE_NS);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        for packet in batch.iter() {
            self.count(ctx, packet);
        }
        ctx.push(0, batch);
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.look(ctx);
        ctx.set_timer(ctx.now_ns() + PAUSE_NS);
    }

    /// The flows go on, unless there is less room for them; the sequence goes on in any case.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        (self.sequence, self.exported, self.lost) = (old.sequence, old.exported, old.lost);
        let alike = old.known.table.capacity() == self.known.table.capacity();
        if alike && old.idle_ns == self.idle_ns {
            core::mem::swap(&mut self.known, &mut old.known);
        }
    }
}
