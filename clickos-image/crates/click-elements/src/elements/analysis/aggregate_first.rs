// SPDX-License-Identifier: Apache-2.0
//! Lets the first packet of each aggregate pass.
//!
//! # Synopsis
//! `AggregateFirst([NOTIFIER, CAPACITY])`: an aggregate is known by its annotation. CAPACITY (default: as many as the router
//! allows flows): groups of 16 numbers that can be remembered. NOTIFIER names an element that numbers flows; it has no effect,
//! since no number is used twice.
//! # Ports
//! 1/1-2, agnostic. Later packets of an aggregate, and those of numbers for which there is no room, leave by output 1 (push), or
//! are dropped.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! NOTIFIER has no effect.
//! # Example
//! `FromDump(in.pcap, STOP true) -> af :: AggregateIPFlows -> AggregateFirst -> ToIPSummaryDump(-, FIELDS src sport dst dport);`
use click_core::anno::AGGREGATE;

use crate::flows::Counts;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AggregateFirst",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[keyword("NOTIFIER"), keyword("CAPACITY")],
    build: |a| {
        let most = a.environment().limits.flows;
        let (notifier, capacity) = (a.opt("NOTIFIER"), a.or("CAPACITY", most)?);
        if capacity > most {
            let message = format!("{capacity} is out of range, the most is {most}");
            a.error("CAPACITY", message);
        }
        Some(Box::new(AggregateFirst {
            notifier: notifier?,
            seen: Counts::new(capacity, 1),
            capacity,
        }))
    },
    ..Class::DEFAULT
};

struct AggregateFirst {
    notifier: Option<String>,
    /// 1 for each number that was seen.
    seen: Counts,
    capacity: usize,
}

impl InPlace for AggregateFirst {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let number = packet.anno().u32(AGGREGATE);
        let first = self.seen.get(number) == 0 && self.seen.add(number, 1);
        usize::from(!first)
    }
}

impl Element for AggregateFirst {
    in_place!(plain);

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.seen = Counts::new(self.capacity, ctx.random());
        let missing = self.notifier.iter().find(|name| !ctx.has_elements(name));
        let message = |name| Err(format!("NOTIFIER: no element \"{name}\""));
        missing.map_or(Ok(()), message)
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            core::mem::swap(&mut self.seen, &mut old.seen);
        }
    }
}
