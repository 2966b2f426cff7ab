// SPDX-License-Identifier: Apache-2.0
//! Draws a configuration: its elements, layer by layer, and their connections, as SVG.
#![forbid(unsafe_code)]
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use click_lang::{Errors, Scope, flatten};
use click_run::any_class::AnyClass;
use click_run::library::{Reader, limits};
use click_run::pretty;
use click_run::report::report;

/// Draws a Click configuration as SVG.
#[derive(Debug, Parser)]
#[command(name = "click-pretty", version)]
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
    let mut errors = Errors::default();
    let flat = flatten(
        &sources,
        &AnyClass,
        &Scope::default(),
        &limits(),
        &mut errors,
    );
    if !errors.is_empty() {
        return Err(report(&errors.into_sorted(&sources)));
    }
    let picture = pretty::svg(&flat)?;
    match options.output.as_deref().filter(|p| *p != Path::new("-")) {
        Some(path) => fs::write(path, picture).map_err(|e| format!("{}: {e}", path.display())),
        None => stdout()
            .write_all(picture.as_bytes())
            .map_err(|e| format!("standard output: {e}")),
    }
}
