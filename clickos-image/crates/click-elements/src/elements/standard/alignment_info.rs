// SPDX-License-Identifier: Apache-2.0
//! Says how the packets at elements' inputs are aligned, as the tool click-align finds out; does nothing
//! while it runs, because no element depends on alignment.
//!
//! # Synopsis
//! `AlignmentInfo(ELEMENT [CHUNK OFFSET ...], ...)`: a pair of numbers for each input.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Nothing depends on it here. It does not search for contradictions.
//! # Example
//! `c :: CheckIPHeader; AlignmentInfo(c 4 2);`
use click_core::text::split_words;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AlignmentInfo",
    ports: "0/0",
    args: &[rest("ELEMENT")],
    build: |a| {
        for line in a.rest().to_vec() {
            let words = split_words(&line);
            if words.len() % 2 != 1 {
                let message = format!("expected \"ELEMENT CHUNK OFFSET ...\", got \"{line}\"");
                a.error("ELEMENT", message);
            }
            for number in words.iter().skip(1) {
                a.parse::<i64>("ELEMENT", number);
            }
        }
        Some(Box::new(AlignmentInfo))
    },
    ..Class::DEFAULT
};

struct AlignmentInfo;

impl Element for AlignmentInfo {}
