// SPDX-License-Identifier: Apache-2.0
//! Sorts IP packets by patterns.
//!
//! # Synopsis
//! `IPClassifier(PATTERN, ...)`: output n gets the packets whose first matching PATTERN is the n-th, counted from 0;
//! a packet that matches none is dropped. PATTERN combines tests with `and`, `or`, `not` (`&&`, `||`, `!`),
//! `a ? b : c` and parentheses; tests beside each other mean `and`. `-`, `any` and `all` match everything. Tests:
//! * `ip proto NAME`, `[src|dst|src or dst|src and dst] host ADDRESS`, `... net ADDRESS/PREFIX`,
//!   `... [tcp|udp] port PORT`, `icmp type TYPE`, `tcp opt FLAG`, `tcp win N`, `... ether host ADDRESS`;
//! * `ip vers|hl|len|id|tos|dscp|ttl N`, `ip ect`, `ip ce`, `ip frag`, `ip unfrag`, `true`, `false`;
//! * `ip[POS:LEN] N`, `tcp[POS:LEN] N`, `transp[POS:LEN] N`: bytes of a header.
//!
//! Before a value `==`, `!=`, `<`, `>`, `<=`, `>=` may stand, and `& MASK` before those. What is clear may be left out:
//! `tcp`, `www`, `syn`, `10.0.0.0/8`, `src port 80 or 81`. Tests of transport headers are true of first fragments
//! only; a test of a field that is not there is false.
//! # Ports
//! 1/any, push; as many outputs as patterns. The header annotation must be set.
//! # Handlers
//! * `config` (read, write): the patterns, as many as before. `hits` (read): for each pattern how many packets matched.
//! * `reset_hits` (write): sets them to 0. `rules` (read): the patterns as they were understood.
//! * `program` (read): the patterns as a list of steps, in Click's format.
//! # Example
//! `... -> CheckIPHeader -> c :: IPClassifier(icmp type echo, tcp dst port 80, -);`
use click_core::text::split_args;

use crate::classify::program::{Program, Syntax};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPClassifier",
    ports: "1/-",
    processing: "h/h",
    args: &[rest("PATTERN")],
    handlers: &[
        read_write("config"),
        read("hits"),
        write("reset_hits"),
        read("program"),
        read("rules"),
    ],
    build: |a| {
        let patterns = a.rest().to_vec();
        match compile(&patterns, a.outputs(), a.surroundings()) {
            Ok(program) => Some(Box::new(IPClassifier { program })),
            Err(messages) => {
                messages
                    .iter()
                    .for_each(|message| a.error("PATTERN", message));
                None
            }
        }
    },
    ..Class::DEFAULT
};

fn compile(
    patterns: &[String],
    outputs: usize,
    at: click_core::Surroundings<'_>,
) -> Result<Program, Vec<String>> {
    if patterns.len() != outputs {
        return Err(Vec::from([format!(
            "{} patterns for {outputs} outputs",
            patterns.len()
        )]));
    }
    Program::compile(patterns, Syntax::Position, outputs, at)
}

struct IPClassifier {
    program: Program,
}

impl InPlace for IPClassifier {
    fn way(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match self.program.classify(packet) {
            Some(output) => output,
            None => DROPPED,
        }
    }
}

impl Element for IPClassifier {
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
                let compiled = compile(&split_args(value), view.ports.1, view.surroundings);
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
