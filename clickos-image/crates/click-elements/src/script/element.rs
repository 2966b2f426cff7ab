// SPDX-License-Identifier: Apache-2.0
//! A script as an element: when it starts, steps, and answers.
use click_core::text;
use click_core::{HandlerInfo, Kind as HandlerKind};

use super::run::Outcome;
use super::{HANDLERS, Kind, Script, State};
use crate::prelude::*;

impl Script {
    /// Continues with a script that runs by itself, and deals with its end.
    pub(super) fn go_on(&mut self, ctx: &mut Context<'_>) {
        let outcome = self.advance(ctx);
        if let Outcome::Failed(message) = &outcome {
            if !message.is_empty() {
                self.complain(ctx, message);
            }
        }
        if outcome != Outcome::Blocked && self.kind == Kind::Driver {
            ctx.leave_stops();
            ctx.stop();
        }
    }

    /// Leaves up to `steps` blocking instructions behind.
    pub(super) fn step(&mut self, ctx: &mut Context<'_>, steps: u64) {
        let mut left = steps;
        while left > 0 {
            match self.state {
                State::Paused(count) if count > left => {
                    self.state = State::Paused(count - left);
                    return;
                }
                State::Paused(count) => left -= count,
                State::Waiting => left -= 1,
                State::Resting | State::Ready => return,
            }
            ctx.clear_timer();
            self.go_on(ctx);
        }
    }

    /// Calls the script as a handler.
    pub(super) fn run_handler(
        &mut self,
        ctx: &mut Context<'_>,
        handler: &str,
        param: &str,
        write: bool,
    ) -> Text {
        let words = text::split_words(param);
        let mut own = vec![
            ("0", handler.to_string()),
            ("args", param.to_string()),
            ("#", words.len().to_string()),
            ("write", write.to_string()),
        ];
        let numbers: Vec<String> = (1..=words.len().min(MAX_NUMBERED))
            .map(|n| n.to_string())
            .collect();
        own.extend(numbers.iter().map(String::as_str).zip(words));
        match self.call_with(ctx, own) {
            Outcome::Return(value) => Ok(value),
            Outcome::Failed(message) => Err(HandlerError::rejected(message)),
            Outcome::Exit => {
                self.forget_signals(ctx);
                Ok(String::new())
            }
            Outcome::Blocked | Outcome::End => Ok(String::new()),
        }
    }

    /// `exit` in a script of type SIGNAL: the signals do again what they did before.
    fn forget_signals(&self, ctx: &Context<'_>) {
        if let (Kind::Signal, Some(host)) = (self.kind, ctx.host()) {
            host.forget_signals(ctx.name());
        }
    }

    /// The output a packet leaves by, if it does.
    fn judge(&mut self, ctx: &mut Context<'_>, port: usize) -> Option<usize> {
        match self.call_with(ctx, vec![("input", port.to_string())]) {
            Outcome::Return(value) => value.trim().parse().ok(),
            Outcome::End | Outcome::Blocked => Some(0),
            Outcome::Exit => None,
            Outcome::Failed(message) => {
                self.complain(ctx, &message);
                None
            }
        }
    }
}

/// `$1` to `$99`.
const MAX_NUMBERED: usize = 99;

impl Element for Script {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.initialize_variables(ctx)?;
        if self.kind == Kind::Driver && !ctx.manage_stops() {
            return Err("another element manages the driver already".to_string());
        }
        if let (Kind::Signal, Some(host)) = (self.kind, ctx.host()) {
            let mut signals = self.signals.iter();
            signals.try_for_each(|signal| host.watch_signal(ctx.name(), signal))?;
        }
        if matches!(self.kind, Kind::Active | Kind::Driver) {
            self.state = State::Ready;
            // as Click, whose manager begins while the router starts, before all scripts
            let is_manager = self.kind == Kind::Driver;
            ctx.set_timer(if is_manager { 0 } else { ctx.now_ns() });
        }
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if matches!(self.state, State::Ready | State::Waiting) {
            self.go_on(ctx);
        }
    }

    fn stop_requested(&mut self, ctx: &mut Context<'_>) {
        match self.state {
            // as Click: a stop ends a wait and the blocking instruction behind it
            State::Waiting => self.step(ctx, 2),
            State::Paused(_) => self.step(ctx, 1),
            State::Resting | State::Ready => {}
        }
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            if let Some(output) = self.judge(ctx, port) {
                ctx.push_one(output, packet);
            }
        }
        ctx.recycle(batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(port, max);
        let mut kept = ctx.batch();
        for packet in batch.drain_front(usize::MAX) {
            match self.judge(ctx, port) {
                Some(output) if output == port => kept.push_back(packet),
                Some(output) => ctx.push_one(output, packet),
                None => {}
            }
        }
        ctx.recycle(batch);
        kept
    }

    fn dynamic_handlers(&self, asked: &str) -> Vec<HandlerInfo> {
        let exported = self.exported.iter().map(|name| HandlerInfo {
            name: name.clone(),
            read: true,
            write: false,
            kind: HandlerKind::Value,
        });
        let proxied = self.kind == Kind::Proxy && !asked.is_empty();
        let any = proxied.then(|| HandlerInfo {
            name: asked.to_string(),
            read: true,
            write: true,
            kind: HandlerKind::of(asked), // As of the handler that it stands for.
        });
        exported
            .chain(any)
            .filter(|h| HANDLERS.iter().all(|own| own.name != h.name))
            .collect()
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, _old: &mut dyn Element) {}
}
