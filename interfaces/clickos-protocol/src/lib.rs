// SPDX-License-Identifier: Apache-2.0
//! What both ends of the control protocol (`docs/control-protocol.md`) write and read in the store.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod answer;
mod command;
mod marks;
mod pieces;

pub use answer::{Answer, Malformed};
pub use command::{Command, WRITES_MAX, Write};
pub use marks::Marks;
pub use pieces::{GUEST_PIECE, Joined, Joiner, TOOLSTACK_PIECE, config_pieces, split};

/// Root of the protocol, relative to the domain's own directory `/local/domain/<domid>`.
pub const ROOT: &str = "data/clickos";
/// Router numbers are below this.
pub const ROUTERS: u8 = 64;
/// The greatest number of a router.
pub const MAX_RID: u8 = ROUTERS - 1;
/// Bytes of a request, at most.
pub const REQUEST_MAX: usize = 1 << 20;
/// Bytes of an answer's data, at most.
pub const ANSWER_MAX: usize = 256 << 10;
/// Store nodes of all answers of a guest together.
pub const ANSWER_NODES: usize = 320;
