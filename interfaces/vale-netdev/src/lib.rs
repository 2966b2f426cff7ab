// SPDX-License-Identifier: Apache-2.0
//! Packet sockets, AF_XDP sockets and taps with virtio headers, in batches (unsafe island).
//!
//! No safe crate binds packet sockets, sets their options or reads their ancillary data. This crate
//! makes those system calls for the whole switch. Its interface is safe.
#![deny(unsafe_code)]

mod batch;
#[allow(unsafe_code)]
mod bpf;
mod partial;
#[allow(unsafe_code)]
mod sys;
mod xdp;
#[allow(unsafe_code)]
mod xdp_sys;

pub use batch::{Received, RecvBatch, SendBatch, Sent};
pub use sys::{
    interface_index, interface_passes, open_interface_events, open_packet_socket, open_tap,
    open_vlan_socket,
};
pub use xdp::XdpSocket;

/// Bytes of the `virtio_net_hdr` before each frame (linux/virtio_net.h).
pub const VNET_HEADER: usize = 10;
/// Longest frame, without the virtio header: 64 KB of IP packet, Ethernet header, two tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;
