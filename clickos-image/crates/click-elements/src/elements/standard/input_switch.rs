// SPDX-License-Identifier: Apache-2.0
//! Lets packets of one input pass, which a handler chooses, and drops the others.
//!
//! # Synopsis
//! `InputSwitch([INPUT])`: default 0; negative: all packets are dropped.
//! # Ports
//! any/1, push.
//! # Handlers
//! * `switch` (read, write): INPUT; an input that is not there means -1.
//! # Example
//! `FromDevice(0) -> [0] s :: InputSwitch(1) -> ToDevice(2); FromDevice(1) -> [1] s;`
use crate::prelude::*;
use crate::standard::input_choice;

pub static ELEMENT: Class = Class {
    name: "InputSwitch",
    ports: "-/1",
    processing: "h/h",
    args: &[optional("INPUT")],
    handlers: &[read_write("switch")],
    build: |a| {
        Some(Box::new(InputSwitch {
            input: input_choice::argument(a)?,
        }))
    },
    ..Class::DEFAULT
};

struct InputSwitch {
    input: Option<usize>,
}

impl Element for InputSwitch {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        match self.input == Some(port) {
            true => ctx.push(0, batch),
            false => ctx.recycle(batch),
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
