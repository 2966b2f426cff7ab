// SPDX-License-Identifier: Apache-2.0
//! The Click engine: packets, elements, routers, handlers, scheduling.
//!
//! A [`Router`] is built from a configuration, a [`Registry`] of element
//! classes and an [`Environment`]; its host calls [`Router::run`] in a loop and
//! reads and writes handlers in between. Nothing here knows an operating system.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod anno;
mod batch;
mod device;
mod environment;
mod error;
mod packet;
mod pool;
mod registry;
mod router;

pub use batch::Batch;
pub use device::Device;
#[cfg(any(test, feature = "test-device"))]
pub use device::MemoryDevice;
pub use environment::{Environment, Limits};
pub use error::{ConfigError, HandlerError};
pub use packet::{HEADROOM, MAX_PACKET, Packet};
pub use pool::PacketPool;
pub use registry::Registry;
pub use router::{HandlerInfo, Progress, Router};
