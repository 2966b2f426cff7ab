// SPDX-License-Identifier: Apache-2.0
//! Sends all packets out of one output, which a handler chooses.
//!
//! # Synopsis
//! `Switch([OUTPUT])`: default 0; negative: packets are dropped.
//! # Ports
//! 1/any, push.
//! # Handlers
//! * `switch` (read, write): OUTPUT; an output that is not there means -1.
//! # Example
//! `FromDevice(0) -> s :: Switch(1); s[0] -> ToDevice(1); s[1] -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Switch",
    ports: "1/-",
    processing: "h/h",
    args: &[optional("OUTPUT")],
    handlers: &[read_write("switch")],
    build: |a| {
        let (output, outputs) = (a.or("OUTPUT", 0i64)?, a.outputs());
        let output = usize::try_from(output).ok();
        if let Some(output) = output.filter(|o| *o >= outputs && *o > 0) {
            a.error("OUTPUT", format!("there is no output {output}"));
        }
        Some(Box::new(Switch { output }))
    },
    ..Class::DEFAULT
};

struct Switch {
    output: Option<usize>,
}

impl Element for Switch {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        match self.output {
            Some(output) => ctx.push(output, batch),
            None => ctx.recycle(batch),
        }
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match (handler, self.output) {
            ("switch", Some(output)) => text(output),
            ("switch", None) => text(-1),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        let outputs = view.ports.1;
        match handler {
            "switch" => on_value(view, value, move |me: &mut Self, output: i64, _| {
                me.output = usize::try_from(output).ok().filter(|o| *o < outputs);
            }),
            _ => undeclared(handler),
        }
    }
}
