// SPDX-License-Identifier: Apache-2.0
//! Scripts: a small language that calls handlers, for Script and DriverManager.
mod code;
mod element;
mod expand;
mod format;
mod functions;
mod run;

use click_core::class::Handler;

use crate::prelude::*;
use code::Instruction;

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
}

/// Variables a script can have.
const MAX_VARIABLES: usize = 1024;

/// A script.
pub struct Script {
    class: &'static str,
    kind: Kind,
    code: Vec<Instruction>,
    variables: Vec<(String, String)>,
    exported: Vec<String>,
    /// The next instruction.
    at: usize,
    state: State,
    /// Whether the last write worked, as `$?`: 0 or -1.
    status: i32,
}

/// What a script is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was not started, or has ended.
    Resting,
    /// It goes on at the next timer.
    Ready,
    /// It waits for this many steps.
    Paused(u64),
    /// It waits for a time or a step.
    Waiting,
}

/// Handlers of every script.
pub const HANDLERS: &[Handler] = &[
    read_write("run"),
    write("step"),
    write("goto"),
    write("set"),
    read("get"),
    read("vars"),
    read("status"),
    read("shift"),
    read("random"),
    read("now"),
    read("readable"),
    read("writable"),
    read("cat"),
    read("catq"),
    read("add"),
    read("sub"),
    read("mul"),
    read("div"),
    read("idiv"),
    read("min"),
    read("max"),
    read("mod"),
    read("rem"),
    read("neg"),
    read("abs"),
    read("eq"),
    read("ne"),
    read("lt"),
    read("gt"),
    read("le"),
    read("ge"),
    read("not"),
    read("and"),
    read("or"),
    read("nand"),
    read("nor"),
    read("if"),
    read("in"),
    read("first"),
    read("length"),
    read("unquote"),
    read("sprintf"),
    read("htons"),
    read("ntohs"),
    read("htonl"),
    read("ntohl"),
];

/// Builds a script of `class`; `usual` is its type unless TYPE says another.
pub fn build(a: &mut Args<'_>, class: &'static str, usual: Kind) -> Built {
    let kind = a.or("TYPE", String::new())?;
    let kind = match kind.to_ascii_uppercase().as_str() {
        "" => Some(usual),
        "ACTIVE" => Some(Kind::Active),
        "PASSIVE" => Some(Kind::Passive),
        "PACKET" => Some(Kind::Packet),
        "PROXY" => Some(Kind::Proxy),
        "DRIVER" => Some(Kind::Driver),
        _ => {
            let known = "ACTIVE, PASSIVE, PACKET, PROXY or DRIVER";
            a.error(
                "TYPE",
                format!("expected {known}, got \"{}\"", kind.escape_debug()),
            );
            None
        }
    };
    let code = instructions(a);
    Some(Box::new(Script {
        class,
        kind: kind?,
        code: code?,
        variables: Vec::new(),
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
        match code::parse(&argument, a.surroundings()) {
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
                format!("goto: there is no label \"{}\"", label.escape_debug()),
            );
            right = false;
        }
    }
    right.then_some(code)
}
