// SPDX-License-Identifier: Apache-2.0
//! Gives flows of a rewriter one of several patterns in turn, as a load balancer does.
//!
//! # Synopsis
//! `RoundRobinIPMapper(PATTERN, ...)`: PATTERN is a rewriter's pattern and its two outputs, `SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT` or
//! `NAME FOUTPUT ROUTPUT`. The first from the next one on that can be used is used.
//! # Ports
//! 0/0. A rewriter has the element's name as its INPUTSPEC.
//! # Handlers
//! None of its own.
//! # Example
//! `lb :: RoundRobinIPMapper(- - 10.0.0.1 - 0 1, - - 10.0.0.2 - 0 1); rw :: IPRewriter(lb, drop);`
use click_core::text::split_words;

use crate::prelude::*;
use crate::rewrite::mapper::{Choose, Mapper};
use crate::rewrite::spec::with_outputs;

pub static ELEMENT: Class = Class {
    name: "RoundRobinIPMapper",
    ports: "0/0",
    args: &[rest("PATTERN")],
    build: |a| {
        let (lines, at) = (a.rest().to_vec(), a.arg_context());
        if lines.is_empty() {
            a.error("PATTERN", "expected patterns, got none");
        }
        let mut patterns = Vec::new();
        for line in &lines {
            match with_outputs(&split_words(line), usize::from(u16::MAX), at) {
                Ok(pattern) => patterns.push(pattern),
                Err(message) => a.error("PATTERN", message),
            }
        }
        Mapper::element(patterns, Choose::InTurn(0))
    },
    ..Class::DEFAULT
};
