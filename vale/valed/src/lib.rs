// SPDX-License-Identifier: Apache-2.0
//! The dom0 packet switch.
//!
//! Workers forward ([`forwarder`], [`workers`]). Control threads open the device of each port and
//! hand it over ([`control`]). On a Xen host a third thread follows the guests ([`xen`]). [`switch`] shows
//! the path of a frame.
#![forbid(unsafe_code)]

mod chain;
mod clock;
pub mod control;
pub mod device;
#[cfg(test)]
mod dice;
pub mod far_ends;
pub mod forwarder;
pub mod frame;
pub mod kept;
mod mesh;
pub mod metrics;
mod mirror;
pub mod policy;
mod port;
pub mod stations;
mod switch;
mod texts;
#[cfg(test)]
mod validator_props;
pub mod workers;
pub mod xen;
