// SPDX-License-Identifier: Apache-2.0
//! The requests of cosmosd's control socket as typed structs; the verbs stand in
//! `docs/interfaces.md`, "cosmosd". The types bound what a request can hold; cosmosd checks values.
#![forbid(unsafe_code)]

mod guest;
mod request;

pub use guest::{Cpu, Link, MAX_VIFS, MAX_WRITES, Nic, Sha256Text, Spec, Uuid, Vif, Write};
pub use request::*;
