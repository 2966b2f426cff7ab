// SPDX-License-Identifier: Apache-2.0
//! Packets, bytes and drops of a router, counted while a reader watches.
//!
//! A read of the handler `graph` starts the counts and keeps them for [`LEASE_NS`]. Without a reader
//! a batch costs one test of a pointer.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::context::Context;
use crate::element::Element;
use crate::engine::{Edge, Engine};
use click_packet::Batch;

/// The engine counts for 10 s after a read.
pub const LEASE_NS: u64 = 10_000_000_000;

/// Packets and bytes that passed a connection.
#[derive(Clone, Copy, Default)]
struct Count {
    packets: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, batch: &Batch) {
        self.packets += batch.len() as u64;
        self.bytes += batch.iter().map(|p| p.len() as u64).sum::<u64>();
    }
}

/// The counts of a router since a reader began to watch.
pub struct Traffic {
    since_ns: u64,
    until_ns: u64,
    /// By element and output.
    passed: Vec<Vec<Count>>,
    /// Packets that an element freed and did not send, by element.
    drops: Vec<u64>,
    /// Change of the number of packets by the calls inside the current one.
    inner: i64,
}

impl Engine {
    /// Counts from now on, or goes on counting, for [`LEASE_NS`].
    fn watch_traffic(&mut self) {
        let now = self.now_ns;
        let slots = &self.slots;
        let new = || Traffic {
            since_ns: now,
            until_ns: now,
            passed: slots
                .iter()
                .map(|s| vec![Count::default(); s.outputs.len()])
                .collect(),
            drops: vec![0; slots.len()],
            inner: 0,
        };
        let traffic = self.traffic.get_or_insert_with(|| Box::new(new()));
        traffic.until_ns = now.saturating_add(LEASE_NS);
    }

    /// Ends counts without a reader.
    #[inline]
    pub fn end_lease(&mut self) {
        if self
            .traffic
            .as_ref()
            .is_some_and(|t| t.until_ns < self.now_ns)
        {
            self.traffic = None;
        }
    }

    /// Counts a batch that leaves an output.
    #[inline]
    pub fn count(&mut self, from: Edge, batch: &Batch) {
        if let Some(traffic) = &mut self.traffic {
            traffic.passed[from.element][from.port].add(batch);
        }
    }

    /// As `with`, for the calls that move packets.
    #[inline]
    pub fn pass<R>(
        &mut self,
        me: usize,
        call: impl FnOnce(&mut dyn Element, &mut Context<'_>) -> R,
    ) -> Option<R> {
        if self.traffic.is_none() {
            return self.with(me, call);
        }
        self.pass_counted(me, call)
    }

    /// Finds drops: the element frees more packets than it makes, apart from the calls inside this one.
    #[cold]
    fn pass_counted<R>(
        &mut self,
        me: usize,
        call: impl FnOnce(&mut dyn Element, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let before = self.pool.in_use();
        let outer = self.traffic.as_mut().map(|t| core::mem::take(&mut t.inner));
        let result = self.with(me, call);
        let change = self.pool.in_use() as i64 - before as i64;
        if let Some(traffic) = &mut self.traffic {
            let freed = traffic.inner - change;
            traffic.drops[me] += u64::try_from(freed).unwrap_or(0);
            traffic.inner = outer.unwrap_or(0) + change;
        }
        result
    }

    /// The value of the handler `graph`: the elements, the connections, and the counts of both.
    pub fn graph_text(&mut self) -> String {
        self.watch_traffic();
        let Some(traffic) = &self.traffic else {
            return String::new();
        };
        let plan = &self.plan;
        let mut out = format!("watched_ns {}\n", self.now_ns - traffic.since_ns);
        for (index, element) in plan.flat.elements[..plan.written].iter().enumerate() {
            let drops = if self.slots[index].outputs.is_empty() {
                0
            } else {
                traffic.drops[index]
            };
            let _ = writeln!(out, "element {} {} {drops}", element.name, element.class);
        }
        for c in &plan.flat.connections {
            let kind = if plan.graph.output_is_pull(c.from.0, c.from.1) {
                "pull"
            } else {
                "push"
            };
            let (from, to) = (&self.slots[c.from.0].name, &self.slots[c.to.0].name);
            let Count { packets, bytes } = traffic.passed[c.from.0][c.from.1];
            let ports = (c.from.1, c.to.1);
            let _ = writeln!(
                out,
                "connection {from} {} {to} {} {kind} {packets} {bytes}",
                ports.0, ports.1
            );
        }
        out
    }
}
