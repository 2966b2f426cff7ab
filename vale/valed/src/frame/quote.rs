// SPDX-License-Identifier: Apache-2.0
//! The packet that an ICMP error quotes (RFC 792, RFC 4443).
use std::net::IpAddr;

use super::key::{ICMP, ICMPV6, ports};
use crate::frame::headers::octets;

/// Bytes of an ICMP error before the packet that it quotes.
const ERROR_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// The packet that an error is about: its source is the destination of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quote {
    pub destination: IpAddr,
    pub protocol: u8,
    pub ports: (u16, u16),
}

/// True for the messages about a packet that their receiver has sent: unreachable, packet too big,
/// time exceeded, parameter problem. A redirect is not among them: it changes routes.
pub fn is_error(protocol: u8, kind: u8, receiver: IpAddr) -> bool {
    match (protocol, receiver) {
        (ICMP, IpAddr::V4(_)) => matches!(kind, 3 | 11 | 12),
        (ICMPV6, IpAddr::V6(_)) => matches!(kind, 1..=4),
        _ => false,
    }
}

/// The packet that a message quotes. None if it is no error, or quotes no packet of its `receiver`
/// whose ports are there.
pub fn of(protocol: u8, kind: u8, message: &[u8], receiver: IpAddr) -> Option<Quote> {
    if !is_error(protocol, kind, receiver) {
        return None;
    }
    let quoted = message.get(ERROR_HEADER..)?;
    let (source, quote) = match protocol {
        ICMP => v4(quoted)?,
        _ => v6(quoted)?,
    };
    (source == receiver).then_some(quote)
}

/// A later fragment has no ports, so it names no connection.
fn v4(packet: &[u8]) -> Option<(IpAddr, Quote)> {
    let fixed: [u8; IPV4_HEADER] = octets(packet, 0)?;
    let header = usize::from(fixed[0] & 15) * 4;
    let offset = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff;
    if fixed[0] >> 4 != 4 || header < IPV4_HEADER || offset != 0 {
        return None;
    }
    let address = |at| octets::<4>(&fixed, at).map(IpAddr::from);
    quote(address(12)?, address(16)?, fixed[9], packet.get(header..)?)
}

/// A packet with extension headers names no connection.
fn v6(packet: &[u8]) -> Option<(IpAddr, Quote)> {
    let fixed: [u8; IPV6_HEADER] = octets(packet, 0)?;
    if fixed[0] >> 4 != 6 {
        return None;
    }
    let address = |at| octets::<16>(&fixed, at).map(IpAddr::from);
    quote(address(8)?, address(24)?, fixed[6], &packet[IPV6_HEADER..])
}

fn quote(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    body: &[u8],
) -> Option<(IpAddr, Quote)> {
    let quote = Quote {
        destination,
        protocol,
        ports: ports(protocol, body)?,
    };
    Some((source, quote))
}
