// SPDX-License-Identifier: Apache-2.0
//! Tests from outside, in one program: each program is linked on its own.
#![cfg(test)]
mod batches;
#[cfg(feature = "threads")]
mod migrating;
mod packets;
mod regions;
mod rings;
mod shares;
