// SPDX-License-Identifier: Apache-2.0
//! How a script's instructions are carried out.

use click_core::memory;
use click_core::value::Span;

use super::code::{Instruction, Target, is_name};
use super::expand::{Values, expand, split_call, unquoted};
use super::{Kind, MAX_VARIABLES, Script, State, functions};
use crate::prelude::*;

/// The bytes of all variables, in longest texts.
const VARIABLE_TEXTS: usize = 16;
/// Bytes of a value that the reserve takes for each variable.
const SMALL: usize = 64;
/// Jumps a script may make without blocking.
const MAX_JUMPS: usize = 1000;

/// Steps of work of an instruction, besides the bytes that it expands.
const INSTRUCTION: usize = 16;

/// How a run came to its end, or to a pause.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Blocked,
    End,
    Exit,
    Return(String),
    Failed(String),
}

/// The step after an instruction.
enum Next {
    Go,
    Jump(usize),
    Leave(Outcome),
}

impl Script {
    /// Runs from the current instruction until the script blocks or ends.
    pub(super) fn advance(&mut self, ctx: &mut Context<'_>) -> Outcome {
        let mut jumps = 0;
        self.state = State::Ready;
        loop {
            let Some(instruction) = self.code.get(self.at).cloned() else {
                return self.rest(Outcome::End);
            };
            self.at += 1;
            if !ctx.charge_steps(INSTRUCTION) {
                self.complain(ctx, "too much work, giving up");
                self.at = self.code.len();
                return self.rest(Outcome::Exit);
            }
            match self.execute(&instruction, ctx) {
                Next::Go => {}
                Next::Jump(to) if jumps < MAX_JUMPS => (self.at, jumps) = (to, jumps + 1),
                Next::Jump(_) => {
                    self.complain(ctx, "too many jumps, giving up");
                    self.at = self.code.len();
                    return self.rest(Outcome::Exit);
                }
                Next::Leave(Outcome::Blocked) => return Outcome::Blocked,
                Next::Leave(outcome) => return self.rest(outcome),
            }
        }
    }

    fn rest(&mut self, outcome: Outcome) -> Outcome {
        self.state = State::Resting;
        outcome
    }

    /// Runs the whole script once, with variables of its own for the call.
    pub(super) fn call_with(&mut self, ctx: &mut Context<'_>, own: Vec<(&str, String)>) -> Outcome {
        for (name, value) in own {
            if let Err(message) = self.store(ctx, name, value) {
                return Outcome::Failed(message);
            }
        }
        self.at = 0;
        self.advance(ctx)
    }

    /// Expands text; what cannot be expanded is reported and becomes empty.
    pub(super) fn text(&mut self, ctx: &mut Context<'_>, text: &str, unquote: bool) -> String {
        match expand(text, &mut Seen { script: self, ctx }) {
            Ok(value) if unquote => unquoted(&value),
            Ok(value) => value,
            Err(message) => {
                self.complain(ctx, &message);
                String::new()
            }
        }
    }

    fn execute(&mut self, instruction: &Instruction, ctx: &mut Context<'_>) -> Next {
        match instruction {
            Instruction::Init { .. } | Instruction::Label(_) => {}
            Instruction::Set {
                name,
                text,
                unquote,
            } => {
                let value = self.text(ctx, text, *unquote);
                if let Err(message) = self.store(ctx, name, value) {
                    self.complain(ctx, &message);
                }
            }
            Instruction::Print {
                to,
                text,
                unquote,
                newline,
            } => {
                if let Some(mut line) = self.printed(ctx, text, *unquote) {
                    if *newline && !line.ends_with('\n') {
                        line.push('\n');
                    }
                    self.print(ctx, to.as_ref(), &line);
                }
            }
            Instruction::Read { call, unquote } => self.read_and_show(ctx, call, *unquote),
            Instruction::Write { call, unquote } => self.write_call(ctx, call, *unquote),
            Instruction::Pause(count) => return self.pause(ctx, count),
            Instruction::Wait(time) => return self.wait(ctx, time),
            Instruction::Goto { label, condition } => {
                return self.jump(ctx, label, condition.as_deref());
            }
            Instruction::End => return Next::Leave(Outcome::End),
            Instruction::Exit => return Next::Leave(Outcome::Exit),
            Instruction::Stop => return self.stop(ctx),
            Instruction::Return { text, unquote } => {
                return Next::Leave(Outcome::Return(self.text(ctx, text, *unquote)));
            }
            Instruction::Error { text, unquote } => {
                let message = self.text(ctx, text, *unquote);
                return Next::Leave(Outcome::Failed(unquoted(&message)));
            }
        }
        Next::Go
    }

    /// The manager of stops ends here, and with it what keeps the router running.
    fn stop(&mut self, ctx: &mut Context<'_>) -> Next {
        if self.kind != Kind::Driver {
            ctx.stop();
        }
        Next::Leave(Outcome::End)
    }

    fn print(&mut self, ctx: &mut Context<'_>, to: Option<&Target>, text: &str) {
        let result = match (ctx.host(), to) {
            (_, None) => {
                ctx.print_out(text);
                Ok(())
            }
            (Some(host), Some(to)) => {
                let file = self.text(ctx, &to.file, true);
                host.write_file(&file, to.append, text.as_bytes())
            }
            (None, Some(_)) => Err("there are no files here".to_string()),
        };
        if let Err(message) = result {
            self.complain(ctx, &format!("print: {message}"));
        }
    }

    /// Sets a variable from `NAME VALUE`.
    pub(super) fn set_from(&mut self, ctx: &Context<'_>, value: &str) -> Result<(), String> {
        let (name, value) = split_call(value);
        if !is_name(name) {
            return Err(format!(
                "set: expected the name of a variable, got \"{}\"",
                name.shown()
            ));
        }
        let stored = self.store(ctx, name, value.to_string());
        stored.map_err(|error| format!("set: {error}"))
    }

    fn pause(&mut self, ctx: &mut Context<'_>, count: &str) -> Next {
        let count = self.text(ctx, count, true);
        let count = click_core::value::number(&count).unwrap_or(1);
        if count == 0 {
            return Next::Go;
        }
        self.state = State::Paused(count);
        Next::Leave(Outcome::Blocked)
    }

    fn wait(&mut self, ctx: &mut Context<'_>, time: &str) -> Next {
        let time = self.text(ctx, time, true);
        match Span::from_arg(&time, ctx.arg_context()) {
            Ok(span) => {
                ctx.set_timer(ctx.now_ns().saturating_add(span.ns));
                self.state = State::Waiting;
                Next::Leave(Outcome::Blocked)
            }
            Err(message) => Next::Leave(Outcome::Failed(format!("wait: {message}"))),
        }
    }

    fn jump(&mut self, ctx: &mut Context<'_>, label: &str, condition: Option<&str>) -> Next {
        if let Some(condition) = condition {
            let value = self.text(ctx, condition, true);
            match functions::boolean("goto", value.trim()) {
                Ok(true) => {}
                Ok(false) => return Next::Go,
                Err(message) => {
                    self.complain(ctx, &message);
                    return Next::Go;
                }
            }
        }
        let label = self.text(ctx, label, true);
        match (self.label(&label), label.as_str()) {
            (Some(at), _) => Next::Jump(at),
            (None, "end") => Next::Leave(Outcome::End),
            (None, "exit") => Next::Leave(Outcome::Exit),
            (None, "stop") => self.stop(ctx),
            (None, "error") => Next::Leave(Outcome::Failed(String::new())),
            _ => Next::Leave(Outcome::Failed(format!(
                "goto: no label \"{}\"",
                label.shown()
            ))),
        }
    }

    /// Where a label is.
    pub(super) fn label(&self, name: &str) -> Option<usize> {
        let found = self
            .code
            .iter()
            .position(|i| matches!(i, Instruction::Label(l) if l == name));
        found.or_else(|| ["loop", "begin"].contains(&name).then_some(0))
    }

    /// Does what the script does once, at its start.
    pub(super) fn initialize_variables(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        for instruction in self.code.clone() {
            if let Instruction::Init {
                name,
                text,
                unquote,
                export,
            } = instruction
            {
                if !ctx.charge_steps(INSTRUCTION) {
                    return Err(format!("init {name}: too much work"));
                }
                let value = self.text(ctx, &text, unquote);
                self.store(ctx, &name, value)?;
                if export {
                    self.exported.push(name);
                }
            }
        }
        Ok(())
    }

    /// Sets a variable.
    ///
    /// # Errors
    /// They are too many, or too long together.
    pub(super) fn store(
        &mut self,
        ctx: &Context<'_>,
        name: &str,
        value: String,
    ) -> Result<(), String> {
        let place = self.variables.iter().position(|(n, _)| n == name);
        let old = place.map_or(0, |at| self.variables[at].1.len());
        let bytes = self.variable_bytes + value.len() - old;
        let most = VARIABLE_TEXTS * text_limit(ctx);
        if bytes > most {
            return Err(format!(
                "{name}: the limit of all variables is {most} bytes"
            ));
        }
        if value.len() > old.max(SMALL) && !memory::has_room(memory::RESERVE) {
            return Err(format!("{name}: no memory is left"));
        }
        match place {
            Some(at) => self.variables[at].1 = value,
            None if self.variables.len() >= MAX_VARIABLES => {
                return Err(format!("more than {MAX_VARIABLES} variables"));
            }
            None => self.variables.push((name.to_string(), value)),
        }
        self.variable_bytes = bytes;
        Ok(())
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Bytes of a script's text. Where memory is short, a few of them fit into the reserve.
fn text_limit(ctx: &Context<'_>) -> usize {
    let limits = ctx.limits();
    match limits.reserve_bytes {
        0 => limits.handler_bytes,
        _ => limits.handler_bytes.min(memory::RESERVE / 8),
    }
}

/// A script's references, seen from where it runs.
struct Seen<'a, 'b> {
    script: &'a mut Script,
    ctx: &'a mut Context<'b>,
}

impl Values for Seen<'_, '_> {
    fn variable(&self, name: &str) -> Option<String> {
        if name == "?" {
            return Some(self.script.status.to_string());
        }
        if name == "$" {
            return self.ctx.host().map(|host| host.process().to_string());
        }
        self.script.variable(name).map(ToString::to_string)
    }

    fn handler(&mut self, name: &str, param: &str) -> Option<String> {
        self.script.value(self.ctx, name, param)
    }

    fn limit(&self) -> usize {
        text_limit(self.ctx)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        let may = self.ctx.charge_steps(bytes);
        may.then_some(()).ok_or_else(|| "too much work".to_string())
    }
}
