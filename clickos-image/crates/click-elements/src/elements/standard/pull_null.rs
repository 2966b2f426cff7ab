// SPDX-License-Identifier: Apache-2.0
//! Passes packets unchanged and is pull.
//!
//! # Synopsis
//! `PullNull`
//! # Ports
//! 1/1, pull.
//! # Handlers
//! None of its own.
//! # Example
//! `Queue -> PullNull -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PullNull",
    processing: "l/l",
    build: |_| Some(Box::new(PullNull)),
    ..Class::DEFAULT
};

struct PullNull;

impl Element for PullNull {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        ctx.pull(0, max)
    }
}
