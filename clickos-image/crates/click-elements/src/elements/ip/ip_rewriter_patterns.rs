// SPDX-License-Identifier: Apache-2.0
//! Names for patterns, to be used in rewriters and mappers.
//!
//! # Synopsis
//! `IPRewriterPatterns(NAME PATTERN, ...)`: NAME stands for a PATTERN such as `SADDR SPORT DADDR DPORT`. It may not be defined twice.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Example
//! `IPRewriterPatterns(nat 203.0.113.1 1024-65535 - -); rw :: IPRewriter(pattern nat 0 1, drop);`
use click_core::text::shift_word;

use crate::prelude::*;
use crate::rewrite::pattern::{NAMES, Pattern};

pub static ELEMENT: Class = Class {
    name: "IPRewriterPatterns",
    ports: "0/0",
    args: &[rest("PATTERN")],
    defines_names: true,
    build: |a| {
        let mut known = Vec::new();
        for line in a.rest().to_vec().iter().filter(|line| !line.is_empty()) {
            let (name, pattern) = shift_word(line);
            if let Err(message) = define(a, &known, &name, &pattern) {
                a.error("PATTERN", message);
            }
            known.push(name);
        }
        Some(Box::new(IPRewriterPatterns))
    },
    ..Class::DEFAULT
};

struct IPRewriterPatterns;

impl Element for IPRewriterPatterns {}

fn define(a: &mut Args<'_>, known: &[String], name: &String, text: &str) -> Result<(), String> {
    let at = a.arg_context();
    let before = at.names.find(at.element, name);
    if known.contains(name) || before.is_some_and(|n| n.meanings.contains_key(NAMES)) {
        return Err(format!("pattern \"{name}\" already defined"));
    }
    Pattern::parse(&click_core::text::split_words(text), at)?;
    a.define_meaning(NAMES, name, text);
    Ok(())
}
