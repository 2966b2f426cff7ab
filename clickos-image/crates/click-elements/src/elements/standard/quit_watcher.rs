// SPDX-License-Identifier: Apache-2.0
//! Stops the router when an element has no more work.
//!
//! # Synopsis
//! `QuitWatcher(ELEMENT, ...)`: every 10 ms it looks whether the named elements have their tasks scheduled or
//! their timers set; when one has neither, the router stops.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! An element whose timer is set has work, too.
//! # Example
//! `s :: InfiniteSource(LIMIT 1000) -> ToDump(out.pcap); QuitWatcher(s);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "QuitWatcher",
    ports: "0/0",
    args: &[rest("ELEMENT")],
    build: |a| {
        Some(Box::new(QuitWatcher {
            elements: a.rest().to_vec(),
        }))
    },
    ..Class::DEFAULT
};

const PERIOD_NS: u64 = 10_000_000;

struct QuitWatcher {
    elements: Vec<String>,
}

impl Element for QuitWatcher {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let unknown = |name: &&String| ctx.has_work(name).is_none();
        if let Some(name) = self.elements.iter().find(unknown) {
            return Err(format!("ELEMENT: no element \"{name}\""));
        }
        ctx.set_timer(ctx.now_ns().saturating_add(PERIOD_NS));
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let idle = |name: &String| ctx.has_work(name) == Some(false);
        if self.elements.iter().any(idle) {
            ctx.stop();
        } else {
            ctx.set_timer(ctx.now_ns().saturating_add(PERIOD_NS));
        }
    }
}
