// SPDX-License-Identifier: Apache-2.0
//! Xen store wire codec and clients over a socket and over a ring.
//!
//! * [`Client`]: blocking, over xenstored's UNIX socket (dom0's view; used by cosmosd).
//! * [`RingClient`]: non-blocking, over a domain's store ring (a domU's view; used by the guests).
//! * [`Mux`] shares a non-blocking connection among a guest's threads, and [`StoreConnection`] makes one's
//!   requests asynchronous functions.
//!
//! Facts about the protocol are from Xen's public header `xen/io/xs_wire.h` and `docs/misc/xenstore.txt`.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

mod error;
mod events;
mod framing;
mod mux;
mod perms;
mod request;
mod ring;
#[cfg(feature = "std")]
mod socket;
mod store;
mod wire;

pub mod page;

pub use error::{Code, Error};
pub use framing::{Decoder, Message, WatchEvent};
pub use mux::{Handle, Mux};
pub use perms::{Access, Perm, parse_list as parse_perms};
pub use request::{Request, Tx, names};
pub use ring::{Index, Notify, Page, RING_SIZE, RingClient};
#[cfg(feature = "std")]
pub use socket::{Client, Transaction};
pub use store::{Store, StoreConnection};
pub use wire::{Header, Kind, PATH_MAX, PAYLOAD_MAX};
