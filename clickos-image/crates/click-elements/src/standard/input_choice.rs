// SPDX-License-Identifier: Apache-2.0
//! Elements that take packets from one of several inputs, which a handler chooses.
use crate::prelude::*;

/// A class of such elements; name, `processing` and, if it tells whether there are packets, `build` have to be set.
pub const CLASS: Class = Class {
    ports: "-/1",
    args: &[optional("INPUT")],
    handlers: &[read_write(
        "switch",
        |me: &mut InputChoice, _| me.show(),
        InputChoice::set_switch,
    )],
    build: |a| Some(Box::new(InputChoice::argument(a)?)),
    ..Class::DEFAULT
};

/// The chosen input, if there is one.
pub struct InputChoice(pub Option<usize>);

impl InputChoice {
    /// Reads argument INPUT, default 0.
    pub fn argument(a: &mut Args<'_>) -> Option<Self> {
        Some(Self::among(a.or("INPUT", 0i64)?, a.inputs()))
    }

    /// The value of the handler.
    pub fn parse(view: &View<'_>, value: &str) -> Result<Self, HandlerError> {
        Ok(Self::among(view.parse(value)?, view.ports().0))
    }

    /// An input that is not there means none.
    fn among(input: i64, inputs: usize) -> Self {
        Self(usize::try_from(input).ok().filter(|i| *i < inputs))
    }

    /// The handler's value: -1 for none.
    pub fn show(&self) -> Text {
        self.0.map_or_else(|| text(-1), text)
    }

    /// Pulls from it.
    pub fn pull_from(&self, ctx: &mut Context<'_>, max: usize) -> Batch {
        match self.0 {
            Some(input) => ctx.pull(input, max),
            None => ctx.batch(),
        }
    }
}

impl InputChoice {
    fn set_switch(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let chosen = Self::parse(view, value)?;
        Ok(Change::of(move |me: &mut Self, _| *me = chosen))
    }
}

impl Element for InputChoice {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        match self.0 == Some(port) {
            true => ctx.push(0, batch),
            false => ctx.recycle(batch),
        }
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        self.pull_from(ctx, max)
    }
}
