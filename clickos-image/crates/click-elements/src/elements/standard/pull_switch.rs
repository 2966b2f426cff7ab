// SPDX-License-Identifier: Apache-2.0
//! Pulls from one input, which a handler chooses.
//!
//! # Synopsis
//! `PullSwitch([INPUT])`: default 0; negative: there is nothing to pull. `SimplePullSwitch` is the same class.
//! # Ports
//! any/1, pull.
//! # Handlers
//! * `switch` (read, write): INPUT; an input that is not there means -1.
//! # Example
//! `Queue -> [0] s :: PullSwitch(1) -> ToDevice(0); Queue -> [1] s;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PullSwitch",
    aliases: &["SimplePullSwitch"],
    ports: "-/1",
    processing: "l/l",
    args: &[optional("INPUT")],
    handlers: &[read_write("switch")],
    build: |a| {
        let (input, inputs) = (a.or("INPUT", 0i64)?, a.inputs());
        let input = usize::try_from(input).ok();
        if let Some(input) = input.filter(|i| *i >= inputs && *i > 0) {
            a.error("INPUT", format!("there is no input {input}"));
        }
        Some(Box::new(PullSwitch { input }))
    },
    ..Class::DEFAULT
};

struct PullSwitch {
    input: Option<usize>,
}

impl Element for PullSwitch {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        match self.input {
            Some(input) => ctx.pull(input, max),
            None => ctx.batch(),
        }
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match (handler, self.input) {
            ("switch", Some(input)) => text(input),
            ("switch", None) => text(-1),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        let inputs = view.ports.0;
        match handler {
            "switch" => on_value(view, value, move |me: &mut Self, input: i64, _| {
                me.input = usize::try_from(input).ok().filter(|i| *i < inputs);
            }),
            _ => undeclared(handler),
        }
    }
}
