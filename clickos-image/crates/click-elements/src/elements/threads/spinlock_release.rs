// SPDX-License-Identifier: Apache-2.0
//! Gives back a lock. Elements on several threads share nothing but queues, so nothing has to wait: packets pass.
//!
//! # Synopsis
//! `SpinlockRelease(LOCK)`: a name that a `SpinlockInfo` defines, mandatory.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Arguments are only checked.
//! # Example
//! `SpinlockInfo(table); FromDevice(0) -> SpinlockAcquire(table) -> Null -> SpinlockRelease(table) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::spinlock;

pub static ELEMENT: Class = Class {
    name: "SpinlockRelease",
    ..spinlock::CLASS
};
