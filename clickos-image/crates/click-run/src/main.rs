// SPDX-License-Identifier: Apache-2.0
//! The user-space `click` program: builds a configuration, runs it, prints handlers.
#![forbid(unsafe_code)]

mod clock;
mod control;
mod host;
mod options;
mod service;
mod session;
mod vif;

use std::process::ExitCode;

use clap::Parser;

use crate::options::Options;

fn main() -> ExitCode {
    match session::run(&Options::parse()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
