// SPDX-License-Identifier: Apache-2.0
//! Command line of the switch.
#![forbid(unsafe_code)]

fn main() {}
