// SPDX-License-Identifier: Apache-2.0
//! What the programs `click`, `click-flatten`, `click-check` and `click-pretty` share.
#![forbid(unsafe_code)]

mod archive;
mod clock;
mod control;
mod host;
pub mod library;
pub mod options;
pub mod report;
mod service;
pub mod session;
mod vif;
