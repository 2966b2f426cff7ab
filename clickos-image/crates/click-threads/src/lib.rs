// SPDX-License-Identifier: Apache-2.0
//! One configuration on several threads: each thread runs a router of its own, and queues join them.
//!
//! [`Plan::new`] cuts a configuration at its queues and gives each island a thread. [`parts`] makes
//! what the threads share. Each thread assembles the whole configuration and installs its part
//! ([`Part::install`]); from then on a [`Member`] carries calls of handlers between threads and
//! lets a thread sleep.
#![forbid(unsafe_code)]

mod gauge;
mod letters;
mod member;
mod plan;
mod queue;
mod watch;

pub use letters::{Guard, Phase, Shared};
pub use member::{Member, Part, parts};
pub use plan::{Plan, alone};
