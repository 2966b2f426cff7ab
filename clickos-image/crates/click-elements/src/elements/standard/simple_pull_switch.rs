// SPDX-License-Identifier: Apache-2.0
//! Pulls from one input, which a handler chooses, without telling whether that input has packets.
//!
//! # Synopsis
//! `SimplePullSwitch([INPUT])`: default 0; negative: there is nothing to pull. A puller is notified of packets at
//! inputs that are not chosen as well, and tries without result; `PullSwitch` does better.
//! # Ports
//! any/1, pull.
//! # Handlers
//! * `switch` (read, write): INPUT; an input that is not there means -1.
//! # Example
//! `Queue -> [0] s :: SimplePullSwitch(1) -> ToDevice(0); Queue -> [1] s;`
use crate::prelude::*;
use crate::standard::input_choice;

pub static ELEMENT: Class = Class {
    name: "SimplePullSwitch",
    processing: "l/l",
    live: true,
    ..input_choice::CLASS
};
