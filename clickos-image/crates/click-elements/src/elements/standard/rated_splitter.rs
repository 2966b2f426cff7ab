// SPDX-License-Identifier: Apache-2.0
//! Sends packets up to a rate to output 0, the others to output 1.
//!
//! # Synopsis
//! `RatedSplitter(RATE [, BURST_DURATION, BURST_SIZE])`: RATE packets a second, mandatory. After a pause as
//! many may go at once as the rate gives in BURST_DURATION (default 20 ms), or BURST_SIZE packets.
//! # Ports
//! 1/1-2, push. Without output 1 the element drops its packets.
//! # Handlers
//! * `rate` (read, write): RATE.
//! # Example
//! `FromDevice(0) -> s :: RatedSplitter(1000) -> ToDevice(1); s[1] -> Discard;`
use crate::prelude::*;
use crate::standard::rated::{self, Unit};
use crate::standard::rated_splitter;

pub static ELEMENT: Class = Class {
    name: "RatedSplitter",
    args: rated::PACKET_ARGS,
    build: |a| rated_splitter::build(a, Unit::Packets),
    live: true,
    ..rated_splitter::CLASS
};
