// SPDX-License-Identifier: Apache-2.0
//! Packet rings shared by a guest and the switch (unsafe island 1).
//!
//! One port is a region of memory with two rings: `tx` from the guest to the switch, `rx` from
//! the switch to the guest. The layout stands in docs/rings.md. Each side takes the other as
//! hostile, and its own indices are private. It reads every shared word once and checks the copy.
//! It copies frames before it looks at them, and has no Rust reference to shared memory.
//! In version 2 the buffers of a guest are its packets: it trusts the switch for their bytes.
//!
//! A busy side only polls. Before it sleeps it arms `need_kick`, looks once more, and is then
//! woken exactly once.
//!
//! # Example of a guest's loop
//! ```text
//! loop {
//!     while let Some(length) = port.pop(&mut buffer) { port.push(&buffer[..length])?; }
//!     if port.publish() { kick.write()?; }
//!     if !port.sleep_prepare() { wake.read()?; port.wake_done(); }
//! }
//! ```
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]
extern crate alloc;

pub mod directory;
mod guest;
#[cfg_attr(
    not(feature = "std"),
    allow(dead_code, reason = "the side of the switch needs std")
)]
mod half;
mod header;
mod in_place;
pub mod layout;
#[allow(unsafe_code)]
mod mapping;
#[cfg(feature = "std")]
mod memfd;
mod memory;
#[cfg(feature = "std")]
mod regions;
#[cfg(feature = "std")]
mod switch;

pub use guest::GuestPort;
#[cfg(feature = "std")]
pub use half::{Parts, Pushed};
pub use half::{PushError, Rest, Slot};
pub use in_place::InPlacePort;
pub use layout::{BUFFER_SIZE, LONGEST, SHORT_MTU, SLOTS_RANGE};
#[cfg(feature = "std")]
pub use mapping::Blocks;
pub use mapping::Mapping;
pub use memory::Memory;
#[cfg(feature = "std")]
pub use regions::Regions;
#[cfg(feature = "std")]
pub use switch::SwitchPort;

use core::fmt;

/// Why a region is not a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingError {
    /// Not a power of two within [`SLOTS_RANGE`], or not what was agreed on.
    Slots(u32),
    /// The region has `have` bytes, its layout needs `need`.
    Size {
        have: usize,
        need: usize,
    },
    BadMagic(u64),
    BadVersion(u32),
    BadBufferSize(u32),
    /// A ring that was in use has this word in place of an index.
    BadIndex(u32),
    /// The memfd can still change its size. A smaller one would kill the process that maps it.
    NotSealed,
    /// A system call failed with this error number.
    Os(i32),
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots(n) => write!(f, "slots: {n} is not a power of two in {SLOTS_RANGE:?}"),
            Self::Size { have, need } => write!(f, "region: {have} bytes, the layout needs {need}"),
            Self::BadMagic(n) => write!(f, "magic: {n:#x} is not {:#x}", layout::MAGIC),
            Self::BadVersion(n) => write!(f, "version: {n} is not supported"),
            Self::BadBufferSize(n) => write!(f, "buffer size: {n} is not {BUFFER_SIZE}"),
            Self::BadIndex(n) => write!(f, "index: {n} is not a slot of the ring"),
            Self::NotSealed => write!(f, "memfd: is not sealed against a change of its size"),
            Self::Os(n) => write!(f, "region: error number {n}"),
        }
    }
}

impl core::error::Error for RingError {}
