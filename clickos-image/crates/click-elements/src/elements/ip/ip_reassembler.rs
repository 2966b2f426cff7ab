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
//! # Differences from Click
//! Fills missing parts with zeros if a packet is not complete in time, by the router's clock. An
//! incomplete packet counts 2,560 bytes besides its payload, and `dump` has sums only.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPReassembler -> ...`
use crate::flows::Keys;
use crate::numbers::WordAnno;
use crate::prelude::*;
use crate::reassembly::{Fragment, Waiting, fragment, is_whole};

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
            waiting: Waiting::new(Keys([1; 4])),
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
struct IPReassembler {
    most: usize,
    anno: Option<usize>,
    waiting: Waiting,
    bytes: usize,
    seen: u64,
    good: u64,
    failed: u64,
    bad: u64,
}

impl IPReassembler {
    /// Adds a fragment; gives the packet back if it is whole now.
    fn add(&mut self, ctx: &mut Context<'_>, fragment: Fragment, packet: Packet) -> Option<Packet> {
        let timestamp_ns = packet.timestamp_ns();
        let (number, _) = self.waiting.entry(&fragment.whole)?;
        if !self.reserve(ctx, number, fragment.end) {
            self.failed += 1;
            self.finish(number);
            return None;
        }
        let partial = self.waiting.get(number)?;
        self.bad += u64::from(!partial.take(&fragment, packet));
        if partial.is_whole() {
            self.good += 1;
            let mut packet = self.finish(number)?;
            packet.set_timestamp_ns(timestamp_ns);
            return Some(packet);
        }
        partial.until_ns = ctx.now_ns().saturating_add(TIMEOUT_NS);
        let counted = partial.bytes();
        self.bytes += counted - core::mem::replace(&mut partial.counted, counted);
        self.waiting.move_last(number);
        self.make_room(ctx);
        self.wind(ctx);
        None
    }

    /// Makes room for the payload of a packet up to `end`; the oldest others go if there is no memory.
    fn reserve(&mut self, ctx: &mut Context<'_>, number: u32, end: usize) -> bool {
        loop {
            if self.waiting.get(number).is_some_and(|p| p.reserve(end)) {
                return true;
            }
            match self.waiting.oldest() {
                Some((oldest, _)) if oldest != number => self.give_up(ctx),
                _ => return false,
            }
        }
    }

    /// Takes a packet out, with all that has come of it.
    fn finish(&mut self, number: u32) -> Option<Packet> {
        let partial = self.waiting.remove(number)?;
        self.bytes -= partial.counted;
        let (packet, payload) = partial.finish(self.anno);
        self.waiting.recycle(payload);
        packet
    }

    /// Sets the timer for the packet that is given up next.
    fn wind(&self, ctx: &mut Context<'_>) {
        if let Some((_, first)) = self.waiting.oldest() {
            ctx.set_timer(first.until_ns);
        }
    }

    fn make_room(&mut self, ctx: &mut Context<'_>) {
        if self.bytes <= self.most {
            return;
        }
        while self.bytes > self.most / 4 * 3 && self.waiting.oldest().is_some() {
            self.give_up(ctx);
        }
    }

    /// Gives the oldest packet up.
    fn give_up(&mut self, ctx: &mut Context<'_>) {
        let Some((number, _)) = self.waiting.oldest() else {
            return;
        };
        self.failed += 1;
        let packet = self.finish(number);
        if let (Some(packet), true) = (packet, ctx.outputs() > 1) {
            ctx.push_one(1, packet);
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
        if batch.iter().all(is_whole) {
            return;
        }
        let mut cursor = batch.cursor_mut();
        while let Some(packet) = cursor.next() {
            if let Some(packet) = self.reassemble(ctx, packet) {
                cursor.keep(packet);
            }
        }
    }
}

impl Element for IPReassembler {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.waiting = Waiting::new(Keys(core::array::from_fn(|_| ctx.random())));
        Ok(())
    }

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
        while self
            .waiting
            .oldest()
            .is_some_and(|(_, first)| first.until_ns <= now_ns)
        {
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
