// SPDX-License-Identifier: Apache-2.0
//! Packets, batches of them, and the pool they come from.
//!
//! This is an unsafe island: a packet is a pointer to a buffer, which holds its
//! bytes and what is rarely known of it; next to the pointer lies what most
//! elements ask for. The safe interface upholds these rules:
//! * several [`Packet`]s may point to one buffer; then a number next to the
//!   buffers says how many, and who is to change it gets one of its own before;
//! * dropping the last of them puts the buffer back into the pool it came from;
//! * a pool's memory lives until the pool and all its packets are dropped;
//! * a router, its pool and its packets share a thread. Only [`InTransit`] is `Send` (feature `threads`): a packet
//!   whose buffer no other packet has, on its way to the pool of another thread.
//!
//! Its tests run under Miri too: `cargo +nightly miri test -p click-packet --test it packets::`.
#![no_std]
extern crate alloc;
#[cfg(any(test, feature = "threads"))]
extern crate std;

pub mod anno;
mod arena;
mod batch;
mod buffer;
#[cfg(feature = "threads")]
mod claims;
mod copy;
mod cursor;
mod data_span;
#[cfg(feature = "threads")]
mod depot;
mod distribute;
#[cfg(feature = "threads")]
mod heap;
mod iter;
pub mod memory;
mod metadata;
mod packet;
mod pool;
mod refcount;
mod region;
mod ring;
#[cfg(feature = "threads")]
mod transit;

pub use batch::Batch;
pub use cursor::BatchCursor;
#[cfg(feature = "threads")]
pub use heap::SharedHeap;
pub use iter::{Drain, IntoIter};
pub use packet::{HEADROOM, MAX_PACKET, Packet};
pub use pool::PacketPool;
pub use region::{Region, RegionOffset};
pub use ring::Ring;
#[cfg(feature = "threads")]
pub use transit::{InTransit, Underway};
