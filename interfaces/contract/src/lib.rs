// SPDX-License-Identifier: Apache-2.0
//! The contract of the daemons' control sockets as a file, for programs that are not in Rust.
//! In addition, [`golden`] holds the daemons' answers to bad requests.
#![forbid(unsafe_code)]
mod compact;
mod file;
pub mod golden;
mod mutation;

pub use file::{check, path, text};
