// SPDX-License-Identifier: Apache-2.0
//! Stores packets first in, first out; when it is full, the oldest makes room.
//!
//! # Synopsis
//! `FrontDropQueue([CAPACITY])`: default 1000 packets.
//! # Ports
//! 1/1-2, push to pull. Output 1 (push) gets what had to make room; it is dropped if it is not connected.
//! # Handlers
//! * `length` (read): packets stored. `highwater_length` (read): the most there ever were.
//! * `capacity` (read, write): CAPACITY; if fewer packets fit, the oldest are dropped.
//! * `drops` (read): packets that had to make room.
//! * `reset_counts` (write): sets `drops` to 0 and `highwater_length` to `length`.
//! * `reset` (write): sends what is stored to output 1.
//! # Example
//! `FromDevice(0) -> FrontDropQueue(64) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::fifo::{self, Full};

pub static ELEMENT: Class = Class {
    name: "FrontDropQueue",
    build: |a| fifo::build(a, Full::DropOldest),
    live: true,
    ..fifo::CLASS
};
