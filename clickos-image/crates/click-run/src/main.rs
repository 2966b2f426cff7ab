// SPDX-License-Identifier: Apache-2.0
//! The user-space `click` program: builds a configuration, runs it, prints handlers.
#![forbid(unsafe_code)]
use std::process::ExitCode;

use clap::Parser;
use click_run::options::Options;
use click_run::session;
use large_pages::LargePages;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

fn main() -> ExitCode {
    match session::run(&Options::parse()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
