// SPDX-License-Identifier: Apache-2.0
//! What tools have in common that turn a configuration into a text, without running it.
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use click_lang::{Errors, Flat, Scope, flatten};

use crate::any_class::AnyClass;
use crate::library::{Reader, limits};
use crate::output::{self, STANDARD, write_to};
use crate::report::report;

/// Where the configuration is and where the result goes.
#[derive(Debug, clap::Args)]
pub struct Files {
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

/// Writes what becomes of the flat configuration; errors go to standard error.
pub fn main(files: &Files, convert: fn(&Flat) -> Result<String, String>) -> ExitCode {
    let text = flat(files).and_then(|flat| convert(&flat));
    match text.and_then(|text| files.write(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn flat(files: &Files) -> Result<Flat, String> {
    let reader = Reader::new(None, String::new());
    let given = reader.read(files.expression.as_deref(), files.rest.as_deref())?;
    let sources = given.sources;
    let (limits, mut errors) = (limits(), Errors::default());
    let flat = flatten(&sources, &AnyClass, &Scope::default(), &limits, &mut errors);
    if errors.is_empty() {
        Ok(flat)
    } else {
        Err(report(&errors.into_sorted(&sources)))
    }
}

impl Files {
    fn write(&self, text: &str) -> Result<(), String> {
        let path = self.output.as_deref().unwrap_or(Path::new(STANDARD));
        write_to(path, text).and_then(|()| output::flush())
    }
}
