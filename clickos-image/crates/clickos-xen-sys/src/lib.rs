// SPDX-License-Identifier: Apache-2.0
//! Xen from inside a guest: boot, hypercalls, memory, grants, event channels, clock (unsafe island 2).
//!
//! Everything that touches a shared page, a page table or the hypervisor is in here; a crate that uses
//! it needs no `unsafe`. A guest has one processor and never takes an interrupt: it polls its
//! event channels ([`events::wait`]), so nothing here needs a lock, and code that was compiled with
//! a red zone is safe. Exceptions end the guest, with a message.
//!
//! Facts are from Xen's public headers (`xen/include/public`). With the feature `boot` the crate has
//! the entry points of PV and PVH guests; without it nothing of it can be called in a meaningful
//! way, but it can be compiled and checked on any host.
#![no_std]
#![cfg_attr(
    not(feature = "boot"),
    allow(dead_code, reason = "only entry points use it")
)]
extern crate alloc;

mod abi;
#[cfg(feature = "boot")]
mod boot;
pub mod clock;
pub mod console;
mod cpu;
pub mod events;
pub mod grants;
pub mod heap;
mod hypercall;
mod pages;
pub mod power;
mod pv;
mod pvh;
pub mod random;
pub mod shared;
mod state;
mod store;
#[cfg(feature = "boot")]
mod traps;

pub use hypercall::Refused;
pub use pages::{PAGE_SIZE, Pages};
pub use state::{Kind, command_line, kind};
pub use store::{Notifier, store_client, store_ring};
