// SPDX-License-Identifier: Apache-2.0
//! The dom0 packet switch.
//!
//! Workers forward ([`forwarder`], [`workers`]). Control threads open the device of each port and
//! hand it over ([`control`]). On a Xen host a third thread follows the guests ([`xen`]). [`switch`] shows
//! the path of a frame.
#![forbid(unsafe_code)]

mod blocked;
pub mod capture;
mod chain;
pub mod control;
mod device;
pub mod drop_reason;
mod drr;
pub mod dscp;
pub mod far_ends;
pub mod filter;
pub mod forwarder;
pub mod guard;
mod handover;
pub mod headers;
mod host;
pub mod host_resources;
pub mod kept;
mod lookup;
mod mac_learning;
pub mod metrics;
mod mirror;
mod nsh;
mod offload;
mod offload_rules;
mod packet;
mod path_port;
mod pcap;
mod pipe;
mod port;
#[cfg(test)]
mod ports;
mod queues;
pub mod region_registry;
mod ring_port;
mod role;
mod rx_frame;
mod switch;
mod token_bucket;
mod tx_frame;
#[cfg(test)]
mod validator_props;
pub mod vxlan;
pub mod workers;
mod xdp_port;
pub mod xen;
