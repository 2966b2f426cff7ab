// SPDX-License-Identifier: Apache-2.0
//! Packet generator and sink on a switch port.
#![forbid(unsafe_code)]

fn main() {}
