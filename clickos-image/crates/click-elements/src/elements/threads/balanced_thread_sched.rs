// SPDX-License-Identifier: Apache-2.0
//! Spreads elements over the threads.
//!
//! # Synopsis
//! `BalancedThreadSched([INTERVAL, INCREASING])`: elements that no `StaticThreadSched` binds run on the thread that has
//! the fewest tasks and what they reach without a queue; they are assigned in the order of the configuration. Elements
//! without connections run on thread 0. INTERVAL, in milliseconds, and INCREASING, a truth value, are only checked.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Click moves tasks every INTERVAL (1000) milliseconds by the time that they took. Here elements belong to a thread with
//! all their packets and tables, so they are assigned once, before the load is known. Two parts of different cost need
//! a `StaticThreadSched`.
//! # Example
//! `FromDevice(0) -> Queue -> ToDevice(1); BalancedThreadSched;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "BalancedThreadSched",
    ports: "0/0",
    args: &[optional("INTERVAL"), optional("INCREASING")],
    build: |a| {
        let (interval, increasing) = (a.opt::<u32>("INTERVAL"), a.opt::<bool>("INCREASING"));
        interval?;
        increasing?;
        Some(Box::new(BalancedThreadSched))
    },
    ..Class::DEFAULT
};

struct BalancedThreadSched;

impl Element for BalancedThreadSched {}
