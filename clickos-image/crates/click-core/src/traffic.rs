// SPDX-License-Identifier: Apache-2.0
//! Packets, bytes and drops of a router, counted while a reader watches.
//!
//! A read of the handler `graph` starts the counts and keeps them for [`LEASE_NS`]. Without a reader
//! a batch costs one test of a pointer.
use alloc::vec;
use alloc::vec::Vec;

use click_packet::Packet;

/// The engine counts for 10 s after a read.
const LEASE_NS: u64 = 10_000_000_000;

/// Packets and bytes that passed a connection.
#[derive(Clone, Copy, Default)]
pub struct Count {
    pub packets: u64,
    pub bytes: u64,
}

/// The counts of a router since a reader began to watch.
pub struct Traffic {
    pub since_ns: u64,
    until_ns: u64,
    /// By element and output.
    passed: Vec<Vec<Count>>,
    /// Packets that an element freed and did not send, by element.
    drops: Vec<u64>,
    /// Change of the number of packets by the calls inside the current one.
    inner: i64,
}

/// A call that moves packets, while it runs.
pub struct Call {
    before: usize,
    outer: i64,
}

impl Traffic {
    /// Counts from `now_ns` on; `outputs` has the number of outputs of each element.
    pub fn new(outputs: impl Iterator<Item = usize>, now_ns: u64) -> Self {
        let passed: Vec<_> = outputs.map(|n| vec![Count::default(); n]).collect();
        Self {
            since_ns: now_ns,
            until_ns: now_ns,
            drops: vec![0; passed.len()],
            passed,
            inner: 0,
        }
    }

    /// A reader was here: counts go on for [`LEASE_NS`].
    pub fn renew(&mut self, now_ns: u64) {
        self.until_ns = now_ns.saturating_add(LEASE_NS);
    }

    /// True if the last reader is gone.
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.until_ns < now_ns
    }

    /// Counts a batch that leaves an output.
    pub fn count(&mut self, element: usize, output: usize, packets: &[Packet]) {
        let count = &mut self.passed[element][output];
        count.packets += packets.len() as u64;
        count.bytes += packets.iter().map(|p| p.len() as u64).sum::<u64>();
    }

    /// An element's call begins while `in_use` packets exist.
    pub fn enter(&mut self, in_use: usize) -> Call {
        Call {
            before: in_use,
            outer: core::mem::take(&mut self.inner),
        }
    }

    /// The call ends. Packets that the element freed beyond those it made are drops; calls inside
    /// this one count on their own.
    pub fn leave(&mut self, element: usize, call: &Call, in_use: usize) {
        let change = in_use as i64 - call.before as i64;
        self.drops[element] += u64::try_from(self.inner - change).unwrap_or(0);
        self.inner = call.outer + change;
    }

    /// The drops of an element; one without outputs drops nothing, it ends a packet's way.
    pub fn drops(&self, element: usize) -> u64 {
        match self.passed[element].is_empty() {
            true => 0,
            false => self.drops[element],
        }
    }

    /// Packets and bytes that left an output.
    pub fn passed(&self, element: usize, output: usize) -> Count {
        self.passed[element][output]
    }
}
