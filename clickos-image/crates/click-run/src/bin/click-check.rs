// SPDX-License-Identifier: Apache-2.0
//! Tells whether a configuration is right: all its errors, `FILE:LINE:COLUMN: ELEMENT: MESSAGE`, one
//! a line; exit status 0 if there is none.
#![forbid(unsafe_code)]
use std::process::ExitCode;

use clap::Parser;
use click_run::options::Options;
use click_run::session;

fn main() -> ExitCode {
    let mut options = Options::parse();
    options.check = true;
    match session::run(&options) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
