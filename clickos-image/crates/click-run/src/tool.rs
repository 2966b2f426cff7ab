// SPDX-License-Identifier: Apache-2.0
//! What tools have in common that turn a configuration into a text, without running it.
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use click_lang::{Errors, Flat, Scope, flatten};

use crate::any_class::AnyClass;
use crate::library::{Reader, limits};
use crate::output::{STANDARD, flush, write_to};
use crate::report::report;

/// Where the configuration is and where the result goes.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// The configuration's text
    #[arg(short, long, value_name = "EXPR", conflicts_with_all = ["rest", "file"])]
    expression: Option<String>,

    /// The configuration's file ("-" is standard input)
    #[arg(short, long, value_name = "FILE", conflicts_with = "rest")]
    file: Option<PathBuf>,

    /// Write to FILE ("-", the default, is standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The configuration's file; standard input without one
    #[arg(value_name = "FILE")]
    rest: Option<PathBuf>,

    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Writes what becomes of the flat configuration; errors go to standard error.
pub fn main(files: &Files, convert: fn(&Flat) -> Result<String, String>) -> ExitCode {
    let file = files.file.as_ref().or(files.rest.as_ref());
    let flat = flat(files.expression.as_deref(), file.map(PathBuf::as_path));
    finish(
        flat.and_then(|flat| convert(&flat)),
        files.output.as_deref(),
    )
}

/// Writes a text to a file or standard output, or its error to standard error.
pub fn finish(text: Result<String, String>, output: Option<&Path>) -> ExitCode {
    let path = output.unwrap_or(Path::new(STANDARD));
    let written = text.and_then(|text| write_to(path, &text));
    match written.and_then(|()| flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a configuration, from a text, a file or standard input, and makes it flat.
///
/// # Errors
/// It cannot be read, or is wrong.
pub fn flat(expression: Option<&str>, file: Option<&Path>) -> Result<Flat, String> {
    let reader = Reader::new(None, String::new());
    let given = reader.read(expression, file)?;
    let sources = given.sources;
    let (limits, mut errors) = (limits(), Errors::default());
    let flat = flatten(&sources, &AnyClass, &Scope::default(), &limits, &mut errors);
    if errors.is_empty() {
        Ok(flat)
    } else {
        Err(report(&errors.into_sorted(&sources)))
    }
}
