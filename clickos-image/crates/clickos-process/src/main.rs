// SPDX-License-Identifier: Apache-2.0
//! The process guest: the engine in a confined Linux process on memfd rings.
//!
//! cosmosd starts it with an argument line on descriptor 3 (docs/interfaces.md, "Guest start");
//! it is of no use to a person, but for `--version`.
use click_packet::SharedHeap;
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static HEAP: SharedHeap<System> = SharedHeap(System);

const USAGE: &str = "usage: clickos-process [--version]; a guest is started by cosmosd, \
                     which gives it its argument line on descriptor 3";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => clickos_process::run(),
        ["--version"] => {
            println!("clickos-process {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
