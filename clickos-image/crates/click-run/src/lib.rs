// SPDX-License-Identifier: Apache-2.0
//! What the programs `click`, `click-combine`, `click-flatten`, `click-pretty` and `click-uncombine` share with
//! `click-check`, a crate of its own.
#![forbid(unsafe_code)]

mod any_class;
mod chatter;
mod clock;
pub mod combine;
pub mod control;
pub mod files;
mod groups;
mod host;
mod interfaces;
mod kernel_filter;
#[cfg(feature = "tun")]
mod kernel_tun;
pub mod library;
pub mod listener;
pub mod options;
mod output;
mod packet_socket;
pub mod pretty;
pub mod report;
mod run_time;
mod service;
pub mod session;
mod setting;
pub mod signals;
mod system_names;
mod threads;
pub mod tool;
mod vif;
