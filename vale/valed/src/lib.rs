// SPDX-License-Identifier: Apache-2.0
//! The dom0 packet switch.
//!
//! Workers forward ([`forwarder`], [`workers`]). Control threads open the device of each port and
//! hand it over ([`control`]). On a Xen host a third thread follows the guests ([`xen`]). [`switch`] shows
//! the path of a frame.
#![forbid(unsafe_code)]

pub mod capture;
mod chain;
pub mod control;
mod decided;
mod device;
pub mod filter;
pub mod forwarder;
pub mod guard;
pub mod guests;
mod handover;
pub mod headers;
mod held;
mod host;
pub mod kept;
mod learned;
mod limit;
pub mod links;
mod lookup;
pub mod metrics;
mod mirror;
mod nsh;
mod offload;
mod outgoing;
mod packet;
mod path_port;
mod pcap;
mod pipe;
mod port;
#[cfg(test)]
mod ports;
mod queues;
mod rate_limit;
pub mod refusal;
mod ring_port;
mod role;
mod switch;
mod taken;
mod turns;
#[cfg(test)]
mod validator_props;
pub mod vxlan;
pub mod workers;
mod xdp_port;
pub mod xen;
