// SPDX-License-Identifier: Apache-2.0
//! The contract of the daemons' control sockets, for tests.
#![forbid(unsafe_code)]
mod compact;
pub mod golden;
mod mutation;
