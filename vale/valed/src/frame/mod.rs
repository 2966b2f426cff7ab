// SPDX-License-Identifier: Apache-2.0
//! Frames: how they arrive, are read, cut, wrapped and leave.
pub mod drop_reason;
pub mod dscp;
pub(crate) mod gso;
pub mod headers;
pub mod key;
pub(crate) mod nsh;
pub(crate) mod packet;
pub(crate) mod quote;
pub(crate) mod repeat;
pub(crate) mod rx_frame;
pub(crate) mod tx_frame;

/// The first bytes of a frame that the switch copies into private memory: two cache lines.
pub const HEAD: usize = 128;
