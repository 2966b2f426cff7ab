// SPDX-License-Identifier: Apache-2.0
//! Pulls from one input, which a handler chooses, without telling whether that input has packets.
//!
//! # Synopsis
//! `SimplePullSwitch([INPUT])`: default 0; negative: there is nothing to pull. Whoever pulls is told of packets at
//! inputs that are not chosen as well, and tries in vain; `PullSwitch` does better.
//! # Ports
//! any/1, pull.
//! # Handlers
//! * `switch` (read, write): INPUT; an input that is not there means -1.
//! # Example
//! `Queue -> [0] s :: SimplePullSwitch(1) -> ToDevice(0); Queue -> [1] s;`
use crate::prelude::*;
use crate::standard::input_choice;

pub static ELEMENT: Class = Class {
    name: "SimplePullSwitch",
    ports: "-/1",
    processing: "l/l",
    args: &[optional("INPUT")],
    handlers: &[read_write("switch")],
    build: |a| {
        Some(Box::new(SimplePullSwitch {
            input: input_choice::argument(a)?,
        }))
    },
    ..Class::DEFAULT
};

struct SimplePullSwitch {
    input: Option<usize>,
}

impl Element for SimplePullSwitch {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        match self.input {
            Some(input) => ctx.pull(input, max),
            None => ctx.batch(),
        }
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
                Ok(Change::of(move |me: &mut Self, _| me.input = input))
            }
            _ => undeclared(handler),
        }
    }
}
