// SPDX-License-Identifier: Apache-2.0
//! The requests and answers of cosmosd's control socket as typed structs, and the table of its
//! verbs ([`verb`]); `docs/interfaces.md`, "cosmosd", has their meaning. The types bound the size
//! of a request; cosmosd checks values. The crate `contract` writes the same as JSON Schema.
#![forbid(unsafe_code)]

pub mod answer;
mod guest;
mod request;
mod value;
pub mod verb;

pub use control_socket::{Done, NoArgs};
pub use guest::{Cpu, Kernel, Link, MAX_VIFS, MAX_WRITES, Nic, Sha256Text, Spec, Uuid, Vif, Write};
pub use request::*;
pub use value::{
    CommandLine, ConfigName, ConfigText, GuestName, HandlerName, MAX_COMMAND_LINE, MAX_CONFIG,
    MAX_NAME, MAX_PARAM, MAX_VCPUS, MemoryMib, Param, Rid, TimeoutMs, Vcpus,
};
