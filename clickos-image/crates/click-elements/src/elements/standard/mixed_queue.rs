// SPDX-License-Identifier: Apache-2.0
//! Stores packets first in, first out from one input and last in, first out from the other.
//!
//! # Synopsis
//! `MixedQueue([CAPACITY])`: default 1000 packets.
//! # Ports
//! 2/1-2, push to pull. Packets of input 0 go to the end; without room they are dropped. Packets of
//! input 1 go to the front; without room the packet at the end is dropped for them.
//! Output 1 (push) gets the dropped packets if it is connected.
//! # Handlers
//! * `length` (read): packets stored. `highwater_length` (read): the most there ever were.
//! * `capacity` (read, write): CAPACITY; if fewer packets fit, those at the end are dropped.
//! * `drops` (read): packets dropped for want of room.
//! * `reset_counts` (write): sets `drops` to 0 and `highwater_length` to `length`.
//! * `reset` (write): sends what is stored to output 1.
//! # Example
//! `FromDevice(0) -> q :: MixedQueue(64) -> ToDevice(1); FromDevice(1) -> [1] q;`
use crate::prelude::*;
use crate::standard::fifo::{self, Full};

pub static ELEMENT: Class = Class {
    name: "MixedQueue",
    ports: "2/1-2",
    build: |a| fifo::build(a, Full::Mixed),
    live: true,
    ..fifo::CLASS
};
