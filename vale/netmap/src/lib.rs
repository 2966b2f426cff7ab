// SPDX-License-Identifier: Apache-2.0
//! Netmap's user API on ports of valed, for C programs.
//!
//! The headers in `include/net` declare the functions. [ADR 0110](../../../docs/adr/0110-switch-in-user-space.md)
//! explains the design. Only `memory` and `exports` contain unsafe code.
#![deny(unsafe_code)]

mod abi;
#[allow(unsafe_code)]
mod exports;
#[allow(unsafe_code)]
mod memory;
mod name;
mod open;
mod port;
mod registry;
mod wait;
