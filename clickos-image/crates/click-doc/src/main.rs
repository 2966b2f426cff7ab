// SPDX-License-Identifier: Apache-2.0
//! Prints the documentation of an element class, or lists all classes.
#![forbid(unsafe_code)]
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::page::Page;

mod find;
mod man;
mod page;
mod plain;

/// Prints the documentation of an element class; without one, lists all classes.
#[derive(Debug, Parser)]
#[command(name = "click-doc", version)]
struct Options {
    /// Write a manual page: click-doc --man Counter | man -l -
    #[arg(long, requires = "class")]
    man: bool,

    /// The class, such as Counter
    class: Option<String>,
}

fn main() -> ExitCode {
    match answer(&Options::parse()) {
        Ok(text) => print(&text),
        Err(message) => {
            eprintln!("click-doc: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The text that the options ask for.
fn answer(options: &Options) -> Result<String, String> {
    let Some(class) = &options.class else {
        return Ok(find::list());
    };
    let page = Page::new(find::entry(class)?);
    Ok(match options.man {
        true => man::write(&page),
        false => plain::write(&page),
    })
}

/// Writes to standard output. A reader that closes it early, such as `head`, is no failure.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("click-doc: standard output: {e}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
