// SPDX-License-Identifier: Apache-2.0
//! Prints a configuration flat: compound elements dissolved, variables expanded.
//!
//! Element classes need not be known: a name is one where it is first used as one.
#![forbid(unsafe_code)]
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use click_lang::{Errors, Scope, flatten};
use click_run::any_class::AnyClass;
use click_run::library::{Reader, limits};
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
    let reader = Reader::new(None, String::new());
    let sources = reader.read(options.expression.as_deref(), options.rest.as_deref())?;
    let (limits, mut errors) = (limits(), Errors::default());
    let flat = flatten(&sources, &AnyClass, &Scope::default(), &limits, &mut errors);
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
