// SPDX-License-Identifier: Apache-2.0
//! The kinds of rewriters: which packets belong to one flow.
use click_wire::ipv4;

use crate::flows::{At, FlowId, FlowTable};
use crate::prelude::*;

/// A kind of rewriter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Addresses and ports of TCP and UDP, each protocol on its own.
    Ip,
    /// Addresses and ports of TCP.
    Tcp,
    /// Addresses and ports of UDP or TCP, mixed.
    Udp,
    /// The address of one side, whatever the protocol.
    Address,
    /// The addresses of both sides.
    Pair,
    /// Addresses and identifiers of echo requests; an answer's source port is the identifier plus 1.
    Ping,
}

/// The protocol of datagram congestion control (RFC 4340), whose ports are where those of UDP are.
pub const DCCP: u8 = 33;

/// ICMP types of a request and its answer.
const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// The key of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub id: FlowId,
    pub protocol: u8,
    /// True if it may be the first packet of a flow.
    pub opens: bool,
}

/// The addresses of a header of at least 20 bytes.
#[inline(always)]
fn addresses(header: &[u8]) -> FlowId {
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    FlowId {
        source: address(12),
        destination: address(16),
        ..FlowId::NONE
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Bytes of the header in front of `bytes`, if that may be one.
#[inline]
pub fn header_len(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(bytes.first()? & 15) * 4;
    (length >= ipv4::HEADER && bytes.len() >= length).then_some(length)
}

/// True if a header belongs to a fragment other than the first.
pub fn is_later_fragment(header: &[u8]) -> bool {
    word(header, 6) & ipv4::OFFSET != 0
}

impl Kind {
    /// The key of a packet; `None` if this kind does not deal with it.
    #[inline]
    pub fn key(self, packet: &Packet) -> Option<Key> {
        let bytes = packet.network()?;
        let length = header_len(bytes)?;
        let (mut id, protocol) = (addresses(bytes), bytes[9]);
        match self {
            Self::Address | Self::Pair => Some(Key {
                id,
                protocol: 0,
                opens: true,
            }),
            Self::Ping => ping(id, protocol, bytes, length),
            Self::Ip | Self::Tcp | Self::Udp => {
                if !self.carries(protocol) || is_later_fragment(bytes) || bytes.len() < length + 8 {
                    return None;
                }
                (id.sport, id.dport) = (word(bytes, length), word(bytes, length + 2));
                Some(Key {
                    id,
                    protocol,
                    opens: true,
                })
            }
        }
    }

    /// True if a protocol's ports are rewritten.
    fn carries(self, protocol: u8) -> bool {
        match self {
            Self::Ip => protocol == ipv4::TCP || protocol == ipv4::UDP,
            Self::Tcp => protocol == ipv4::TCP,
            Self::Udp => [ipv4::TCP, ipv4::UDP, DCCP].contains(&protocol),
            _ => false,
        }
    }

    /// The map of a protocol among those that begin at `first`.
    #[inline]
    pub fn map(self, first: u16, protocol: u8) -> u16 {
        first + u16::from(self == Self::Ip && protocol == ipv4::UDP)
    }

    /// The key under which a flow is remembered that a packet of `id` opens.
    pub fn opening(self, id: FlowId) -> FlowId {
        match self {
            Self::Address => FlowId {
                source: id.source,
                ..FlowId::NONE
            },
            _ => id,
        }
    }

    /// The complete new flow with its derived fields; `None` if flows of this kind cannot be rewritten so.
    pub fn settle(self, rewritten: FlowId) -> Option<FlowId> {
        let no_ports = rewritten.ports() == 0;
        match self {
            Self::Address => {
                Some(rewritten).filter(|id| no_ports && id.destination.is_unspecified())
            }
            Self::Pair => Some(rewritten).filter(|_| no_ports),
            Self::Ping => Some(FlowId {
                dport: rewritten.sport.wrapping_add(1),
                ..rewritten
            }),
            _ => Some(rewritten),
        }
    }

    /// What a packet of a flow with these ends becomes: `to`, but for what flows of this kind leave as it is.
    pub fn complete(self, from: FlowId, to: FlowId, reply: bool) -> FlowId {
        match self {
            Self::Address if reply => FlowId {
                destination: to.destination,
                ..from
            },
            Self::Address => FlowId {
                source: to.source,
                ..from
            },
            Self::Pair => FlowId {
                source: to.source,
                destination: to.destination,
                ..from
            },
            _ => to,
        }
    }

    /// The flow and direction of a packet with this key.
    #[inline(always)]
    pub fn find(self, table: &FlowTable, hash: u64, id: &FlowId, map: u16) -> Option<At> {
        if self != Self::Address {
            return table.find(hash, id, map);
        }
        let from = self.opening(*id);
        let to = FlowId {
            destination: id.destination,
            ..FlowId::NONE
        };
        table
            .find(hash, &from, map)
            .or_else(|| table.find_id(&to, map))
    }
}

/// The key of an echo request or its answer.
fn ping(mut id: FlowId, protocol: u8, bytes: &[u8], length: usize) -> Option<Key> {
    let echo = bytes.get(length..length + 8)?;
    let opens = echo[0] == ECHO;
    let known = opens || echo[0] == ECHO_REPLY;
    if protocol != ipv4::ICMP || is_later_fragment(bytes) || !known {
        return None;
    }
    let identifier = word(echo, 4);
    (id.sport, id.dport) = (identifier, identifier.wrapping_add(1));
    if !opens {
        (id.sport, id.dport) = (id.dport, id.sport);
    }
    Some(Key {
        id,
        protocol,
        opens,
    })
}
