// SPDX-License-Identifier: Apache-2.0
//! Stores packets first in, first out; those that pull are notified immediately when the last one leaves.
//!
//! # Synopsis
//! `QuickNoteQueue([CAPACITY])`: as `Queue`, default 1000 packets; but a `Queue` lets those that pull try once without result
//! before it tells them to rest.
//! # Ports
//! 1/1-2, push to pull. Output 1 (push) gets what does not fit; it is dropped if it is not connected.
//! # Handlers
//! * `length` (read): packets stored. `highwater_length` (read): the most there ever were.
//! * `capacity` (read, write): CAPACITY; if fewer packets fit, the youngest are dropped.
//! * `drops` (read): packets that did not fit.
//! * `reset_counts` (write): sets `drops` to 0 and `highwater_length` to `length`.
//! * `reset` (write): sends what is stored to output 1.
//! # Example
//! `FromDevice(0) -> q :: QuickNoteQueue(64) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::fifo::{self, Full};

pub static ELEMENT: Class = Class {
    name: "QuickNoteQueue",
    build: |a| fifo::build(a, Full::QuickAndDropNew),
    live: true,
    ..fifo::CLASS
};
