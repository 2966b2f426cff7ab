// SPDX-License-Identifier: Apache-2.0
//! Tells whether a configuration is right: all its errors, `FILE:LINE:COLUMN: ELEMENT: MESSAGE`, one
//! a line; exit status 0 without an error.
#![forbid(unsafe_code)]
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use click_run::options::Options;
use click_run::session;

/// The summary of `--help`.
const ABOUT: &str = "Checks Click configurations, as click --check does.";
/// What `--help` says after it.
const STATUS: &str =
    "Exit status: 0 if the configuration is right, 1 if not, 2 for a wrong command line.";

fn main() -> ExitCode {
    let command = Options::command().name("click-check").about(ABOUT);
    let matches = command
        .long_about(format!("{ABOUT}\n\n{STATUS}"))
        .get_matches();
    let mut options = Options::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    options.check = true;
    match session::run(&options) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
