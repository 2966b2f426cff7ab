// SPDX-License-Identifier: Apache-2.0
//! Bounded rings between two threads of the switch, and the bell of a thread that sleeps (unsafe
//! island).
//!
//! A ring has one sender and one receiver. Each stores its index once for a batch. The slots live
//! as long as the ring, so a message that owns memory keeps it for the next one.
//!
//! # Example
//! ```
//! let (mut sender, mut receiver) = vale_handover::ring::<Vec<u8>>(8);
//! assert!(sender.push(|slot| slot.extend([1, 2])));
//! assert!(sender.publish());
//! assert_eq!(receiver.pop(|slot| slot.len()), Some(2));
//! receiver.release();
//! ```
#![deny(unsafe_code)]

mod bell;
#[allow(unsafe_code)]
mod ring;
#[allow(unsafe_code)]
mod slots;

pub use bell::{Bell, Flag};
pub use ring::{Receiver, Sender, ring, ring_in};
pub use slots::{Index, Memory, Slots};
