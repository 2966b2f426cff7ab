// SPDX-License-Identifier: Apache-2.0
//! Passes packets unchanged and is push.
//!
//! # Synopsis
//! `PushNull`
//! # Ports
//! 1/1, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> PushNull -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PushNull",
    processing: "h/h",
    build: |_| Some(Box::new(PushNull)),
    ..Class::DEFAULT
};

struct PushNull;

impl Element for PushNull {
    fn is_plain(&self) -> bool {
        true
    }
}
