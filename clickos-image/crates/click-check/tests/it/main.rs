// SPDX-License-Identifier: Apache-2.0
//! The program as people call it.
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_click-check"))
        .args(args)
        .output()
        .expect("the program runs")
}

#[test]
fn it_lists_every_error() {
    let wrong = run(&[
        "-e",
        "Idle -> Conter -> Discard; Idle -> Strip(x) -> Discard",
    ]);
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(wrong.stderr).unwrap(),
        "config:1:9: undeclared element or unknown class 'Conter' (did you mean 'Counter'?)\n\
         config:1:36: Strip@5 :: Strip: LENGTH: expected a number, got \"x\"\n"
    );
}

#[test]
fn it_opens_nothing() {
    let dump = std::env::temp_dir().join(format!("click-check-{}", std::process::id()));
    let config = format!("Idle -> ToDump({})", dump.display());
    assert!(run(&["-e", &config]).status.success());
    assert!(!dump.exists());
    let tun = "FromHost(check0, 10.0.0.1/24) -> Queue -> KernelTun(10.0.1.1/24) -> Discard";
    assert!(run(&["-e", tun]).status.success());
}

#[test]
fn its_help_says_what_it_does() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.starts_with("Checks Click configurations"), "{help}");
}
