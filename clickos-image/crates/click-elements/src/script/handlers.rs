// SPDX-License-Identifier: Apache-2.0
//! The handlers of scripts.
use super::Script;
use super::functions::{self, FUNCTIONS};
use super::own::{accessible, cat, kill, random};
use crate::prelude::*;

/// Handlers of every script: its own and one per function.
pub static HANDLERS: [Handler<Script>; OWN.len() + FUNCTIONS.len()] = all();

const fn all() -> [Handler<Script>; OWN.len() + FUNCTIONS.len()] {
    let mut all = [OWN[0]; OWN.len() + FUNCTIONS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at < OWN.len() {
            true => OWN[at],
            false => read(FUNCTIONS[at - OWN.len()].0, Script::function),
        };
        at += 1;
    }
    all
}

/// The handler `run`, which a script cannot call while it runs.
const RUN: &str = "run";

const OWN: [Handler<Script>; 15] = [
    read_command(
        RUN,
        |me, view| me.run_on_read(view),
        |me, view, value| Ok(me.run_on_write(view, value)),
    ),
    command("step", |me, view, value| {
        let steps = match value {
            "" => 1,
            _ => view.parse(value)?,
        };
        on_write(me, move |me, ctx| me.step(ctx, steps))
    }),
    command("goto", Script::goto),
    edit("set", |me, _, value| {
        let value = value.to_string();
        on_write(me, move |me, ctx| {
            if let Err(message) = me.set_from(ctx, &value) {
                me.complain(ctx, &message);
            }
        })
    }),
    read("get", |me, view| {
        let value = me.variable(view.param().trim());
        value.map(String::from).ok_or_else(|| {
            let name = view.param().shown();
            HandlerError::rejected(format!("get: no variable \"{name}\""))
        })
    }),
    read("vars", |me, _| {
        let variables = me.variables.iter();
        Ok(variables.map(|(n, v)| format!("{n} {v}\n")).collect())
    }),
    read("status", |me, _| text(me.status)),
    read("shift", |me, view| Ok(me.shift(view.param().trim()))),
    read("random", |_, view| checked(random(view))),
    read("now", |_, view| {
        let now = view.now_ns();
        Ok(format!(
            "{}.{:09}",
            now / 1_000_000_000,
            now % 1_000_000_000
        ))
    }),
    read("readable", |_, view| text(accessible(view, true))),
    read("writable", |_, view| text(accessible(view, false))),
    read("cat", |_, view| checked(cat(view, false))),
    read("catq", |_, view| checked(cat(view, true))),
    read("kill", |_, view| checked(kill(view))),
];

/// The handlers that a script exports, and all others of a script of type PROXY.
pub static ANY: [Handler<Script>; 1] = [read_write(
    "",
    |me, view| match me.exported(view.handler) {
        Some(value) => Ok(value),
        None => me.run_on_read(view),
    },
    |me, view, value| Ok(me.run_on_write(view, value)),
)];

/// The value, or its fault as a refusal.
fn checked(value: Result<String, String>) -> Text {
    value.map_err(HandlerError::rejected)
}

impl Script {
    /// Calls one of the functions, unless a variable of its name is exported.
    fn function(&mut self, view: &mut View<'_>) -> Text {
        match self.exported(view.handler) {
            Some(value) => Ok(value),
            None => checked(functions::call(view.handler, view.param())),
        }
    }

    /// The value of an exported variable.
    fn exported(&self, name: &str) -> Option<String> {
        let is_exported = self.exported.iter().any(|e| e == name);
        self.variable(name)
            .filter(|_| is_exported)
            .map(String::from)
    }

    /// A handler as the running script reads it itself; `None` if it is not one of the script.
    pub(super) fn own(
        &mut self,
        ctx: &mut Context<'_>,
        handler: &str,
        param: &str,
    ) -> Option<Result<String, String>> {
        let mut all = HANDLERS.iter().filter(|h| h.name != RUN && h.get.is_some());
        let Some(found) = all.find(|h| h.name == handler) else {
            return self.exported(handler).map(Ok);
        };
        let value = found.get?(self, &mut ctx.view(handler, param));
        Some(value.map_err(HandlerError::into_message))
    }

    fn goto(&self, _view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let Some(at) = self.label(value) else {
            let label = value.shown();
            return Err(HandlerError::rejected(format!("no label \"{label}\"")));
        };
        on_write(self, move |me, ctx| {
            ctx.clear_timer();
            me.at = at;
            me.go_on(ctx);
        })
    }

    fn run_on_read(&mut self, view: &mut View<'_>) -> Text {
        let (handler, param) = (view.handler, view.param());
        self.run_handler(&mut view.ctx(), handler, param, false)
    }

    fn run_on_write(&self, view: &View<'_>, value: &str) -> Change {
        let (handler, value) = (view.handler.to_string(), value.to_string());
        Change::of(move |me: &mut Self, ctx| {
            if let Err(error) = me.run_handler(ctx, &handler, &value, true) {
                me.complain(ctx, &error.to_string());
            }
        })
    }
}
