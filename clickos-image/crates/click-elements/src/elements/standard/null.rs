// SPDX-License-Identifier: Apache-2.0
//! Passes packets unchanged.
//!
//! # Synopsis
//! `Null`
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> Null -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Null",
    aliases: &[
        "Null1", "Null2", "Null3", "Null4", "Null5", "Null6", "Null7", "Null8",
    ],
    build: |_| Some(Box::new(Null)),
    ..Class::DEFAULT
};

struct Null;

impl Element for Null {
    fn is_plain(&self) -> bool {
        true
    }
}
