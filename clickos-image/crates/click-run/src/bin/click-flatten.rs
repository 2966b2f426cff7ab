// SPDX-License-Identifier: Apache-2.0
//! Prints a configuration flat: compound elements dissolved, variables expanded.
//!
//! Element classes need not be known: a name that begins with a capital letter is taken for one.
#![forbid(unsafe_code)]
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use click_lang::{Classes, Errors, Scope, flatten};
use click_run::library;
use click_run::report::report;

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
    let sources = library::read(options.expression.as_deref(), options.rest.as_deref())?;
    let (limits, mut errors) = (library::limits(), Errors::default());
    let flat = flatten(&sources, &Any, &Scope::default(), &limits, &mut errors);
    if !errors.is_empty() {
        return Err(report(&errors.into_sorted(&sources)));
    }
    let text = flat.to_string();
    match options.output.as_deref().filter(|p| *p != Path::new("-")) {
        Some(path) => fs::write(path, text).map_err(|e| format!("{}: {e}", path.display())),
        None => stdout()
            .write_all(text.as_bytes())
            .map_err(|e| format!("standard output: {e}")),
    }
}
