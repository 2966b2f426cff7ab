// SPDX-License-Identifier: Apache-2.0
//! The inspection of streams: what its rules find, and that nothing gets around it.
mod bed;
mod bystanders;
mod cost;
mod evasions;
mod generator;
mod golden;
mod hostile;
mod packets;
mod receiver;
mod rules;
mod streams;
mod syslog;
