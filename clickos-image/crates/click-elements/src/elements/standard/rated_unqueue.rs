// SPDX-License-Identifier: Apache-2.0
//! Pulls packets at a rate and pushes them on.
//!
//! # Synopsis
//! `RatedUnqueue(RATE [, BURST_DURATION, BURST_SIZE])`: RATE packets a second, mandatory. After a pause as
//! many may go at once as the rate gives in BURST_DURATION (default 20 ms), or BURST_SIZE packets.
//! # Ports
//! 1/1, pull to push.
//! # Handlers
//! * `rate` (read, write): RATE. `active` (read, write): whether it pulls; it does at the start.
//! * `calls` (read): how often its task ran, ran for nothing, pushed, and pulled for nothing.
//! # Example
//! `FromDevice(0) -> Queue -> RatedUnqueue(1000) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::rated::{self, Unit};
use crate::standard::rated_unqueue;

pub static ELEMENT: Class = Class {
    name: "RatedUnqueue",
    args: rated::PACKET_ARGS,
    build: |a| rated_unqueue::build(a, Unit::Packets),
    live: true,
    ..rated_unqueue::CLASS
};
