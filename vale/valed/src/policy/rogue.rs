// SPDX-License-Identifier: Apache-2.0
//! Messages that a guest must not send: its whole segment would believe a router or a server.
//! The table is in docs/adr/0009-port-security.md.
use crate::frame::drop_reason::DropReason;
use crate::frame::packet::{FragmentPart, Packet, udp_ports};

const ICMP: u8 = 1;
const IGMP: u8 = 2;
pub const UDP: u8 = 17;
pub const ICMPV6: u8 = 58;
/// Answers of DHCP and DHCPv6 servers go to these ports (RFC 2131, 4.1; RFC 8415, 7.2).
pub const DHCP_CLIENT: u16 = 68;
const DHCPV6_CLIENT: u16 = 546;
/// Errors, echo, router solicitation, timestamp, information, extended echo. Not redirect (5),
/// router advertisement (9), address mask reply (18) or deprecated types.
const ICMP_TYPES: [u8; 12] = [0, 3, 8, 10, 11, 12, 13, 14, 15, 16, 42, 43];
/// Membership reports of all versions and leave. Not query (17) or router discovery (RFC 4286).
const IGMP_TYPES: [u8; 4] = [0x12, 0x16, 0x17, 0x22];
/// Errors, echo, listener reports, router solicitation, neighbor discovery, extended echo. Not
/// listener query (130), router advertisement (134), redirect (137), node information (139, 140).
const ICMPV6_TYPES: [u8; 14] = [1, 2, 3, 4, 128, 129, 131, 132, 133, 135, 136, 143, 160, 161];
/// Neighbor discovery, never in fragments (RFC 6980).
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;

/// Returns the number of body bytes on which the verdict rests. A port that `serves_dhcp` may
/// answer clients.
#[inline]
pub fn ipv4(packet: &Packet<'_>, serves_dhcp: bool) -> Result<usize, DropReason> {
    match (packet.part, packet.protocol) {
        (FragmentPart::Later, _) => Ok(0),
        (_, UDP) => not_to(DHCP_CLIENT, packet.body, serves_dhcp),
        (_, ICMP) => one_of(&ICMP_TYPES, packet.body),
        (_, IGMP) => one_of(&IGMP_TYPES, packet.body),
        _ => Ok(0),
    }
}

/// As [`ipv4`].
#[inline]
pub fn ipv6(packet: &Packet<'_>, serves_dhcp: bool) -> Result<usize, DropReason> {
    match (packet.part, packet.protocol) {
        (FragmentPart::Later, _) => Ok(0),
        (_, UDP) => not_to(DHCPV6_CLIENT, packet.body, serves_dhcp),
        (FragmentPart::First, ICMPV6) if is_discovery(packet.body) => Err(DropReason::Hidden),
        (_, ICMPV6) if is_discovery(packet.body) => {
            one_of(&ICMPV6_TYPES, packet.body).map(|_| packet.body.len())
        }
        (_, ICMPV6) => one_of(&ICMPV6_TYPES, packet.body),
        _ => Ok(0),
    }
}

pub fn is_discovery(message: &[u8]) -> bool {
    message.first().is_some_and(|kind| DISCOVERY.contains(kind))
}

fn not_to(port: u16, datagram: &[u8], may: bool) -> Result<usize, DropReason> {
    match udp_ports(datagram) {
        None => Err(DropReason::Malformed),
        Some((_, to)) if to == port && !may => Err(DropReason::Rogue),
        Some(_) => Ok(4),
    }
}

fn one_of(types: &[u8], message: &[u8]) -> Result<usize, DropReason> {
    let kind = message.first().ok_or(DropReason::Malformed)?;
    match types.contains(kind) {
        true => Ok(1),
        false => Err(DropReason::Rogue),
    }
}
