// SPDX-License-Identifier: Apache-2.0
//! The Click engine: packets, elements, routers, handlers, scheduling.
//!
//! A configuration, a [`Registry`] of element classes and an [`Environment`] make a [`Router`]. Its
//! host calls [`Router::run`] in a loop and reads and writes handlers in between. Nothing here
//! knows an operating system.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod args;
mod build;
pub mod class;
mod console;
mod context;
mod device;
mod element;
mod engine;
mod environment;
mod error;
mod files;
mod globals;
mod graph;
mod handlers;
mod independence;
mod names;
mod ports;
mod random;
mod reachability;
mod reconfigure;
mod registry;
mod router;
mod sched;
mod signal;
mod surroundings;
mod task_batching;
mod traffic;
pub mod value;

pub use args::{Args, Surroundings};
pub use class::{Built, Class};
pub use click_lang::{ConfigError, Located, Phase, Sources, Subject, did_you_mean, sort, text};
pub use click_packet::memory;
pub use click_packet::{Batch, HEADROOM, MAX_PACKET, Packet, PacketPool, Ring, anno};
pub use context::Context;
pub use device::Device;
#[cfg(any(test, feature = "test-device"))]
pub use device::MemoryDevice;
pub use element::{AsAny, Change, Element, Signal, View};
pub use environment::{
    ChatterOptions, ControlOptions, DeviceRequest, Environment, Host, Limits, Protocol,
    ServerAddress, ServerSocket, Tun, TunRequest,
};
pub use error::HandlerError;
pub use files::{ReadFile, WriteFile};
pub use handlers::{COMMON, HandlerInfo};
pub use names::{Named, Names};
pub use registry::{Entry, Registry};
pub use router::{Progress, Router};
pub use surroundings::Store;
