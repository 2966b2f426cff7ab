// SPDX-License-Identifier: Apache-2.0
//! The process guest: the engine in a confined Linux process on memfd rings.

fn main() {}
