// SPDX-License-Identifier: Apache-2.0
//! Pulls from one input, which a handler chooses.
//!
//! # Synopsis
//! `PullSwitch([INPUT])`: default 0; negative: there is nothing to pull. The puller
//! sleeps while the chosen input is empty.
//! # Ports
//! any/1, pull.
//! # Handlers
//! * `switch` (read, write): INPUT; an input that is not there means -1.
//! # Example
//! `Queue -> [0] s :: PullSwitch(1) -> ToDevice(0); Queue -> [1] s;`
use crate::prelude::*;
use crate::standard::input_choice::{CLASS, InputChoice};

pub static ELEMENT: Class = Class {
    name: "PullSwitch",
    processing: "l/l",
    build: |a| Some(Box::new(PullSwitch(InputChoice::argument(a)?))),
    handlers: &[read_write(
        "switch",
        |me: &mut PullSwitch, _| me.0.show(),
        PullSwitch::set_switch,
    )],
    live: true,
    ..CLASS
};

struct PullSwitch(InputChoice);

impl PullSwitch {
    /// Returns whether the chosen input may have packets.
    fn tell(&mut self, ctx: &mut Context<'_>) {
        let readable = self.0.0.is_some_and(|input| ctx.readable(input));
        ctx.set_readable(readable);
    }
}

impl PullSwitch {
    fn set_switch(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let chosen = InputChoice::parse(view, value)?;
        Ok(Change::of(move |me: &mut Self, ctx| {
            me.0 = chosen;
            me.tell(ctx);
        }))
    }
}

impl Element for PullSwitch {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_readable(self.0.0.is_some());
        Ok(())
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let batch = self.0.pull_from(ctx, max);
        if batch.is_empty() {
            self.tell(ctx);
        }
        batch
    }

    /// An input has packets.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        self.tell(ctx);
        false
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if replaced::<Self>(ctx, old).is_some() {
            self.tell(ctx);
        }
    }
}
