// SPDX-License-Identifier: Apache-2.0
//! How guests of both kinds move the packets of a vif between its rings and the engine.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod copying;
mod in_place;

pub use in_place::InPlace;
