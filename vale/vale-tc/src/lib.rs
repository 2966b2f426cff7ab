// SPDX-License-Identifier: Apache-2.0
//! The policies of valed's ports as tc programs on vifs of netback (docs/adr/0030-port-policies.md).
//!
//! [`policy`] is the document, [`program`] compiles it to eBPF, [`object`] makes a file of the code, and
//! [`attach`] gives that to the kernel.
#![forbid(unsafe_code)]

pub mod asm;
pub mod attach;
mod connection;
pub mod counter;
mod emit;
mod filter;
mod guard;
pub mod object;
mod offload;
mod packet;
pub mod policy;
pub mod program;
mod quote;
pub mod show;
