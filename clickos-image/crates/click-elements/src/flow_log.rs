// SPDX-License-Identifier: Apache-2.0
//! Which rule dropped what: the flows of dropped packets, as many as there are places for.
//!
//! It costs nothing for packets that pass. Of those that are dropped, it looks at a hundred a second at most.
use alloc::collections::VecDeque;

use click_core::{Limits, listing};

use crate::carried::age_ms;
use crate::guard::ends::Ends;
use crate::guard::seen;
use crate::headers::Headers;
use crate::prelude::*;

/// Flows; the one that was dropped first goes for a new one.
const PLACES: usize = 128;
/// Packets that are looked at in a second; others are counted.
const LOOKS: u32 = 100;
const SECOND_NS: u64 = 1_000_000_000;
/// Characters of a reason.
const REASON: usize = 100;

/// Packets of one flow that were dropped for one reason.
struct Entry {
    ends: Ends,
    reason: String,
    packets: u64,
    last_ns: u64,
}

/// The flows, those that were dropped last at the end.
#[derive(Default)]
pub struct FlowLog {
    entries: VecDeque<Entry>,
    since_ns: u64,
    looks: u32,
    lost: u64,
}

impl FlowLog {
    /// True if one more packet may be looked at now; else it is counted.
    pub fn has_time(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.since_ns) >= SECOND_NS {
            (self.since_ns, self.looks) = (now_ns, 0);
        }
        self.looks += 1;
        if self.looks > LOOKS {
            (self.looks, self.lost) = (LOOKS, self.lost + 1);
            return false;
        }
        true
    }

    /// Adds a packet that was dropped.
    pub fn note(&mut self, headers: &Headers<'_>, reason: &str, now_ns: u64) {
        let Some(ends) = seen::ends(headers) else {
            return;
        };
        let reason: String = reason.chars().take(REASON).collect();
        let known = |entry: &Entry| entry.ends == ends && entry.reason == reason;
        let before = self.entries.iter().position(known);
        let before = before.and_then(|at| self.entries.remove(at));
        if self.entries.len() == PLACES {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry {
            ends,
            reason,
            packets: 1 + before.map_or(0, |entry| entry.packets),
            last_ns: now_ns,
        });
    }

    /// A line for each flow, the newest first: milliseconds since its last packet, packets, protocol, addresses and
    /// ports, and the reason.
    pub fn text(&self, limits: &Limits, now_ns: u64) -> String {
        let line = |entry: &Entry| {
            let Entry {
                ends,
                reason,
                packets,
                last_ns,
            } = entry;
            format!("{} {packets} {ends} {reason}\n", age_ms(now_ns, *last_ns))
        };
        listing(limits, self.entries.iter().rev().map(line))
    }

    /// Packets that were not looked at.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The handler `log`.
pub const fn log<T: Part<FlowLog>>() -> Handler<T> {
    read("log", |me, view| {
        let limits = &view.arg_context().environment.limits;
        Ok(me.part().text(limits, view.now_ns()))
    })
}

/// The handler `log_lost`.
pub const fn log_lost<T: Part<FlowLog>>() -> Handler<T> {
    read("log_lost", |me, _| text(me.part().lost()))
}

/// The handler `reset_log`.
pub const fn reset_log<T: Part<FlowLog>>() -> Handler<T> {
    command(
        "reset_log",
        run!(|me: &mut T, _| *me.part_mut() = FlowLog::default()),
    )
}
