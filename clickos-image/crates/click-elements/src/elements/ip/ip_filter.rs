// SPDX-License-Identifier: Apache-2.0
//! Filters IP packets by rules.
//!
//! # Synopsis
//! `IPFilter(ACTION PATTERN, ...)`: the first RULE whose PATTERN matches decides. ACTION is `allow` (output 0), `deny` or
//! `drop`, or the number of an output; PATTERN is as in `IPClassifier`, `all` matches everything. A packet that no
//! rule matches is dropped.
//! # Ports
//! 1/any, push. The header annotation must be set (`CheckIPHeader`, `MarkIPHeader`).
//! # Handlers
//! * `config` (read, write): the rules, separated by commas; a new list takes effect between two packets, a wrong one
//!   changes nothing.
//! * `hits` (read): for each rule how many packets it decided, and the rule. `reset_hits` (write): sets all to 0.
//! * `program` (read): the rules as a list of steps, in Click's format. `rules` (read): as they were understood.
//! # Example
//! `... -> CheckIPHeader -> fw :: IPFilter(allow icmp, deny tcp dst port 80, allow all) -> ...`
use click_core::text::split_args;

use crate::classify::program::{Program, Syntax};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPFilter",
    ports: "1/-",
    processing: "h/h",
    args: &[rest("RULE")],
    handlers: &[
        read_write("config"),
        read("hits"),
        write("reset_hits"),
        read("program"),
        read("rules"),
    ],
    build: |a| {
        let rules = a.rest().to_vec();
        match Program::compile(&rules, Syntax::Action, a.outputs(), a.surroundings()) {
            Ok(program) => Some(Box::new(IPFilter { program })),
            Err(messages) => {
                messages.iter().for_each(|message| a.error("RULE", message));
                None
            }
        }
    },
    ..Class::DEFAULT
};

struct IPFilter {
    program: Program,
}

impl InPlace for IPFilter {
    fn way(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match self.program.classify(packet) {
            Some(output) => output,
            None => DROPPED,
        }
    }
}

impl Element for IPFilter {
    in_place!();

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "hits" => text(self.program.hits()),
            "program" => text(self.program.listing()),
            "rules" => text(self.program.text()),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "config" => {
                let compiled = Program::compile(
                    &split_args(value),
                    Syntax::Action,
                    view.ports.1,
                    view.surroundings,
                );
                let mut program =
                    compiled.map_err(|messages| HandlerError::rejected(messages.join("\n")))?;
                Ok(Change::of(move |me: &mut Self, _| {
                    program.take_hits(&me.program);
                    me.program = program;
                }))
            }
            "reset_hits" => on_write(|me: &mut Self, _| me.program.reset_hits()),
            _ => undeclared(handler),
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.program.take_hits(&old.program);
        }
    }
}
