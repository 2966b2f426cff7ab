// SPDX-License-Identifier: Apache-2.0
//! What a port may send and receive, and how fast.
pub mod filter;
pub mod guard;
pub(crate) mod offload_rules;
pub(crate) mod rogue;
pub(crate) mod token_bucket;
