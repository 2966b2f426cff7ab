// SPDX-License-Identifier: Apache-2.0
//! The element that classifies IP packets by a list; its classes differ in what a line of the list says.
use click_core::text::split_args;

use super::program::{Program, Syntax};
use crate::outputs::Outputs;
use crate::prelude::*;

/// A class that classifies IP packets; name, arguments and `build` have to be set.
pub const CLASS: Class = Class {
    ports: "1/-",
    processing: "h/h",
    handlers: &[
        read_write(
            "config",
            |_: &mut ClassifyIp, view| text(view.config()),
            |me, view, value| me.relist(view, &split_args(value)),
        ),
        read("hits", |me, _| text(me.program.hits())),
        write("reset_hits", run!(|me, _| me.program.reset_hits())),
        read("program", |me, _| text(me.program.listing())),
        read("rules", |me, _| text(me.program.text())),
    ],
    ..Class::DEFAULT
};

/// Builds an element of such a class from its arguments, which errors call `what`.
pub fn build(a: &mut Args<'_>, syntax: Syntax, what: &str) -> Built {
    let list = a.rest().to_vec();
    match Program::compile(&list, syntax, a.outputs(), a.surroundings()) {
        Ok(program) => Some(Box::new(ClassifyIp {
            program,
            syntax,
            outputs: Outputs::new(a.outputs()),
        })),
        Err(messages) => {
            messages.iter().for_each(|message| a.error(what, message));
            None
        }
    }
}

/// An element of such a class.
pub struct ClassifyIp {
    program: Program,
    syntax: Syntax,
    outputs: Outputs,
}

impl ClassifyIp {
    /// Another list, of as many outputs.
    fn relist(&self, view: &View<'_>, list: &[String]) -> Result<Change, HandlerError> {
        let compiled = Program::compile(list, self.syntax, view.ports().1, view.surroundings());
        let rejected = |messages: Vec<String>| HandlerError::rejected(messages.join("\n"));
        let mut program = compiled.map_err(rejected)?;
        Ok(Change::of(move |me: &mut Self, _| {
            program.take_hits(&me.program);
            me.program = program;
        }))
    }
}

/// The handler `pattern` of an output.
pub const PATTERN: Handler<ClassifyIp> = read_write(
    "pattern",
    |_, view| {
        let list = split_args(view.config());
        list.get(view.port).map_or_else(|| Err(missing()), text)
    },
    |me, view, value| {
        let mut list = split_args(view.config());
        *list.get_mut(view.port).ok_or_else(missing)? = value.to_string();
        me.relist(view, &list)
    },
);

fn missing() -> HandlerError {
    HandlerError::rejected("the output has no pattern")
}

impl Element for ClassifyIp {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.outputs.look_around(ctx);
        Ok(())
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let program = &mut self.program;
        self.outputs
            .distribute(ctx, batch, |_, batch, ways| program.classify(batch, ways));
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.program.take_hits(&old.program);
        }
    }
}
