// SPDX-License-Identifier: Apache-2.0
//! Writes the file of the contract; with `--check` compares it with the types.
#![forbid(unsafe_code)]
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        None => std::fs::write(contract::path(), contract::text())
            .map_err(|e| format!("{}: {e}", contract::path().display())),
        Some("--check") => contract::check(),
        Some(other) => Err(format!("{other:.40}: expected --check or nothing")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("contract: {text}");
            ExitCode::FAILURE
        }
    }
}
