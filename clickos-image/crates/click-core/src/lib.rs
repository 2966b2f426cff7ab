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

mod asked;
mod build;
mod config;
mod console;
#[cfg(feature = "threads")]
mod copies;
mod device;
mod engine;
mod error;
mod files;
mod globals;
mod handler_info;
mod handlers;
mod judge;
mod listing;
mod live;
pub mod offload;
mod output_order;
mod ports;
mod random;
mod reconfigure;
mod registry;
mod router;
mod sched;
mod signal;
mod spread;
mod storage;
mod task_batching;
#[cfg(feature = "threads")]
pub mod threads;
mod traffic;

pub use click_lang::{ConfigError, Located, Phase, Sources, Subject, did_you_mean, sort, text};
pub use click_packet::memory;
pub use click_packet::{Batch, HEADROOM, MAX_PACKET, Packet, PacketPool, Ring, anno};
pub use config::args::{ArgContext, Args};
pub use config::environment::{
    ChatterOptions, ControlOptions, DeviceRequest, Environment, Host, Limits, Protocol,
    ServerAddress, ServerSocket, Tun, TunRequest,
};
pub use config::names::{Named, Names};
pub use config::value;
pub use device::Device;
#[cfg(any(test, feature = "test-device"))]
pub use device::MemoryDevice;
pub use engine::class::{Built, Class};
pub use engine::context::{Context, DROPPED};
pub use engine::element::{AsAny, Element, Signal, Storage, View};
pub use engine::handler::{Change, Handler, Table};
pub use engine::{class, handler};
pub use error::HandlerError;
pub use files::{ReadFile, WriteFile};
pub use handler_info::{HandlerDecl, HandlerInfo, Kind};
pub use listing::{COPIES as ANSWER_COPIES, Listing, listing};
pub use random::Entropy;
pub use registry::{Entry, Registry};
pub use router::{Progress, Router};
pub use storage::StorageRef;
