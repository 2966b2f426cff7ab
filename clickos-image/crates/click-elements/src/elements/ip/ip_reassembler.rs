// SPDX-License-Identifier: Apache-2.0
//! Puts fragments of IP packets together.
//!
//! # Synopsis
//! `IPReassembler([HIMEM, MAX_MTU_ANNO])`: fragments are kept until their packet is whole, at most 30 seconds after the last one came. When they take
//! more than HIMEM bytes (default 256 KiB), the oldest packets go until it is three quarters of that. The oldest go, too, when
//! the memory is short. MAX_MTU_ANNO: the two-byte
//! annotation becomes the length of the longest fragment of a packet that was put together.
//! # Ports
//! 1/1-2, agnostic. Packets need a marked IP header; the first fragment's annotations and what is in front of its header are kept.
//! Packets that do not become whole in time leave by the second output with zeros where something is missing, or are dropped.
//! # Handlers
//! * `dump` (read): fragments seen, packets put together, packets given up, wrong fragments, and bytes in use.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPReassembler -> ...`
use alloc::collections::VecDeque;

use click_core::memory::{RESERVE, has_room};
use click_wire::ipv4;

use crate::ip_packet::{header, header_mut};
use crate::numbers::WordAnno;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPReassembler",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[keyword("HIMEM"), keyword("MAX_MTU_ANNO")],
    handlers: &[read("dump", |me: &mut IPReassembler, _| {
        Ok(format!(
            "frags seen total:    {}\ngood reassemblies:   {}\nfailed reassemblies: {}\nbad fragments seen:  {}\nbytes in use:        {}\n",
            me.seen, me.good, me.failed, me.bad, me.bytes
        ))
    })],
    build: |a| {
        let (most, anno) = (a.or("HIMEM", 256 << 10), a.opt::<WordAnno>("MAX_MTU_ANNO"));
        Some(Box::new(IPReassembler {
            most: most?,
            anno: anno?.map(|anno| anno.0),
            waiting: VecDeque::new(),
            bytes: 0,
            seen: 0,
            good: 0,
            failed: 0,
            bad: 0,
        }))
    },
    ..Class::DEFAULT
};

const TIMEOUT_NS: u64 = 30_000_000_000;
/// The memory of a packet besides its payload: a buffer of its own.
const OVERHEAD: usize = 2560;
/// Bytes of a unit of fragment offsets.
const UNIT: usize = 8;
/// The longest payload.
const LONGEST: usize = 65_535 - ipv4::HEADER;

/// The fields that all fragments of a packet share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    addresses: [Ipv4Addr; 2],
    protocol: u8,
    id: u16,
}

/// Where a fragment belongs.
#[derive(Clone, Copy)]
struct Fragment {
    whole: Whole,
    /// Bytes of its header.
    header: usize,
    start: usize,
    end: usize,
    last: bool,
}

/// A packet on its way to be whole.
struct Partial {
    whole: Whole,
    /// The first fragment, or any if it has not come.
    head: Packet,
    has_first: bool,
    payload: Vec<u8>,
    /// A bit for each unit that is there.
    units: Vec<u64>,
    known: usize,
    end: Option<usize>,
    longest: usize,
    until_ns: u64,
}

/// The place of a fragment; outer `None` if its lengths are wrong, inner if the packet is none.
fn fragment(packet: &Packet) -> Option<Option<Fragment>> {
    let Some(ip) = header(packet) else {
        return Some(None);
    };
    let field = ip.fragment();
    if field & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0 {
        return Some(None);
    }
    let (start, header) = (usize::from(field & ipv4::OFFSET) * UNIT, ip.header_len());
    let length = ip.total_len().checked_sub(header)?;
    let (end, last) = (start + length, field & ipv4::MORE_FRAGMENTS == 0);
    let whole_units = last || end % UNIT == 0;
    let there = header >= ipv4::HEADER && packet.network()?.len() >= ip.total_len();
    let whole = Whole {
        addresses: [ip.source(), ip.destination()],
        protocol: ip.protocol(),
        id: ip.id(),
    };
    let sound = there && whole_units && length > 0 && end <= LONGEST;
    sound.then_some(Some(Fragment {
        whole,
        header,
        start,
        end,
        last,
    }))
}

impl Partial {
    fn new(whole: Whole, head: Packet) -> Self {
        Self {
            whole,
            head,
            has_first: false,
            payload: Vec::new(),
            units: Vec::new(),
            known: 0,
            end: None,
            longest: 0,
            until_ns: 0,
        }
    }

    /// Makes room up to `end`, and for twice as much as there is, so that it seldom grows; false if
    /// the memory lacks it. A payload that grows is copied.
    fn reserve(&mut self, end: usize) -> bool {
        let there = self.payload.capacity();
        if end <= there {
            return true;
        }
        let wanted = (2 * there).min(LONGEST).max(end);
        let grows = has_room(wanted + RESERVE);
        if grows {
            self.payload.reserve_exact(wanted - self.payload.len());
        }
        grows
    }

    /// Takes a fragment's payload; false if it contradicts what is known.
    fn add(&mut self, fragment: &Fragment, payload: &[u8]) -> bool {
        let beyond = self.end.is_some_and(|end| fragment.end > end);
        if beyond || (fragment.last && self.payload.len() > fragment.end) {
            return false;
        }
        if fragment.last {
            self.end = Some(fragment.end);
        }
        if self.payload.len() < fragment.end {
            self.payload.resize(fragment.end, 0);
        }
        self.payload[fragment.start..fragment.end].copy_from_slice(payload);
        let units = fragment.start / UNIT..fragment.end.div_ceil(UNIT);
        self.units.resize(self.payload.len().div_ceil(UNIT * 64), 0);
        for unit in units {
            let (word, bit) = (&mut self.units[unit / 64], 1 << (unit % 64));
            self.known += usize::from(*word & bit == 0);
            *word |= bit;
        }
        true
    }

    fn is_whole(&self) -> bool {
        self.has_first && self.end.is_some_and(|end| self.known == end.div_ceil(UNIT))
    }

    /// The packet with all that has come; `None` if it would be too long.
    fn finish(self, anno: Option<usize>) -> Option<Packet> {
        let mut packet = self.head;
        let length = header(&packet)?.header_len();
        let all = packet.network()?.len();
        packet.take(all - length);
        if !packet.put(self.payload.len()) {
            return None;
        }
        let bytes = packet.network_mut()?;
        bytes[length..].copy_from_slice(&self.payload);
        let total = u16::try_from(bytes.len()).ok()?;
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        let mut ip = header_mut(&mut packet)?;
        ip.set_fragment(0);
        ip.fill_checksum();
        if let Some(anno) = anno {
            let longest = u16::try_from(self.longest).unwrap_or(u16::MAX);
            packet.anno_mut().set_u16(anno, longest);
        }
        Some(packet)
    }

    fn bytes(&self) -> usize {
        OVERHEAD + self.payload.capacity()
    }
}

struct IPReassembler {
    most: usize,
    anno: Option<usize>,
    /// In the order in which a fragment of each came last.
    waiting: VecDeque<Partial>,
    bytes: usize,
    seen: u64,
    good: u64,
    failed: u64,
    bad: u64,
}

impl IPReassembler {
    /// Adds a fragment; gives the packet back if it is whole now.
    fn add(&mut self, ctx: &mut Context<'_>, fragment: Fragment, packet: Packet) -> Option<Packet> {
        let known = self.waiting.iter().position(|p| p.whole == fragment.whole);
        let before = known.and_then(|n| self.waiting.remove(n));
        self.bytes -= before.as_ref().map_or(0, Partial::bytes);
        let timestamp_ns = packet.timestamp_ns();
        let payload: Vec<u8> =
            packet.network()?[fragment.header..][..fragment.end - fragment.start].to_vec();
        let mut partial = match before {
            Some(mut partial) if fragment.start == 0 => {
                partial.head = packet;
                partial
            }
            Some(partial) => partial,
            None => Partial::new(fragment.whole, packet),
        };
        if !self.reserve(ctx, &mut partial, fragment.end) {
            self.failed += 1;
            return None;
        }
        self.bad += u64::from(!partial.add(&fragment, &payload));
        partial.has_first |= fragment.start == 0;
        partial.longest = partial.longest.max(fragment.header + payload.len());
        if partial.is_whole() {
            self.good += 1;
            let mut packet = partial.finish(self.anno)?;
            packet.set_timestamp_ns(timestamp_ns);
            return Some(packet);
        }
        partial.until_ns = ctx.now_ns().saturating_add(TIMEOUT_NS);
        self.bytes += partial.bytes();
        self.waiting.push_back(partial);
        self.make_room(ctx);
        self.wind(ctx);
        None
    }

    /// Makes room for a payload up to `end`; the oldest packets go if there is no memory.
    fn reserve(&mut self, ctx: &mut Context<'_>, partial: &mut Partial, end: usize) -> bool {
        loop {
            if partial.reserve(end) {
                return true;
            }
            if self.waiting.is_empty() {
                return false;
            }
            self.give_up(ctx);
        }
    }

    /// Sets the timer for the packet that is given up next.
    fn wind(&self, ctx: &mut Context<'_>) {
        if let Some(first) = self.waiting.front() {
            ctx.set_timer(first.until_ns);
        }
    }

    fn make_room(&mut self, ctx: &mut Context<'_>) {
        if self.bytes <= self.most {
            return;
        }
        while self.bytes > self.most / 4 * 3 && !self.waiting.is_empty() {
            self.give_up(ctx);
        }
    }

    /// Gives the oldest packet up.
    fn give_up(&mut self, ctx: &mut Context<'_>) {
        let Some(partial) = self.waiting.pop_front() else {
            return;
        };
        self.bytes -= partial.bytes();
        self.failed += 1;
        if ctx.outputs() > 1 {
            let packet = partial.finish(self.anno);
            packet
                .into_iter()
                .for_each(|packet| ctx.push_one(1, packet));
        }
    }

    /// The packet itself if it is no fragment, or the packet that it completes.
    fn reassemble(&mut self, ctx: &mut Context<'_>, packet: Packet) -> Option<Packet> {
        match fragment(&packet) {
            Some(None) => Some(packet),
            None => {
                self.seen += 1;
                self.bad += 1;
                None
            }
            Some(Some(fragment)) => {
                self.seen += 1;
                self.add(ctx, fragment, packet)
            }
        }
    }

    fn reassemble_all(&mut self, ctx: &mut Context<'_>, batch: &mut Batch) {
        let mut sweep = batch.sweep();
        while let Some(packet) = sweep.next() {
            if let Some(packet) = self.reassemble(ctx, packet) {
                sweep.keep(packet);
            }
        }
    }
}

impl Element for IPReassembler {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        self.reassemble_all(ctx, &mut batch);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(0, max);
        self.reassemble_all(ctx, &mut batch);
        batch
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let now_ns = ctx.now_ns();
        while self.waiting.front().is_some_and(|p| p.until_ns <= now_ns) {
            self.give_up(ctx);
        }
        self.wind(ctx);
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            core::mem::swap(&mut self.waiting, &mut old.waiting);
            self.bytes = old.bytes;
            (self.seen, self.good, self.failed, self.bad) =
                (old.seen, old.good, old.failed, old.bad);
            self.wind(ctx);
        }
    }
}
