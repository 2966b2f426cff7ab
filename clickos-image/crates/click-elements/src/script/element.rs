// SPDX-License-Identifier: Apache-2.0
//! A script as an element: when it starts, steps, and answers.
use click_core::HandlerInfo;
use click_core::text;

use super::run::Outcome;
use super::{HANDLERS, Kind, Script, State};
use crate::prelude::*;

impl Script {
    /// Goes on with a script that runs by itself, and deals with its end.
    fn go_on(&mut self, ctx: &mut Context<'_>) {
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
    fn step(&mut self, ctx: &mut Context<'_>, steps: u64) {
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
    fn run_handler(
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
            ctx.set_timer(ctx.now_ns());
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

    fn call(&mut self, ctx: &mut Context<'_>, handler: &str, param: &str) -> Option<Text> {
        if handler == "run" {
            return Some(self.run_handler(ctx, handler, param, false));
        }
        let own = self.own(ctx, handler, param);
        match own {
            Some(result) => Some(result.map_err(HandlerError::rejected)),
            None if self.kind == Kind::Proxy => Some(self.run_handler(ctx, handler, param, false)),
            None => None,
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        let value = value.to_string();
        match handler {
            "step" => {
                let steps = if value.is_empty() {
                    1
                } else {
                    view.parse(&value)?
                };
                Ok(Change::of(move |me: &mut Self, ctx| me.step(ctx, steps)))
            }
            "goto" => {
                let at = self.label(&value);
                let at = at.ok_or_else(|| {
                    HandlerError::rejected(format!(
                        "there is no label \"{}\"",
                        value.escape_debug()
                    ))
                })?;
                Ok(Change::of(move |me: &mut Self, ctx| {
                    ctx.clear_timer();
                    me.at = at;
                    me.go_on(ctx);
                }))
            }
            "set" => Ok(Change::of(move |me: &mut Self, ctx| {
                if let Err(message) = me.set_from(ctx, &value) {
                    me.complain(ctx, &message);
                }
            })),
            "run" => Ok(self.run_on_write(handler, value)),
            _ if self.kind == Kind::Proxy => Ok(self.run_on_write(handler, value)),
            _ => undeclared(handler),
        }
    }

    fn more_handlers(&self, asked: &str) -> Vec<HandlerInfo> {
        let exported = self.exported.iter().map(|name| HandlerInfo {
            name: name.clone(),
            read: true,
            write: false,
        });
        let proxied = self.kind == Kind::Proxy && !asked.is_empty();
        let any = proxied.then(|| HandlerInfo {
            name: asked.to_string(),
            read: true,
            write: true,
        });
        exported
            .chain(any)
            .filter(|h| HANDLERS.iter().all(|own| own.name != h.name))
            .collect()
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, _old: &mut dyn Element) {}
}

impl Script {
    fn run_on_write(&self, handler: &str, value: String) -> Change {
        let handler = handler.to_string();
        Change::of(move |me: &mut Self, ctx| {
            if let Err(error) = me.run_handler(ctx, &handler, &value, true) {
                me.complain(ctx, &error.to_string());
            }
        })
    }
}
