// SPDX-License-Identifier: Apache-2.0
//! The element that classifies IP packets by a list; its classes differ in what a line of the list says.
use alloc::rc::Rc;

use click_core::Table;
use click_core::offload::{OffloadClaim, Outcome};
use click_core::text::split_args;

use super::offload::{self, Devices};
use super::program::{Program, Syntax};
use crate::flow_log::{self, FlowLog};
use crate::headers::Headers;
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

/// The same, and which rule dropped what.
pub const OFFLOADING_AND_LOGGING: &dyn Table = &[
    CONFIG,
    HITS,
    RESET_HITS,
    PROGRAM,
    RULES,
    OFFLOAD,
    OFFLOAD_STATE,
    flow_log::log(),
    flow_log::log_lost(),
    flow_log::reset_log(),
];
pub const LOGGING: &dyn Table = &[
    CONFIG,
    HITS,
    RESET_HITS,
    PROGRAM,
    RULES,
    flow_log::log(),
    flow_log::log_lost(),
    flow_log::reset_log(),
];

/// Builds an element of such a class from its arguments, which errors call `what`.
pub fn build(a: &mut Args<'_>, syntax: Syntax, what: &str) -> Built {
    let list = a.rest().to_vec();
    match Program::compile(&list, syntax, a.outputs(), a.arg_context()) {
        Ok(program) => Some(Box::new(ClassifyIp {
            program,
            syntax,
            offload: None,
            log: FlowLog::default(),
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
    /// What rules with actions dropped.
    log: FlowLog,
}

part!(ClassifyIp, log: FlowLog);

/// The claims of an element whose decisions the switch is to take.
#[derive(Default)]
struct Offload {
    devices: Devices,
    claims: Vec<(u32, OffloadClaim)>,
    /// Why there are none.
    reason: String,
}

/// Time between two looks at the elements in front, whose configurations may change.
const LOOK_NS: u64 = 1_000_000_000;

impl ClassifyIp {
    /// Another list, of as many outputs.
    fn relist(&self, view: &View<'_>, list: &[String]) -> Result<Change, HandlerError> {
        let compiled = Program::compile(list, self.syntax, view.ports().1, view.arg_context());
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
        *offload = Offload::default();
        match offload::devices(ctx) {
            Ok(devices) => offload.devices = devices,
            Err(reason) => offload.reason = reason,
        }
        let rules = self.program.offload(offload.devices.reassembled);
        if rules.0.is_empty() {
            offload.reason = "the switch can express no drop in front of other rules".to_string();
            return;
        }
        let registry = Rc::clone(&ctx.arg_context().environment.offload);
        let claim = |device: &u32| {
            (
                *device,
                OffloadClaim::new(&registry, *device, rules.clone()),
            )
        };
        offload.claims = offload.devices.numbers.iter().map(claim).collect();
    }

    /// A line for each device.
    fn offload_state(&self) -> String {
        let Some(offload) = &self.offload else {
            return "off".to_string();
        };
        let line = |(device, claim): &(u32, OffloadClaim)| match claim.outcome() {
            None => format!("{device} replaced\n"),
            Some(Outcome::Pending) => format!("{device} asked\n"),
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

/// Notes the packets that were dropped, and by which rule.
#[cold]
fn log_drops<'a>(
    now_ns: u64,
    program: &Program,
    log: &mut FlowLog,
    packets: impl Iterator<Item = (&'a Packet, &'a usize)>,
) {
    for (packet, _) in packets.filter(|(_, way)| **way == DROPPED) {
        if log.has_time(now_ns) {
            let headers = Headers::of(packet);
            log.note(&headers, program.decides(&headers), now_ns);
        }
    }
}

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
        match now == offload.devices {
            true => ctx.set_timer(ctx.now_ns() + LOOK_NS),
            false => self.ask(ctx),
        }
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let (program, log) = (&mut self.program, &mut self.log);
        let logs = cfg!(flow_log) && self.syntax == Syntax::Action;
        distribute(ctx, batch, |ctx, batch, ways| {
            program.classify(batch, ways);
            if logs && ways.contains(&DROPPED) {
                log_drops(ctx.now_ns(), program, log, batch.iter().zip(ways.iter()));
            }
        });
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.program.take_hits(&old.program);
            self.log = core::mem::take(&mut old.log);
            self.offload = old.offload.is_some().then(Offload::default);
            self.ask(ctx);
        }
    }
}
