// SPDX-License-Identifier: Apache-2.0
//! Keys of flows and fragments, for elements that only look at packets.
use click_wire::ipv4;

use crate::flows::FlowId;
use crate::prelude::*;
use crate::rewrite::kind::{header_len, is_later_fragment};

/// The map of UDP flows; that of TCP flows is 0.
pub const UDP_MAP: u16 = 1;

/// The key of a packet's flow.
#[derive(Clone, Copy)]
pub struct Key {
    pub id: FlowId,
    pub map: u16,
    /// Flags of a TCP header; none for quoted ones.
    pub flags: u8,
    /// 2 for errors that quote a packet.
    pub paint: u8,
}

/// The fields that all fragments of a packet share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    id: [u8; 2],
}

impl Whole {
    /// True if the other is between the same hosts.
    pub fn is_beside(&self, other: &Self) -> bool {
        let hosts = |w: &Self| {
            (
                w.source.min(w.destination),
                w.source.max(w.destination),
                w.protocol,
            )
        };
        hosts(self) == hosts(other)
    }
}

fn address(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

/// The IP header that an ICMP error quotes, and what follows.
pub fn quoted(bytes: &[u8]) -> Option<&[u8]> {
    let length = header_len(bytes)?;
    let error = matches!(bytes.get(length)?, 3 | 4 | 5 | 11 | 12);
    bytes.get(length + 8..).filter(|_| error)
}

/// The key of a packet that has ports.
pub fn key_of(bytes: &[u8], paint: u8) -> Option<Key> {
    let length = header_len(bytes)?;
    let map = match bytes[9] {
        ipv4::TCP => 0,
        ipv4::UDP => UDP_MAP,
        _ => return None,
    };
    let ports = bytes.get(length..length + 4)?;
    let id = FlowId {
        source: address(bytes, 12).into(),
        destination: address(bytes, 16).into(),
        sport: u16::from_be_bytes([ports[0], ports[1]]),
        dport: u16::from_be_bytes([ports[2], ports[3]]),
    };
    let known = !is_later_fragment(bytes) && id.addresses() != 0;
    let flags = bytes
        .get(length + 13)
        .filter(|_| map != UDP_MAP && paint == 0);
    known.then_some(Key {
        id,
        map,
        flags: flags.copied().unwrap_or(0),
        paint,
    })
}

/// The packet of which this one is a fragment.
pub fn whole_of(packet: &Packet) -> Option<Whole> {
    let bytes = packet
        .network()
        .filter(|bytes| header_len(bytes).is_some())?;
    let known = matches!(bytes[9], ipv4::TCP | ipv4::UDP);
    known.then(|| Whole {
        source: address(bytes, 12),
        destination: address(bytes, 16),
        protocol: bytes[9],
        id: [bytes[4], bytes[5]],
    })
}

pub fn is_fragment(packet: &Packet) -> bool {
    let bytes = packet.network().filter(|bytes| bytes.len() >= ipv4::HEADER);
    bytes.is_some_and(|bytes| {
        u16::from_be_bytes([bytes[6], bytes[7]]) & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) != 0
    })
}
