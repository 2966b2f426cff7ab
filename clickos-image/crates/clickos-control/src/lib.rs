// SPDX-License-Identifier: Apache-2.0
//! The guest's control thread: the store protocol that installs routers and calls handlers.
//!
//! The protocol is described in `docs/control-protocol.md`. [`Guest`] does all that a guest does.
//! Its embedder calls [`Guest::run`] in a loop and sleeps when the guest is idle. The control
//! thread is an asynchronous function that waits for the store only: while the store works, packets
//! go on.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod control;
#[cfg(feature = "threads")]
mod crew;
mod element_nodes;
mod event;
pub mod files;
mod guest;
mod guest_loop;
mod limits;
mod node;
mod offload;
mod report;
mod requests;
mod router_spec;
mod routers;
#[cfg(any(test, feature = "simulator"))]
pub mod simulator;

#[cfg(feature = "threads")]
pub use crew::{Crew, Text};
pub use guest::{Guest, TOKEN};
pub use guest_loop::{GuestLoop, Platform};
pub use limits::limits;
pub use xenstore::Store;
