// SPDX-License-Identifier: Apache-2.0
//! A guest's network devices on Xen: netfront, against any netback, and the vale port, against
//! valed (`docs/rings.md`).
//!
//! Everything is a state machine over [`Platform`] (grants, event channels, shared memory) and
//! [`xenstore::Store`]; nothing waits, and nothing here has `unsafe` code.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod checksum;
mod counting_platform;
mod device;
mod device_watch;
mod frontend;
pub mod netif;
mod options;
mod platform;
mod rings;
mod shared;
mod vale;
mod vifs;

pub use counting_platform::Costs;
pub use device::{Counters, NetDevice};
pub use options::Options;
pub use platform::{Access, DomId, EvtchnPort, GrantRef, Platform};
pub use vifs::{Vif, Vifs};
