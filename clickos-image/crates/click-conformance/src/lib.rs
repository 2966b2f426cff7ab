// SPDX-License-Identifier: Apache-2.0
//! Runs cases of the conformance corpus, on any host and in a guest of Xen.
//!
//! The format is described in `clickos-image/conformance/README.md`.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod bench;
mod case;
mod packet;

pub use bench::{CaseHost, run};
pub use case::{Case, Step};
