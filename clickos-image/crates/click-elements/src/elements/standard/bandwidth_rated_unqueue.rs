// SPDX-License-Identifier: Apache-2.0
//! Pulls packets at a rate in bytes and pushes them on.
//!
//! # Synopsis
//! `BandwidthRatedUnqueue(RATE [, BURST_DURATION, BURST_BYTES])`: RATE bytes a second, or with a unit such as
//! `384kbps`; mandatory. After a pause as much may go at once as the rate gives in BURST_DURATION
//! (default 20 ms), or BURST_BYTES; 131,072 bytes, for the longest packet, come on top as in Click.
//! # Ports
//! 1/1, pull to push.
//! # Handlers
//! * `rate` (read, write): RATE. `active` (read, write): whether it pulls; it does at the start.
//! * `calls` (read): how often its task ran, ran for nothing, pushed, and pulled for nothing.
//! # Example
//! `FromDevice(0) -> Queue -> BandwidthRatedUnqueue(10Mbps) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::rated::{self, Unit};
use crate::standard::rated_unqueue;

pub static ELEMENT: Class = Class {
    name: "BandwidthRatedUnqueue",
    args: rated::BYTE_ARGS,
    build: |a| rated_unqueue::build(a, Unit::Bytes),
    live: true,
    ..rated_unqueue::CLASS
};
