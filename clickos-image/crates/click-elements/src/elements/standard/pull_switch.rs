// SPDX-License-Identifier: Apache-2.0
//! Pulls from one input, which a handler chooses.
//!
//! # Synopsis
//! `PullSwitch([INPUT])`: default 0; negative: there is nothing to pull. Whoever pulls sleeps while the chosen input
//! has nothing.
//! # Ports
//! any/1, pull.
//! # Handlers
//! * `switch` (read, write): INPUT; an input that is not there means -1.
//! # Example
//! `Queue -> [0] s :: PullSwitch(1) -> ToDevice(0); Queue -> [1] s;`
use crate::prelude::*;
use crate::standard::input_choice;

pub static ELEMENT: Class = Class {
    name: "PullSwitch",
    ports: "-/1",
    processing: "l/l",
    args: &[optional("INPUT")],
    handlers: &[read_write("switch")],
    build: |a| {
        Some(Box::new(PullSwitch {
            input: input_choice::argument(a)?,
        }))
    },
    ..Class::DEFAULT
};

struct PullSwitch {
    input: Option<usize>,
}

impl PullSwitch {
    /// Tells whether the chosen input may have packets.
    fn tell(&mut self, ctx: &mut Context<'_>) {
        let readable = self.input.is_some_and(|input| ctx.readable(input));
        ctx.set_readable(readable);
    }
}

impl Element for PullSwitch {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_readable(self.input.is_some());
        Ok(())
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let batch = match self.input {
            Some(input) => ctx.pull(input, max),
            None => ctx.batch(),
        };
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

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "switch" => input_choice::show(self.input),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "switch" => {
                let input = input_choice::parse(view, value)?;
                Ok(Change::of(move |me: &mut Self, ctx| {
                    me.input = input;
                    me.tell(ctx);
                }))
            }
            _ => undeclared(handler),
        }
    }
}
