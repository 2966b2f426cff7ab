// SPDX-License-Identifier: Apache-2.0
//! JSON lines over a UNIX socket with roles by peer credentials and descriptor passing.
//!
//! The protocol stands in `docs/interfaces.md`, "Control sockets". A daemon implements
//! [`Service`], a table of [`Verb`]s, and hands it to a [`Server`]. Programs talk to it with a
//! [`Client`]. The macro [`verbs`] makes the table that both share. In addition to the socket, [`daemon`] has the configuration, logs and signals of daemons.
#![forbid(unsafe_code)]

mod bounded;
mod budget;
mod client;
mod connection;
mod connections;
pub mod daemon;
mod event_limit;
mod events;
mod line;
mod message;
mod peer;
mod server;
mod table;
mod threads;
mod typed;
mod verb;

pub use bounded::{at_most, quoted};
pub use client::{Client, ClientError, EventReader};
pub use connections::Limits;
pub use event_limit::EventLimit;
pub use events::{EventHub, Subscription};
pub use message::{ApiError, Event};
pub use peer::{OPERATOR, Peer, Roles};
pub use server::{Server, Stopper};
#[cfg(feature = "schema")]
pub use table::Described;
pub use table::{Done, NoArgs, Signature, Size};
pub use threads::spawn;
pub use typed::{typed, typed_at};
pub use verb::{
    Access, Handler, Prepared, Ready, Reply, Service, Subscribing, Typed, TypedWithFds, Verb, Work,
    prepare,
};

/// The daemons' sockets for programs whose user names no other.
pub const COSMOSD_SOCKET: &str = "/run/clickos/cosmosd.sock";
/// As above.
pub const VALED_SOCKET: &str = "/run/clickos/valed.sock";
/// Version of the protocol, the `v` of every line.
pub const VERSION: u32 = 1;
/// Longest line either side accepts, in bytes without the newline.
pub const MAX_LINE: usize = 4 << 20;
/// Longest request line of a verb that says nothing else.
pub const SMALL_LINE: usize = 64 << 10;
/// Most values of a line that a client reads.
pub const MAX_VALUES: usize = 1 << 18;
/// Most descriptors that may travel with one line.
pub const MAX_FDS: usize = 8;
