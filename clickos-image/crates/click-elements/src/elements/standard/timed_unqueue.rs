// SPDX-License-Identifier: Apache-2.0
//! Pulls a burst of packets now and then and pushes it on.
//!
//! # Synopsis
//! `TimedUnqueue(INTERVAL [, BURST])`: BURST packets (default 1) every INTERVAL seconds (at least 1 ms); mandatory.
//! After a pause in which there was nothing the next packet does not wait.
//! # Ports
//! 1/1, pull to push.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Intervals are at least 1 ms, and late events are not made up for.
//! # Example
//! `FromDevice(0) -> Queue -> TimedUnqueue(0.1, 5) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::timed_unqueue;

pub static ELEMENT: Class = Class {
    name: "TimedUnqueue",
    build: |a| timed_unqueue::build(a, 1),
    ..timed_unqueue::CLASS
};
