// SPDX-License-Identifier: Apache-2.0
//! Instructions of a script, from its arguments.
use click_core::text;
use click_core::value::{FromArg, Span};

use crate::prelude::*;

/// One instruction. Text is expanded when the instruction runs; with `unquote` it loses its quotes then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    Set {
        name: String,
        text: String,
        unquote: bool,
    },
    /// Done once, at the beginning.
    Init {
        name: String,
        text: String,
        unquote: bool,
        export: bool,
    },
    Print {
        to: Option<Target>,
        text: String,
        unquote: bool,
        newline: bool,
    },
    Read {
        call: String,
        unquote: bool,
    },
    Write {
        call: String,
        unquote: bool,
    },
    /// Blocks until as many steps.
    Pause(String),
    /// Blocks for a time, or until a step.
    Wait(String),
    Label(String),
    Goto {
        label: String,
        condition: Option<String>,
    },
    End,
    Exit,
    Stop,
    Return {
        text: String,
        unquote: bool,
    },
    Error {
        text: String,
        unquote: bool,
    },
}

/// A file to print to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub file: String,
    pub append: bool,
}

/// The names of all instructions.
pub const NAMES: [&str; 29] = [
    "set",
    "setq",
    "init",
    "initq",
    "export",
    "exportq",
    "print",
    "printq",
    "printn",
    "printnq",
    "read",
    "readq",
    "save",
    "append",
    "write",
    "writeq",
    "pause",
    "wait",
    "wait_stop",
    "wait_step",
    "label",
    "goto",
    "loop",
    "end",
    "exit",
    "stop",
    "return",
    "returnq",
    "error",
];

/// Those that may end in `q`.
const QUOTABLE: [&str; 9] = [
    "set", "init", "export", "print", "printn", "read", "write", "return", "error",
];

/// Parses an instruction; nothing for an empty argument.
///
/// # Errors The fault.
pub fn parse(
    argument: &str,
    at: click_core::ArgContext<'_>,
) -> Result<Option<Instruction>, String> {
    let (word, rest) = text::shift_word(argument);
    let base = word.strip_suffix('q');
    let base = base.filter(|base| !base.is_empty()).unwrap_or(&word);
    let unquote = base != word;
    if unquote && !QUOTABLE.contains(&base) {
        return Err(unknown(&word));
    }
    let instruction = match base {
        "" => return Ok(None),
        "set" | "init" | "export" => assignment(&word, base, &rest, unquote)?,
        "print" | "printn" => print(&rest, unquote, base == "print")?,
        "save" | "append" => save(&rest, base == "append"),
        "read" | "write" => call(&word, base == "read", rest, unquote)?,
        "pause" | "wait_stop" | "wait_step" => Instruction::Pause(rest),
        "wait" | "wait_time" | "wait_for" => wait(base, rest, at)?,
        "label" => Instruction::Label(some(&word, rest)?),
        "goto" => goto(&some(&word, rest)?),
        "loop" => goto(base),
        "end" => Instruction::End,
        "exit" => Instruction::Exit,
        "stop" => Instruction::Stop,
        "return" => Instruction::Return {
            text: rest,
            unquote,
        },
        "error" => Instruction::Error {
            text: rest,
            unquote,
        },
        _ => return Err(unknown(&word)),
    };
    Ok(Some(instruction))
}

/// `set`, `init` or `export`, and a variable.
fn assignment(word: &str, base: &str, rest: &str, unquote: bool) -> Result<Instruction, String> {
    let (name, text) = text::shift_word(rest);
    if !is_name(&name) {
        return Err(format!(
            "{word}: expected the name of a variable, got \"{name}\""
        ));
    }
    Ok(match base {
        "set" => Instruction::Set {
            name,
            text,
            unquote,
        },
        _ => Instruction::Init {
            name,
            text,
            unquote,
            export: base == "export",
        },
    })
}

fn call(word: &str, is_read: bool, rest: String, unquote: bool) -> Result<Instruction, String> {
    let call = some(word, rest)?;
    Ok(match is_read {
        true => Instruction::Read { call, unquote },
        false => Instruction::Write { call, unquote },
    })
}

/// For a time or, for all words but `wait_for`, until a step if there is none.
fn wait(base: &str, rest: String, at: click_core::ArgContext<'_>) -> Result<Instruction, String> {
    if rest.is_empty() && base != "wait_for" {
        return Ok(Instruction::Pause(rest));
    }
    if !rest.contains('$') {
        Span::from_arg(&rest, at)?;
    }
    Ok(Instruction::Wait(rest))
}

fn goto(text: &str) -> Instruction {
    let (label, condition) = text::shift_word(text);
    let condition = Some(condition).filter(|c| !c.is_empty());
    Instruction::Goto { label, condition }
}

fn unknown(word: &str) -> String {
    let known = NAMES.iter().find(|n| n.eq_ignore_ascii_case(word));
    let hint = known.map_or(String::new(), |n| format!(", did you mean {n}?"));
    format!("unknown instruction \"{}\"{hint}", word.shown())
}

fn some(word: &str, rest: String) -> Result<String, String> {
    if rest.is_empty() {
        return Err(format!("{word}: something must follow"));
    }
    Ok(rest)
}

fn print(rest: &str, unquote: bool, newline: bool) -> Result<Instruction, String> {
    let Some(redirected) = rest.strip_prefix('>') else {
        return Ok(Instruction::Print {
            to: None,
            text: rest.to_string(),
            unquote,
            newline,
        });
    };
    let append = redirected.starts_with('>');
    let (file, text) = text::shift_word(redirected.trim_start_matches('>'));
    if file.is_empty() {
        return Err("print: a file's name must follow >".to_string());
    }
    let to = Some(Target { file, append });
    Ok(Instruction::Print {
        to,
        text,
        unquote,
        newline,
    })
}

/// Prints a handler's value to a file, which is named behind it.
fn save(rest: &str, append: bool) -> Instruction {
    let (text, file) = text::shift_word(rest);
    let file = if file.is_empty() { "-".into() } else { file };
    Instruction::Print {
        to: Some(Target { file, append }),
        text,
        unquote: false,
        newline: true,
    }
}

/// True if `word` can be the name of a variable.
pub fn is_name(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
