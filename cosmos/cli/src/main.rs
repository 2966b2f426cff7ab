// SPDX-License-Identifier: Apache-2.0
//! The toolstack command line.
#![forbid(unsafe_code)]

fn main() {}
