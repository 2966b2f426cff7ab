// SPDX-License-Identifier: Apache-2.0
//! Extracts a component of a configuration that click-combine made.
#![forbid(unsafe_code)]
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use click_run::combine::split;
use click_run::tool;

/// Extracts a component from a combined Click configuration.
#[derive(Debug, Parser)]
#[command(name = "click-uncombine", version)]
struct Options {
    /// The component
    #[arg(short, long, value_name = "NAME")]
    name: String,

    /// Write to FILE ("-", the default, is standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The combined configuration; standard input without one
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let flat = tool::flat(None, options.file.as_deref());
    let text = flat.and_then(|flat| split(flat, &options.name));
    tool::finish(text.map(|flat| flat.to_string()), options.output.as_deref())
}
