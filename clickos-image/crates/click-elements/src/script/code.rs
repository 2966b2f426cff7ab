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
pub const NAMES: [&str; 27] = [
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

/// Parses an instruction; nothing for an empty argument.
///
/// # Errors
/// What is wrong with it.
pub fn parse(
    argument: &str,
    at: click_core::Surroundings<'_>,
) -> Result<Option<Instruction>, String> {
    let (word, rest) = text::shift_word(argument);
    let base = word
        .strip_suffix('q')
        .filter(|_| word != "q")
        .unwrap_or(&word);
    let unquote = base != word;
    let variable = || -> Result<(String, String), String> {
        let (name, value) = text::shift_word(&rest);
        if is_name(&name) {
            return Ok((name, value));
        }
        Err(format!(
            "{word}: expected the name of a variable, got \"{name}\""
        ))
    };
    let quotable = matches!(
        base,
        "set" | "init" | "export" | "print" | "printn" | "read" | "write" | "return" | "error"
    );
    if unquote && !quotable {
        return Err(unknown(&word));
    }
    Ok(Some(match base {
        "" => return Ok(None),
        "set" => {
            let (name, text) = variable()?;
            Instruction::Set {
                name,
                text,
                unquote,
            }
        }
        "init" | "export" => {
            let (name, text) = variable()?;
            let export = base == "export";
            Instruction::Init {
                name,
                text,
                unquote,
                export,
            }
        }
        "print" | "printn" => print(&rest, unquote, base == "print")?,
        "read" => Instruction::Read {
            call: some(&word, rest)?,
            unquote,
        },
        "write" => Instruction::Write {
            call: some(&word, rest)?,
            unquote,
        },
        "pause" | "wait_stop" | "wait_step" => Instruction::Pause(rest),
        "wait" | "wait_time" if rest.is_empty() => Instruction::Pause(rest),
        "wait" | "wait_time" | "wait_for" => {
            if !rest.contains('$') {
                Span::from_arg(&rest, at)?;
            }
            Instruction::Wait(rest)
        }
        "label" => Instruction::Label(some(&word, rest)?),
        "goto" => {
            let (label, condition) = text::shift_word(&some(&word, rest)?);
            let condition = Some(condition).filter(|c| !c.is_empty());
            Instruction::Goto { label, condition }
        }
        "loop" => Instruction::Goto {
            label: "loop".into(),
            condition: None,
        },
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
    }))
}

fn unknown(word: &str) -> String {
    let known = NAMES.iter().find(|n| n.eq_ignore_ascii_case(word));
    let hint = known.map_or(String::new(), |n| format!(", did you mean {n}?"));
    format!("unknown instruction \"{}\"{hint}", word.escape_debug())
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

/// Whether `word` can be the name of a variable.
pub fn is_name(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
