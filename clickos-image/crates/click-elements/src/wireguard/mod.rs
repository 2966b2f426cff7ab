// SPDX-License-Identifier: Apache-2.0
//! WireGuard (Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel", NDSS 2017) over IPv4.
//!
//! [`Tunnel`] is the protocol without packets' outer headers; the element `WireGuard` adds these.
pub mod crypto;
pub mod doors;
pub mod handshake;
pub mod network;
pub mod peer;
pub mod session;
pub mod terms;
pub mod tunnel;

use core::net::Ipv4Addr;

/// An address and a UDP port.
pub type Endpoint = (Ipv4Addr, u16);
