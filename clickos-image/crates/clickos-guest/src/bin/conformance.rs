// SPDX-License-Identifier: Apache-2.0
//! Runs the conformance corpus in a guest of Xen, tells the result on the console, and ends.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
extern crate alloc;

use alloc::format;
use alloc::string::String;
use click_conformance::{Case, run};
use clickos_guest::files::RamPlace;
use clickos_os::console::Console;
use clickos_os::power::{Reason, end};

clickos_os::entry!(main);

include!(concat!(env!("OUT_DIR"), "/corpus.rs"));

/// Groups of the elements that need a host's files and sockets, and of those that an image has by
/// option only.
const LEFT_OUT: [&str; 2] = ["os/", "regex/"];
/// The run of cases that need a process.
const KILL: &str = "kill ";

fn main() -> ! {
    let console = Console::new();
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    let here = |name: &str| !LEFT_OUT.iter().any(|group| name.starts_with(group));
    for (name, text) in CORPUS.iter().filter(|(name, _)| here(name)) {
        match check(name, text) {
            Some(Ok(())) => passed += 1,
            None => left_out += 1,
            Some(Err(message)) => {
                failed += 1;
                console.line(&format!("{name}: {message}").replace('\n', " | "));
                console.flush();
            }
        }
    }
    console.line(&format!(
        "conformance: {passed} passed, {failed} failed, {left_out} need a process"
    ));
    console.flush();
    end(Reason::PowerOff)
}

/// None for a case that needs what no guest has.
fn check(name: &str, text: &str) -> Option<Result<(), String>> {
    (!text.contains(KILL)).then(|| run_both(&Case::parse(name, text)))
}

/// With batches of 1 and of 32 packets.
fn run_both(case: &Case) -> Result<(), String> {
    let registry = click_elements::registry();
    [1, 32].into_iter().try_for_each(|batch| {
        run(case, &registry, batch, &RamPlace::empty())
            .map_err(|message| format!("batch {batch}: {message}"))
    })
}
