// SPDX-License-Identifier: Apache-2.0
//! Scripts: a small language that calls handlers, for Script and DriverManager.
mod calls;
mod code;
mod element;
mod expand;
mod format;
mod functions;
mod handlers;
mod own;
mod run;

use click_core::value::FromArg;

use crate::prelude::*;
use code::Instruction;
pub use handlers::{ANY, HANDLERS};

/// When a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the start.
    Active,
    /// When its `run` handler is called.
    Passive,
    /// For each packet.
    Packet,
    /// For any handler.
    Proxy,
    /// From the start; it decides what requests to stop mean.
    Driver,
    /// When a signal arrives.
    Signal,
}

/// Variables a script can have.
const MAX_VARIABLES: usize = 1024;

/// A script.
pub struct Script {
    class: &'static str,
    kind: Kind,
    /// The signals of a script of type SIGNAL.
    signals: Vec<String>,
    code: Vec<Instruction>,
    variables: Vec<(String, String)>,
    /// The bytes of their values.
    variable_bytes: usize,
    exported: Vec<String>,
    /// The next instruction.
    at: usize,
    state: State,
    /// The status of the last write, as `$?`: 0 or -1.
    status: i32,
}

/// The state of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was not started, or has ended.
    Resting,
    /// It continues at the next timer.
    Ready,
    /// It waits for this many steps.
    Paused(u64),
    /// It waits for a time or a step.
    Waiting,
}

/// The type that TYPE names, if it is one.
fn kind_of(word: &str) -> Option<Kind> {
    Some(match word.to_ascii_uppercase().as_str() {
        "ACTIVE" => Kind::Active,
        "PASSIVE" => Kind::Passive,
        "PACKET" => Kind::Packet,
        "PROXY" => Kind::Proxy,
        "DRIVER" => Kind::Driver,
        "SIGNAL" => Kind::Signal,
        _ => return None,
    })
}

/// Reads TYPE: the type, and the signals behind SIGNAL.
fn typed(a: &mut Args<'_>, usual: Kind) -> Option<(Kind, Vec<String>)> {
    let Some(words) = a.opt::<Words>("TYPE")? else {
        return Some((usual, Vec::new()));
    };
    let (first, signals) = words.0.split_first()?;
    let Some(kind) = kind_of(first) else {
        let known = "ACTIVE, PASSIVE, PACKET, PROXY, DRIVER or SIGNAL";
        let got = first.shown();
        a.error("TYPE", format!("expected {known}, got \"{got}\""));
        return None;
    };
    if (kind == Kind::Signal) == signals.is_empty() {
        a.error("TYPE", "only SIGNAL has the names of signals behind it");
        return None;
    }
    Some((kind, signals.to_vec()))
}

/// The words of an argument.
struct Words(Vec<String>);

impl FromArg for Words {
    fn from_arg(text: &str, _at: click_core::ArgContext<'_>) -> Result<Self, String> {
        Ok(Self(click_core::text::split_words(text)))
    }
}

/// Builds a script of `class`; `usual` is its type unless TYPE says another.
pub fn build(a: &mut Args<'_>, class: &'static str, usual: Kind) -> Built {
    let kind = typed(a, usual);
    let code = instructions(a);
    let (kind, signals) = kind?;
    Some(Box::new(Script {
        class,
        kind,
        signals,
        code: code?,
        variables: Vec::new(),
        variable_bytes: 0,
        exported: Vec::new(),
        at: 0,
        state: State::Resting,
        status: 0,
    }))
}

/// Labels that are always there.
const LABELS: [&str; 6] = ["begin", "loop", "end", "exit", "stop", "error"];

fn instructions(a: &mut Args<'_>) -> Option<Vec<Instruction>> {
    let (mut code, mut right) = (Vec::new(), true);
    for (number, argument) in (1..).zip(a.rest().to_vec()) {
        match code::parse(&argument, a.arg_context()) {
            Ok(instruction) => code.extend(instruction),
            Err(message) => {
                a.error("INSTRUCTION", format!("{number}: {message}"));
                right = false;
            }
        }
    }
    for instruction in &code {
        let Instruction::Goto { label, .. } = instruction else {
            continue;
        };
        let known = |i: &Instruction| matches!(i, Instruction::Label(l) if l == label);
        if !label.contains('$') && !LABELS.contains(&label.as_str()) && !code.iter().any(known) {
            a.error(
                "INSTRUCTION",
                format!("goto: no label \"{}\"", label.shown()),
            );
            right = false;
        }
    }
    right.then_some(code)
}
