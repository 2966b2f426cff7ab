// SPDX-License-Identifier: Apache-2.0
//! Lets packets be pulled at a rate in bytes.
//!
//! # Synopsis
//! `BandwidthShaper(RATE)`: RATE bytes a second, or with a unit such as `384kbps`;
//! mandatory. The gap after a packet is as long as it takes. A puller that came too late may catch
//! up with one second's worth.
//! # Ports
//! 1/1-2, pull. Output 1 gives packets at times when output 0 may not.
//! # Handlers
//! * `rate` (read, write): RATE. `reset` (write): forgets how late or early packets are.
//! * `share` (read, write): reads `RATE USED`, in bytes, USED since the start. A write of a RATE is no desired state, and
//!   lets no packet pass earlier: guests can have shares of one rate so. A hot swap keeps it.
//! # Differences from Click
//! Time is counted in nanoseconds; Click has no `share`.
//! # Example
//! `FromDevice(0) -> Queue -> BandwidthShaper(10Mbps) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::rated::Unit;
use crate::standard::shaper;

pub static ELEMENT: Class = Class {
    name: "BandwidthShaper",
    ports: "1/1-2",
    build: |a| shaper::build(a, Unit::Bytes),
    live: true,
    ..shaper::CLASS
};
