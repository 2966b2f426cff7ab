// SPDX-License-Identifier: Apache-2.0
//! The element that classifies IP packets by a list; its classes differ in what a line of the list says.
use alloc::rc::Rc;

use click_core::Table;
use click_core::offload::{Claim, Outcome};
use click_core::text::split_args;

use super::offload;
use super::program::{Program, Syntax};
use crate::outputs::distribute;
use crate::prelude::*;

/// A class that classifies IP packets; name, arguments and `build` have to be set.
pub const CLASS: Class = Class {
    ports: "1/-",
    processing: "h/h",
    handlers: &[CONFIG, HITS, RESET_HITS, PROGRAM, RULES],
    ..Class::DEFAULT
};

pub const CONFIG: Handler<ClassifyIp> = read_write(
    "config",
    |_, view| text(view.config()),
    |me, view, value| me.relist(view, &split_args(value)),
);
pub const HITS: Handler<ClassifyIp> = read("hits", |me, _| text(me.program.hits()));
pub const RESET_HITS: Handler<ClassifyIp> =
    command("reset_hits", run!(|me, _| me.program.reset_hits()));
pub const PROGRAM: Handler<ClassifyIp> = read("program", |me, _| text(me.program.listing()));
pub const RULES: Handler<ClassifyIp> = read("rules", |me, _| text(me.program.text()));
pub const OFFLOAD: Handler<ClassifyIp> = read_write(
    "offload",
    |me, _| text(me.offload.is_some()),
    set!(|me, offload: bool, ctx| {
        me.offload = offload.then(Offload::default);
        me.ask(ctx);
    }),
);
pub const OFFLOAD_STATE: Handler<ClassifyIp> =
    read("offload_state", |me, _| text(me.offload_state()));

/// The handlers of a class whose decisions the switch can take.
pub const OFFLOADING: &dyn Table = &[
    CONFIG,
    HITS,
    RESET_HITS,
    PROGRAM,
    RULES,
    OFFLOAD,
    OFFLOAD_STATE,
];

/// Builds an element of such a class from its arguments, which errors call `what`.
pub fn build(a: &mut Args<'_>, syntax: Syntax, what: &str) -> Built {
    let list = a.rest().to_vec();
    match Program::compile(&list, syntax, a.outputs(), a.surroundings()) {
        Ok(program) => Some(Box::new(ClassifyIp {
            program,
            syntax,
            offload: None,
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
    /// The switch is to take decisions.
    offload: Option<Offload>,
}

/// The claims of an element whose decisions the switch is to take.
#[derive(Default)]
struct Offload {
    claims: Vec<(u32, Claim)>,
    /// Why there are none.
    reason: String,
}

/// Time between two looks at the elements in front, whose configurations may change.
const LOOK_NS: u64 = 1_000_000_000;

impl ClassifyIp {
    /// Another list, of as many outputs.
    fn relist(&self, view: &View<'_>, list: &[String]) -> Result<Change, HandlerError> {
        let compiled = Program::compile(list, self.syntax, view.ports().1, view.surroundings());
        let rejected = |messages: Vec<String>| HandlerError::rejected(messages.join("\n"));
        let mut program = compiled.map_err(rejected)?;
        Ok(Change::of(move |me: &mut Self, ctx| {
            program.take_hits(&me.program);
            me.program = program;
            me.ask(ctx);
        }))
    }
}

impl ClassifyIp {
    /// Asks the switch for the decisions of the list as it is now.
    fn ask(&mut self, ctx: &mut Context<'_>) {
        if !cfg!(offload) {
            return;
        }
        let Some(offload) = &mut self.offload else {
            return;
        };
        ctx.set_timer(ctx.now_ns() + LOOK_NS);
        let rules = self.program.offload();
        let found = match rules.0.is_empty() {
            true => Err("the switch can express no drop in front of other rules".to_string()),
            false => offload::devices(ctx),
        };
        let board = Rc::clone(&ctx.surroundings().environment.offload);
        let claim = |device| (device, Claim::new(&board, device, rules.clone()));
        let (claims, reason) = match found {
            Ok(devices) => (devices.into_iter().map(claim).collect(), String::new()),
            Err(reason) => (Vec::new(), reason),
        };
        *offload = Offload { claims, reason };
    }

    /// A line for each device.
    fn offload_state(&self) -> String {
        let Some(offload) = &self.offload else {
            return "off".to_string();
        };
        let line = |(device, claim): &(u32, Claim)| match claim.outcome() {
            None => format!("{device} replaced\n"),
            Some(Outcome::Asked) => format!("{device} asked\n"),
            Some(Outcome::Active) => format!("{device} active\n"),
            Some(Outcome::Refused(reason)) => format!("{device} refused: {reason}\n"),
        };
        let lines: String = offload.claims.iter().map(line).collect();
        format!("{}{lines}", offload.reason)
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
    fn is_plain(&self) -> bool {
        true
    }

    /// Looks if the way of the packets still is the one before.
    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if !cfg!(offload) {
            return;
        }
        let Some(offload) = &self.offload else {
            return;
        };
        let now = offload::devices(ctx).unwrap_or_default();
        match now
            .iter()
            .eq(offload.claims.iter().map(|(device, _)| device))
        {
            true => ctx.set_timer(ctx.now_ns() + LOOK_NS),
            false => self.ask(ctx),
        }
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let program = &mut self.program;
        distribute(ctx, batch, |_, batch, ways| program.classify(batch, ways));
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.program.take_hits(&old.program);
            self.offload = old.offload.is_some().then(Offload::default);
            self.ask(ctx);
        }
    }
}
