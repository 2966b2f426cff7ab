// SPDX-License-Identifier: Apache-2.0
//! Prints a configuration flat: compound elements dissolved, variables expanded.
//!
//! Element classes need not be known: a name that begins with a capital letter is taken for one.
#![forbid(unsafe_code)]
use std::fs;
use std::io::{Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use click_lang::{Classes, Errors, Limits, Scope, flatten, parse};

/// Prints a Click configuration flat.
#[derive(Debug, Parser)]
#[command(name = "click-flatten", version)]
struct Options {
    /// The configuration's text
    #[arg(short, long, value_name = "EXPR", conflicts_with = "rest")]
    expression: Option<String>,

    /// Write to FILE ("-", the default, is standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The configuration's file; standard input without one
    #[arg(value_name = "FILE")]
    rest: Option<PathBuf>,
}

/// Knows every class that is written as Click writes its own.
struct Any;

impl Classes for Any {
    fn knows(&self, name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase())
    }

    fn unavailable(&self, _name: &str) -> Option<&str> {
        None
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let (name, config) = configuration(options)?;
    let (limits, mut errors) = (Limits::default(), Errors::default());
    let statements = parse(&name, &config, &limits, &mut errors);
    let flat = flatten(&statements, &Any, &Scope::default(), &limits, &mut errors);
    if !errors.is_empty() {
        let lines = errors.into_sorted();
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        return Err(lines.join("\n"));
    }
    let text = flat.to_string();
    match options.output.as_deref().filter(|p| *p != Path::new("-")) {
        Some(path) => fs::write(path, text).map_err(|e| format!("{}: {e}", path.display())),
        None => stdout()
            .write_all(text.as_bytes())
            .map_err(|e| format!("standard output: {e}")),
    }
}

fn configuration(options: &Options) -> Result<(String, String), String> {
    if let Some(text) = &options.expression {
        return Ok(("config".to_string(), text.clone()));
    }
    let Some(path) = options.rest.as_deref().filter(|p| *p != Path::new("-")) else {
        let mut text = String::new();
        stdin()
            .read_to_string(&mut text)
            .map_err(|e| format!("standard input: {e}"))?;
        return Ok(("<stdin>".to_string(), text));
    };
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((path.display().to_string(), text))
}
