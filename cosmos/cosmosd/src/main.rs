// SPDX-License-Identifier: Apache-2.0
//! The toolstack daemon.
#![forbid(unsafe_code)]

fn main() {}
