// SPDX-License-Identifier: Apache-2.0
//! Rewriters of addresses and ports (network address translation) and what they have in common.
pub mod build;
mod carried;
mod clocks;
pub mod flow_lookup;
pub mod header;
pub mod kind;
pub mod mapper;
pub mod pattern;
mod pools;
pub mod port_blocks;
pub mod rewriter;
pub mod server_pool;
mod setup;
pub mod spec;
mod texts;
