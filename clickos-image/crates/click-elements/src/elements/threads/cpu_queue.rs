// SPDX-License-Identifier: Apache-2.0
//! Stores packets of several threads, in the order of each.
//!
//! # Synopsis
//! `CPUQueue([CAPACITY])`: default 1000 packets. Those that pull take packets of each thread that pushes in turn
//! (`click -j N`). On one thread it is a `SimpleQueue`.
//! # Ports
//! 1/1, push to pull.
//! # Handlers
//! * `length` (read): packets stored. `highwater_length` (read): the most there ever were.
//! * `capacity` (read, write): CAPACITY; if fewer packets fit, the youngest are dropped.
//! * `drops` (read): packets that did not fit.
//! * `reset_counts` (write): sets `drops` to 0 and `highwater_length` to `length`.
//! * `reset` (write): drops what is stored.
//! # Differences from Click
//! CAPACITY counts for all threads together, Click's for each. Click's has only `capacity` and `drops`, to be read.
//! # Example
//! `FromDevice(0) -> q :: CPUQueue(64); FromDevice(1) -> q; q -> ToDevice(2); StaticThreadSched(q 0);`
use crate::prelude::*;
use crate::standard::fifo::{self, Full};

pub static ELEMENT: Class = Class {
    name: "CPUQueue",
    ports: "1/1",
    processing: "h/l",
    build: |a| fifo::build(a, Full::DropNew),
    live: true,
    ..fifo::CLASS
};
