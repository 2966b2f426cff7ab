// SPDX-License-Identifier: Apache-2.0
//! Sends packets up to a rate in bytes to output 0, the others to output 1.
//!
//! # Synopsis
//! `BandwidthRatedSplitter(RATE [, BURST_DURATION, BURST_BYTES])`: RATE bytes a second, or with a unit such as
//! `384kbps`; mandatory. After a pause as much may go at once as the rate gives in BURST_DURATION
//! (default 20 ms), or BURST_BYTES. As in Click, 131,072 bytes come on top for the longest packet.
//! # Ports
//! 1/1-2, push. Without output 1 the element drops its packets.
//! # Handlers
//! * `rate` (read, write): RATE.
//! # Example
//! `FromDevice(0) -> s :: BandwidthRatedSplitter(1MBps) -> ToDevice(1); s[1] -> Discard;`
use crate::prelude::*;
use crate::standard::rated::{self, Unit};
use crate::standard::rated_splitter;

pub static ELEMENT: Class = Class {
    name: "BandwidthRatedSplitter",
    args: rated::BYTE_ARGS,
    build: |a| rated_splitter::build(a, Unit::Bytes),
    live: true,
    ..rated_splitter::CLASS
};
