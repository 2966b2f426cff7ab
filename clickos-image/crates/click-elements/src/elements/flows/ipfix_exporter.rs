// SPDX-License-Identifier: Apache-2.0
//! Counts flows of IPv4 and IPv6 and exports them in messages of IPFIX (RFC 7011).
//!
//! # Synopsis
//! `IPFIXExporter([DOMAIN, ACTIVE, IDLE, TEMPLATE, CAPACITY, SAMPLE])`: packets with the same addresses, protocol and ports are
//! a flow, and each direction has a record. A flow is exported once it is silent for IDLE (default 15s), and every
//! ACTIVE (default 60s) while it continues. DOMAIN (default 0) is the observation domain's number. The template goes with
//! the first message and every TEMPLATE (default 60s). CAPACITY (default: what the router allows) is the most flows; when
//! there are more, the element exports and forgets the one silent longest. Of SAMPLE packets (default 1) one is counted; the collector gets SAMPLE
//! as options (RFC 5477, systematic sampling by count), and multiplies.
//! # Ports
//! 1/2, push. Output 0 gives the packets unchanged, which need a marked IP header; others are not counted. Output 1 gives
//! messages for UDPIPEncap and port 4739, of at most 1,420 bytes. The element looks at 16,384 flows every second.
//! # Handlers
//! * `size` (read): flows known. `exported` (read): records of flows sent. `lost` (read): records without a buffer for their message.
//! * `flush` (write): exports all flows and forgets them.
//! # Example
//! `in -> MarkIPHeader(14) -> x :: IPFIXExporter -> out; x[1] -> UDPIPEncap(10.0.0.1, 4739, 10.0.0.9, 4739) -> arp;`
use click_core::memory::{RESERVE, has_room};
use click_wire::ipv4;

use crate::flow_key::key_of;
use crate::flows::{At, Flow, FlowId, FlowTable, Keys, MAX_FLOWS, Times};
use crate::ip_packet::header;
use crate::ip6;
use crate::ipfix::{Addresses, Counts, End, Message, Subject, Templates};
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
        keyword("SAMPLE"),
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
/// Those of IPv6 begin here.
const SIX_MAPS: u16 = 512;

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
    let sample = a.or("SAMPLE", 1u32)?;
    if sample == 0 {
        a.error("SAMPLE", "expected at least 1, got 0");
    }
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
        sample: sample.max(1),
        skipped: 0,
        keys: [0; 2],
        has_six: false,
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
    /// Its addresses are in `sixes`.
    is_six: bool,
    counts: [Counts; 2],
    /// The time of the last export, or of the first packet.
    since_ns: u64,
}

/// The flows and their counts, by slot of the table.
struct Known {
    table: FlowTable,
    times: Times,
    records: Vec<Option<Record>>,
    /// The addresses of flows of IPv6, as the first packet has them.
    sixes: Vec<[[u8; 16]; 2]>,
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
            sixes: Vec::new(),
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

    /// Keeps the addresses of a flow of IPv6; false if the memory takes no more.
    fn keep(&mut self, slot: usize, addresses: [[u8; 16]; 2]) -> bool {
        if slot >= self.sixes.len() {
            let bytes = 2 * (slot + 1) * size_of::<[[u8; 16]; 2]>();
            if slot >= self.sixes.capacity() && !has_room(RESERVE + bytes) {
                return false;
            }
            self.sixes.resize(slot + 1, [[0; 16]; 2]);
        }
        self.sixes[slot] = addresses;
        true
    }

    /// True if a packet is of the flow that its numbers led to. Of two flows of IPv6 with the same numbers, which no sender
    /// can choose, one is counted.
    fn is_of(&self, slot: usize, is_reply: bool, seen: &Seen) -> bool {
        let Some([source, destination]) = seen.addresses else {
            return true;
        };
        let wanted = if is_reply {
            [destination, source]
        } else {
            [source, destination]
        };
        self.sixes.get(slot) == Some(&wanted)
    }

    /// What a record is about, in one direction.
    fn subject(&self, slot: usize, record: &Record, is_reply: bool) -> Subject {
        let id = if is_reply {
            record.id.reverse()
        } else {
            record.id
        };
        let six = self.sixes.get(slot).filter(|_| record.is_six);
        let addresses = match six {
            None => Addresses::Four(id.source.octets(), id.destination.octets()),
            Some([source, destination]) if is_reply => Addresses::Six(*destination, *source),
            Some([source, destination]) => Addresses::Six(*source, *destination),
        };
        Subject {
            addresses,
            ports: [id.sport, id.dport],
            protocol: record.protocol,
        }
    }
}

struct IPFIXExporter {
    known: Known,
    active_ns: u64,
    idle_ns: u64,
    template_ns: u64,
    domain: u32,
    /// Of how many packets one is counted, and how many were left out since.
    sample: u32,
    skipped: u32,
    /// Keys of the numbers that addresses of IPv6 have in the table.
    keys: [u64; 2],
    /// A flow of IPv6 was seen, so its template is due, too.
    has_six: bool,
    template_at_ns: u64,
    sequence: u32,
    exported: u64,
    lost: u64,
    message: Message,
}

/// A packet as the table knows it.
struct Seen {
    id: FlowId,
    map: u16,
    protocol: u8,
    tcp_flags: u8,
    bytes: u64,
    /// Those of a packet of IPv6.
    addresses: Option<[[u8; 16]; 2]>,
}

/// What is known of a packet of at least an IPv4 header; other protocols have 0 as ports.
fn four(packet: &Packet) -> Option<Seen> {
    let header = header(packet)?;
    let (protocol, bytes) = (header.protocol(), header.total_len() as u64);
    let (id, map, tcp_flags) = match key_of(packet.network()?, 0) {
        Some(key) => (key.id, key.map, key.flags),
        None => {
            let id = FlowId {
                source: header.source(),
                destination: header.destination(),
                ..FlowId::NONE
            };
            (id, PLAIN_MAPS + u16::from(protocol), 0)
        }
    };
    Some(Seen {
        id,
        map,
        protocol,
        tcp_flags,
        bytes,
        addresses: None,
    })
}

/// The number of an address in the table. The addresses of the flow distinguish two addresses of one number.
fn number(address: [u8; 16], keys: [u64; 2]) -> Ipv4Addr {
    let bits = u128::from_be_bytes(address);
    let half = |shift: u32, key: u64| u128::from((bits >> shift) as u64 ^ key);
    let product = half(64, keys[0]) * half(0, keys[1]);
    Ipv4Addr::from(((product >> 64) ^ product) as u32)
}

/// The same of a packet of IPv6.
fn six(packet: &Packet, keys: [u64; 2]) -> Option<Seen> {
    let network = packet.network()?;
    let (header, upper) = (ip6::View::of(network)?, ip6::Upper::of(network)?);
    let protocol = *network.get(upper.named_at)?;
    let transport = network.get(upper.at..).filter(|_| upper.is_whole());
    let transport = transport.unwrap_or_default();
    let (ports, map) = match (protocol, transport) {
        (ipv4::TCP | ipv4::UDP, [a, b, c, d, ..]) => {
            let ports = [[*a, *b], [*c, *d]].map(u16::from_be_bytes);
            (ports, SIX_MAPS + u16::from(protocol == ipv4::UDP))
        }
        _ => ([0; 2], SIX_MAPS + PLAIN_MAPS + u16::from(protocol)),
    };
    let addresses = [header.source(), header.destination()].map(|a| a.0.octets());
    let [source, destination] = addresses.map(|address| number(address, keys));
    let flags = transport.get(13).filter(|_| map == SIX_MAPS);
    Some(Seen {
        id: FlowId {
            source,
            destination,
            sport: ports[0],
            dport: ports[1],
        },
        map,
        protocol,
        tcp_flags: flags.copied().unwrap_or(0),
        bytes: (ip6::HEADER + header.payload_len()) as u64,
        addresses: Some(addresses),
    })
}

impl IPFIXExporter {
    fn count(&mut self, ctx: &mut Context<'_>, packet: &Packet) {
        let version = packet.network().and_then(|bytes| bytes.first());
        let seen = match version.map(|byte| byte >> 4) {
            Some(6) => six(packet, self.keys),
            _ => four(packet),
        };
        let Some(seen) = seen else {
            return;
        };
        let now_ns = ctx.now_ns();
        let known = self.known.table.find_id(&seen.id, seen.map);
        let Some(at) = known.or_else(|| self.open(ctx, &seen)) else {
            return;
        };
        let slot = at.slot() as usize;
        if !self.known.is_of(slot, at.is_reply(), &seen) {
            return;
        }
        let (flags, bytes) = (seen.tcp_flags, seen.bytes);
        self.known.table.touch(at, self.known.times, now_ns);
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
    fn open(&mut self, ctx: &mut Context<'_>, seen: &Seen) -> Option<At> {
        let (now_ns, times) = (ctx.now_ns(), self.known.times);
        let flow = Flow::new(seen.map, [seen.id, seen.id.reverse()]);
        let at = self.known.table.insert(flow, times, now_ns)?;
        let slot = at.slot() as usize;
        if !self.known.reach(slot) {
            self.known.table.remove(at.slot());
            return None;
        }
        // the record of the flow that left its place, with its addresses
        if let Some(before) = self.known.records[slot].take() {
            self.export(ctx, slot, &before, End::NoRoom);
        }
        let is_six = seen.addresses.is_some();
        if let Some(addresses) = seen.addresses {
            if !self.known.keep(slot, addresses) {
                self.known.table.remove(at.slot());
                return None;
            }
            if !self.has_six {
                (self.has_six, self.template_at_ns) = (true, 0);
            }
        }
        self.known.records[slot] = Some(Record {
            id: seen.id,
            protocol: seen.protocol,
            is_six,
            counts: [Counts::default(); 2],
            since_ns: now_ns,
        });
        Some(at)
    }

    /// Adds the records of a flow's directions that had packets to the message.
    fn export(&mut self, ctx: &mut Context<'_>, slot: usize, record: &Record, end: End) {
        for (is_reply, counts) in [false, true].into_iter().zip(&record.counts) {
            if counts.packets == 0 {
                continue;
            }
            let subject = self.known.subject(slot, record, is_reply);
            self.message.add(&subject, counts, end);
            if self.message.is_full() {
                self.send(ctx);
            }
        }
    }

    /// Sends the message, with the template if it is time.
    fn send(&mut self, ctx: &mut Context<'_>) {
        let (now_ns, count) = (ctx.now_ns(), self.message.count() as u64);
        let templates = (now_ns >= self.template_at_ns).then_some(Templates {
            six: self.has_six,
            sample: self.sample,
        });
        if templates.is_some() {
            self.template_at_ns = now_ns.saturating_add(self.template_ns);
        }
        let bytes = self
            .message
            .take(now_ns, self.sequence, self.domain, templates);
        // RFC 7011, 3.1: a collector finds lost records by gaps in the sequence, which counts those of options, too
        let options = templates.map_or(0, Templates::records);
        self.sequence = self.sequence.wrapping_add(count as u32 + options);
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

    /// Exports a flow that continues; the next record counts from zero.
    fn go_on(&mut self, ctx: &mut Context<'_>, slot: usize, mut record: Record) {
        self.export(ctx, slot, &record, End::Active);
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
        self.export(ctx, slot, record, end);
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
        self.keys = [ctx.random(), ctx.random()];
        ctx.set_timer(ctx.now_ns() + PAUSE_NS);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        for packet in batch.iter() {
            self.skipped += 1;
            if self.skipped >= self.sample {
                self.skipped = 0;
                self.count(ctx, packet);
            }
        }
        ctx.push(0, batch);
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.look(ctx);
        ctx.set_timer(ctx.now_ns() + PAUSE_NS);
    }

    /// The flows continue, unless there is no room for all of them; waiting records and the sequence continue in any case.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        (self.sequence, self.exported, self.lost) = (old.sequence, old.exported, old.lost);
        (self.has_six, self.message) = (old.has_six, core::mem::take(&mut old.message));
        let capacity = self.known.table.capacity();
        if old.known.table.len() <= capacity {
            core::mem::swap(&mut self.known, &mut old.known);
            let Known { table, times, .. } = &mut self.known;
            table.set_capacity(capacity, ctx.now_ns());
            table.set_timeout(times.rest, self.idle_ns);
            self.keys = old.keys;
        }
    }
}
