// SPDX-License-Identifier: Apache-2.0
//! Lets packets of one input pass, which a handler chooses, and drops the others.
//!
//! # Synopsis
//! `InputSwitch([INPUT])`: default 0; negative: all packets are dropped.
//! # Ports
//! any/1, push.
//! # Handlers
//! * `switch` (read, write): INPUT; an input that is not there means -1.
//! # Example
//! `FromDevice(0) -> [0] s :: InputSwitch(1) -> ToDevice(2); FromDevice(1) -> [1] s;`
use crate::prelude::*;
use crate::standard::input_choice;

pub static ELEMENT: Class = Class {
    name: "InputSwitch",
    processing: "h/h",
    live: true,
    ..input_choice::CLASS
};
