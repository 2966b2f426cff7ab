// SPDX-License-Identifier: Apache-2.0
//! libcosmos for Rust: domains of a Xen host (unsafe island).
//!
//! The C library (`cosmos/lib`) does the work; this crate gives its calls Rust's types. Without
//! feature `libxl` nothing is linked, so the crate can be checked on a machine without Xen.
#![deny(unsafe_code)]

mod error;
#[allow(unsafe_code)]
mod events;
#[allow(unsafe_code)]
mod ffi;
#[allow(unsafe_code)]
mod host;
mod types;

pub use error::{Code, Error, Result};
pub use events::{Event, Events};
pub use ffi::{BUILDERS, PEEK_DOMAINS};
pub use host::Host;
pub use types::{Files, HostInfo, Info, Nic, Reason, Spec, State, Type, Vale};
