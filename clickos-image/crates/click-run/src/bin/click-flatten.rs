// SPDX-License-Identifier: Apache-2.0
//! Prints a configuration flat: compound elements dissolved, variables expanded.
//!
//! Element classes need not be known: a name is one where it is first used as one.
#![forbid(unsafe_code)]
use std::process::ExitCode;

use clap::Parser;
use click_run::tool;

/// Prints a Click configuration flat.
#[derive(Debug, Parser)]
#[command(name = "click-flatten", version, disable_version_flag = true)]
struct Options {
    #[command(flatten)]
    files: tool::Files,
}

fn main() -> ExitCode {
    tool::main(&Options::parse().files, |flat| Ok(flat.to_string()))
}
