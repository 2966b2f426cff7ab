// SPDX-License-Identifier: Apache-2.0
//! Names of locks for `SpinlockAcquire` and `SpinlockRelease`.
//!
//! # Synopsis
//! `SpinlockInfo(NAME, ...)`
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Example
//! `SpinlockInfo(table); FromDevice(0) -> SpinlockAcquire(table) -> Null -> SpinlockRelease(table) -> ToDevice(1);`
use click_core::text::unquote;

use crate::prelude::*;
use crate::standard::spinlock::KIND;

pub static ELEMENT: Class = Class {
    name: "SpinlockInfo",
    ports: "0/0",
    args: &[rest("NAME")],
    defines_names: true,
    build: |a| {
        for name in a.rest().to_vec() {
            match unquote(&name) {
                name if name.is_empty() => a.error("NAME", "expected a name, got nothing"),
                name => a.define_meaning(KIND, &name, ""),
            }
        }
        Some(Box::new(SpinlockInfo))
    },
    ..Class::DEFAULT
};

struct SpinlockInfo;

impl Element for SpinlockInfo {}
