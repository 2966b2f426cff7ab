// SPDX-License-Identifier: Apache-2.0
//! Bounded rings between two threads of the switch or of a router, and the flag by which a sleeping thread asks for
//! a wake-up (unsafe island).
//!
//! A ring has one sender and one receiver. Each stores its index once for a batch. The slots live
//! as long as the ring, so a message that owns memory keeps it for the next one.
//!
//! # Example
//! ```
//! let (mut sender, mut receiver) = vale_handoff::ring::<Vec<u8>>(8);
//! assert!(sender.push(|slot| slot.extend([1, 2])));
//! assert!(sender.publish());
//! assert_eq!(receiver.pop(|slot| slot.len()), Some(2));
//! receiver.release();
//! ```
#![deny(unsafe_code)]

mod need_wakeup;
#[allow(unsafe_code)]
mod ring;
#[allow(unsafe_code)]
mod slots;

pub use need_wakeup::{Flag, NeedWakeup};
pub use ring::{Receiver, Sender, ring, ring_in};
pub use slots::{Index, Memory, Slots};
