// SPDX-License-Identifier: Apache-2.0
//! The dom0 packet switch.
#![forbid(unsafe_code)]

fn main() {}
