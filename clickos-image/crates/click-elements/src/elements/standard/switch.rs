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
    handlers: &[read_write("switch", |me, _| me.show(), Switch::set)],
    build: |a| {
        let (output, outputs) = (a.or("OUTPUT", 0i64)?, a.outputs());
        let output = usize::try_from(output).ok();
        if let Some(output) = output.filter(|o| *o >= outputs && *o > 0) {
            a.error("OUTPUT", format!("no output {output}"));
        }
        Some(Box::new(Switch { output }))
    },
    live: true,
    ..Class::DEFAULT
};

struct Switch {
    output: Option<usize>,
}

impl Switch {
    fn show(&self) -> Text {
        self.output.map_or_else(|| text(-1), text)
    }

    fn set(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let outputs = view.ports().1;
        on_value(self, view, value, move |me, output: i64, _| {
            me.output = usize::try_from(output).ok().filter(|o| *o < outputs);
        })
    }
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
}
