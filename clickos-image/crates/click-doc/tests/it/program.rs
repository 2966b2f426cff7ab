// SPDX-License-Identifier: Apache-2.0
//! The program `click-doc` as a user calls it.
use std::process::{Command, Output};

fn click_doc(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_click-doc");
    Command::new(program)
        .args(arguments)
        .output()
        .expect("click-doc starts")
}

fn text(output: &[u8]) -> &str {
    std::str::from_utf8(output).expect("UTF-8")
}

#[test]
fn prints_a_class_and_its_manual_page() {
    let plain = click_doc(&["IPFilter"]);
    assert!(plain.status.success());
    assert!(text(&plain.stdout).contains("Filters IP packets by rules."));
    let manual = click_doc(&["--man", "IPFilter"]);
    assert!(manual.status.success());
    assert!(text(&manual.stdout).starts_with(".TH IPFilter 7"));
}

#[test]
fn refuses_an_unknown_class() {
    let done = click_doc(&["IPFilte"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stdout.is_empty());
    let message = text(&done.stderr);
    assert!(message.starts_with("click-doc: IPFilte: no such element class; similar: IPFilter"));
}

#[test]
fn a_manual_page_needs_a_class() {
    assert!(!click_doc(&["--man"]).status.success());
}
