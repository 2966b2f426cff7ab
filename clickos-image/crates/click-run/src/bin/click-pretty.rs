// SPDX-License-Identifier: Apache-2.0
//! Draws a configuration: its elements, layer by layer, and their connections, as SVG.
#![forbid(unsafe_code)]
use std::process::ExitCode;

use clap::Parser;
use click_run::{pretty, tool};

/// Draws a Click configuration as SVG.
#[derive(Debug, Parser)]
#[command(name = "click-pretty", version, disable_version_flag = true)]
struct Options {
    #[command(flatten)]
    files: tool::Files,
}

fn main() -> ExitCode {
    tool::main(&Options::parse().files, pretty::svg)
}
