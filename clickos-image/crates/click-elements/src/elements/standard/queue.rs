// SPDX-License-Identifier: Apache-2.0
//! Stores packets first in, first out; what does not fit is dropped.
//!
//! # Synopsis
//! `Queue([CAPACITY])`: default 1000 packets. It tells those that pull when it has packets and those that push
//! when it has room. `FullNoteQueue` and `ThreadSafeQueue` are the same class: several threads may push to each
//! queue (see `StaticThreadSched`). `QuickNoteQueue` reports immediately that it is empty, `SimpleQueue` does not report that it is full.
//! # Ports
//! 1/1-2, push to pull. Output 1 (push) gets what does not fit; it is dropped if it is not connected.
//! # Handlers
//! * `length` (read): packets stored. `highwater_length` (read): the most there ever were.
//! * `capacity` (read, write): CAPACITY; if fewer packets fit, the youngest are dropped.
//! * `drops` (read): packets that did not fit.
//! * `reset_counts` (write): sets `drops` to 0 and `highwater_length` to `length`.
//! * `reset` (write): sends what is stored to output 1.
//! # Differences from Click
//! Output 1 gets the packets that do not fit, for all aliases. A hot swap keeps packets only
//! between queues of one class. A consumer rests after it finds a queue empty once; Click's tries
//! some more times.
//! # Example
//! `FromDevice(0) -> q :: Queue(64) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::fifo::{self, Full};

pub static ELEMENT: Class = Class {
    name: "Queue",
    aliases: &["FullNoteQueue", "ThreadSafeQueue"],
    build: |a| fifo::build(a, Full::TellAndDropNew),
    live: true,
    ..fifo::CLASS
};
