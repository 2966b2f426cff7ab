// SPDX-License-Identifier: Apache-2.0
//! The user-space click program.
#![forbid(unsafe_code)]

fn main() {}
