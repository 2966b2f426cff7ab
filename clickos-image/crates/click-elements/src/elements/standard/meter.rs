// SPDX-License-Identifier: Apache-2.0
//! Chooses the output by the rate of all packets together.
//!
//! # Synopsis
//! `Meter(RATE, ...)`: packets a second, in ascending order, one less than outputs. While the average over
//! about two seconds is below the first, packets leave by output 0; below the second by output 1; and so on.
//! # Ports
//! 1/2 or more, push.
//! # Handlers
//! * `rate` (read): the average. `meters` (read): the rates, one a line.
//! # Differences from Click
//! The average is over about two seconds, as Counter's; `meters` prints the rates as given, one a
//! line.
//! # Example
//! `FromDevice(0) -> m :: Meter(10000) -> ToDevice(1); m[1] -> Discard;`
use crate::prelude::*;
use crate::standard::meter;
use crate::standard::rated::Unit;

pub static ELEMENT: Class = Class {
    name: "Meter",
    build: |a| meter::build(a, Unit::Packets),
    ..meter::CLASS
};
