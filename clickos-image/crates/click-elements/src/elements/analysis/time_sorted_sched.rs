// SPDX-License-Identifier: Apache-2.0
//! Merges streams of packets by their timestamps.
//!
//! # Synopsis
//! `TimeSortedSched([STOP, BUFFER])`: gives the packet with the earliest timestamp first. The streams are expected to
//! be in order; up to BUFFER packets (default 1) of each input are looked at, so that a packet which is out of order by
//! less than that finds its place. With STOP (default false) the router stops when all inputs have come to an end.
//! # Ports
//! any/1, pull.
//! # Handlers
//! * `well_ordered` (read): whether all packets were given in the order of their timestamps.
//! # Example
//! `FromDump(a.pcap) -> [0] t :: TimeSortedSched(STOP true) -> ToDump(all.pcap); FromDump(b.pcap) -> [1] t;`
use alloc::collections::BTreeMap;

use crate::prelude::*;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "TimeSortedSched",
    ports: "-/1",
    processing: "l/l",
    args: &[keyword("STOP"), keyword("BUFFER")],
    handlers: &[read("well_ordered", |me: &mut TimeSortedSched, _| {
        text(me.well_ordered)
    })],
    build: |a| {
        let (stop, buffer) = (a.or("STOP", false), a.or("BUFFER", 1usize));
        let limit = a.environment().limits.packet_buffers;
        let buffer = buffer?;
        if !(1..=limit).contains(&buffer) {
            a.error("BUFFER", format!("{buffer} is out of range 1 to {limit}"));
        }
        Some(Box::new(TimeSortedSched {
            stop: stop?,
            room: vec![buffer; a.inputs()],
            held: BTreeMap::new(),
            arrivals: 0,
            latest: Time(0),
            well_ordered: true,
        }))
    },
    ..Class::DEFAULT
};

struct TimeSortedSched {
    stop: bool,
    /// How many more packets of each input are held.
    room: Vec<usize>,
    /// Packets and their inputs, by time and then by arrival.
    held: BTreeMap<(Time, u64), (Packet, usize)>,
    arrivals: u64,
    latest: Time,
    well_ordered: bool,
}

impl TimeSortedSched {
    /// Fetches what there is room for.
    fn fill(&mut self, ctx: &mut Context<'_>, input: usize) {
        while self.room[input] > 0 {
            let mut batch = ctx.pull(input, self.room[input]);
            if batch.is_empty() {
                return;
            }
            for packet in batch.drain_front(usize::MAX) {
                self.room[input] -= 1;
                self.arrivals += 1;
                let key = (Time::of(&packet), self.arrivals);
                self.held.insert(key, (packet, input));
            }
            ctx.recycle(batch);
        }
    }

    fn next(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        for input in 0..self.room.len() {
            if self.room[input] > 0 && ctx.readable(input) {
                self.fill(ctx, input);
            }
        }
        let ((time, _), (packet, input)) = self.held.pop_first()?;
        self.room[input] += 1;
        if !time.is_unset() {
            self.well_ordered &= time >= self.latest;
            self.latest = time;
        }
        Some(packet)
    }
}

impl Element for TimeSortedSched {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_readable(true);
        Ok(())
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            match self.next(ctx) {
                Some(packet) => batch.push_back(packet),
                None => break,
            }
        }
        let held = !self.held.is_empty();
        let more = held || (0..self.room.len()).any(|input| ctx.readable(input));
        ctx.set_readable(more);
        if self.stop && batch.is_empty() && !more {
            ctx.stop();
        }
        batch
    }

    /// An input that had come to an end has packets again.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        ctx.set_readable(true);
        false
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }
}
