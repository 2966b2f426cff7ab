// SPDX-License-Identifier: Apache-2.0
//! Says by which outputs packets of an element's inputs may leave; does nothing while it runs, because
//! the elements know that themselves.
//!
//! # Synopsis
//! `FlowInfo(ELEMENT CODE, ...)`: elements that exist, and flow codes such as `x/x`.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Nothing depends on it here. Flow codes are not checked.
//! # Example
//! `s :: Script; FlowInfo(s x/x);`
use click_core::text::split_words;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FlowInfo",
    ports: "0/0",
    args: &[rest("ELEMENT")],
    build: |a| {
        let lines: Vec<Vec<String>> = a.rest().iter().map(|line| split_words(line)).collect();
        for words in lines.iter().filter(|words| words.len() != 2) {
            let message = format!("expected \"ELEMENT CODE\", got \"{}\"", words.join(" "));
            a.error("ELEMENT", message);
        }
        let elements = lines
            .into_iter()
            .filter_map(|words| words.into_iter().next());
        Some(Box::new(FlowInfo {
            elements: elements.collect(),
        }))
    },
    ..Class::DEFAULT
};

struct FlowInfo {
    elements: Vec<String>,
}

impl Element for FlowInfo {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let unknown = |name: &&String| ctx.has_work(name).is_none();
        match self.elements.iter().find(unknown) {
            Some(name) => Err(format!("ELEMENT: no element \"{name}\"")),
            None => Ok(()),
        }
    }
}
