// SPDX-License-Identifier: Apache-2.0
//! Makes a configuration fail.
//!
//! # Synopsis
//! `ErrorElement(ANYTHING, ...)`: arguments do not matter.
//! # Ports
//! any/any, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `elementclass Nat { $x | input -> ErrorElement -> output }`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ErrorElement",
    ports: "-/-",
    args: &[rest("ANYTHING")],
    build: |_| Some(Box::new(ErrorElement)),
    ..Class::DEFAULT
};

struct ErrorElement;

impl Element for ErrorElement {
    fn initialize(&mut self, _ctx: &mut Context<'_>) -> Result<(), String> {
        Err("is there to make the configuration fail".to_string())
    }
}
