// SPDX-License-Identifier: Apache-2.0
//! What the guests share: the domain below their loop.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod domain;
#[cfg(feature = "corpus")]
pub mod files;
pub mod generator;
pub mod hostile;
pub mod vifs;
