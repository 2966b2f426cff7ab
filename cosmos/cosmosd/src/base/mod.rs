// SPDX-License-Identifier: Apache-2.0
//! What all other parts use: errors, texts, clocks, files, and queues for work.

pub mod build_slots;
pub mod clock;
pub mod error;
#[cfg(test)]
pub mod faults;
pub mod files;
pub mod steps;
pub mod text;
