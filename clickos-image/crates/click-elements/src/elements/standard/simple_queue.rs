// SPDX-License-Identifier: Apache-2.0
//! Stores packets first in, first out, and does not tell sources when it is full.
//!
//! # Synopsis
//! `SimpleQueue([CAPACITY])`: default 1000 packets. It tells those that pull when it has packets; a source that
//! pushes continues when there is no room, unlike at a `Queue`. `NotifierQueue` is the same class.
//! # Ports
//! 1/1-2, push to pull. Output 1 (push) gets what does not fit; it is dropped if it is not connected.
//! # Handlers
//! * `length` (read): packets stored. `highwater_length` (read): the most there ever were.
//! * `capacity` (read, write): CAPACITY; if fewer packets fit, the youngest are dropped.
//! * `drops` (read): packets that did not fit.
//! * `reset_counts` (write): sets `drops` to 0 and `highwater_length` to `length`.
//! * `reset` (write): sends what is stored to output 1.
//! # Example
//! `InfiniteSource(LIMIT 5000) -> SimpleQueue(64) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::fifo::{self, Full};

pub static ELEMENT: Class = Class {
    name: "SimpleQueue",
    aliases: &["NotifierQueue"],
    build: |a| fifo::build(a, Full::DropNew),
    live: true,
    ..fifo::CLASS
};
