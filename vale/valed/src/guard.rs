// SPDX-License-Identifier: Apache-2.0
//! Anti-spoofing: which source addresses a port may use.
use std::net::{Ipv4Addr, Ipv6Addr};

use vale_proto::{IpNet, Mac, PortAdd};

use crate::headers::{ARP, Ethernet, IPV4, IPV6, RARP, be16, octets};

/// An address range with the MAC it may be used with, as numbers.
#[derive(Clone, Copy, Debug)]
struct Range<T> {
    mac: Mac,
    network: T,
    mask: T,
}

/// The source addresses a port may use; without security any.
#[derive(Debug)]
pub struct Guard {
    secure: bool,
    macs: Vec<Mac>,
    v4: Vec<Range<u32>>,
    v6: Vec<Range<u128>>,
}

const ICMPV6: u8 = 58;
const UDP: u8 = 17;
/// Answers of DHCP and DHCPv6 servers go to these ports (RFC 2131, 4.1; RFC 8415, 7.2); no guest
/// is the server of its segment.
const DHCP_CLIENT: u16 = 68;
const DHCPV6_CLIENT: u16 = 546;
const DHCP_REQUEST: (u16, u16) = (DHCP_CLIENT, 67);
/// Extension headers looked through to find ICMPv6 (RFC 8200, 4.1): hop-by-hop, destination,
/// routing.
const EXTENSIONS: [u8; 3] = [0, 60, 43];
const MAX_EXTENSIONS: usize = 8;

impl Guard {
    /// The guard of a checked `port-add`. The link-local address made of an allowed MAC
    /// (RFC 4291, appendix A) is allowed with it: IPv6 does not work without.
    pub fn new(add: &PortAdd) -> Self {
        let mut this = Self {
            secure: add.port_security,
            macs: Vec::new(),
            v4: Vec::new(),
            v6: Vec::new(),
        };
        this.macs.extend(add.mac);
        for entry in &add.allowed {
            let Some(mac) = entry.mac.or(add.mac) else {
                continue;
            };
            this.macs.push(mac);
            match entry.ip {
                IpNet::V4(net) => {
                    let (network, mask) = (u32::from(net.network()), u32::from(net.netmask()));
                    this.v4.push(Range { mac, network, mask });
                }
                IpNet::V6(net) => {
                    let (network, mask) = (u128::from(net.network()), u128::from(net.netmask()));
                    this.v6.push(Range { mac, network, mask });
                }
            }
        }
        this.macs.sort_unstable();
        this.macs.dedup();
        let link_local = |mac: &Mac| Range {
            mac: *mac,
            network: link_local(*mac),
            mask: u128::MAX,
        };
        this.v6.extend(this.macs.iter().map(link_local));
        this
    }

    /// True if the frame uses only source addresses of this port.
    pub fn allows(&self, ethernet: &Ethernet, frame: &[u8]) -> bool {
        if !self.secure {
            return true;
        }
        let (mac, payload) = (ethernet.source, &frame[ethernet.payload..]);
        self.macs.contains(&mac)
            && match ethernet.kind {
                IPV4 => self.allows_ipv4(mac, payload),
                ARP | RARP => self.allows_arp(mac, payload),
                IPV6 => self.allows_ipv6(mac, payload).unwrap_or(false),
                _ => true,
            }
    }

    fn has_v4(&self, mac: Mac, address: u32) -> bool {
        self.v4
            .iter()
            .any(|r| r.mac == mac && address & r.mask == r.network)
    }

    fn has_v6(&self, mac: Mac, address: u128) -> bool {
        self.v6
            .iter()
            .any(|r| r.mac == mac && address & r.mask == r.network)
    }

    fn allows_ipv4(&self, mac: Mac, packet: &[u8]) -> bool {
        let Some(source) = octets(packet, 12).map(u32::from_be_bytes) else {
            return false;
        };
        let unspecified = Ipv4Addr::from_bits(source).is_unspecified();
        let ports = ipv4_udp_ports(packet);
        packet[0] >> 4 == 4
            && ports.is_none_or(|(_, to)| to != DHCP_CLIENT)
            && (self.has_v4(mac, source) || unspecified && ports == Some(DHCP_REQUEST))
    }

    /// The sender's addresses (RFC 826); unspecified while it probes (RFC 5227, 2.1.1).
    fn allows_arp(&self, mac: Mac, packet: &[u8]) -> bool {
        // Ethernet and IPv4 with their address lengths.
        if octets(packet, 0) != Some([0, 1, 8, 0, 6, 4]) {
            return false;
        }
        let sender = octets(packet, 14).map(u32::from_be_bytes);
        octets(packet, 8) == Some(mac.0) && sender.is_some_and(|ip| ip == 0 || self.has_v4(mac, ip))
    }

    fn allows_ipv6(&self, mac: Mac, packet: &[u8]) -> Option<bool> {
        let source = u128::from_be_bytes(octets(packet, 8)?);
        let (kind, body) = ipv6_payload(packet)?;
        let control = (kind == ICMPV6).then_some(body);
        let answers_dhcp = kind == UDP && be16(body, 2) == Some(DHCPV6_CLIENT);
        let unspecified = Ipv6Addr::from_bits(source).is_unspecified();
        let may_send =
            self.has_v6(mac, source) || unspecified && control.is_some_and(is_unnumbered);
        Some(
            packet[0] >> 4 == 6
                && may_send
                && !answers_dhcp
                && control.is_none_or(|c| self.allows_discovery(mac, c, unspecified)),
        )
    }

    /// Neighbor discovery speaks about addresses in its body too (RFC 4861, 4.1-4.6): who
    /// advertises or probes an address must own it, and a link-layer address must be the sender's.
    /// Routers (134) are not among guests: one would be believed by its whole segment.
    fn allows_discovery(&self, mac: Mac, message: &[u8], unspecified: bool) -> bool {
        let target = || {
            octets(message, 8)
                .map(u128::from_be_bytes)
                .is_some_and(|t| self.has_v6(mac, t))
        };
        let (owns, options) = match message.first() {
            Some(133) => (true, 8),
            Some(134) => (false, 16),
            Some(135) => (!unspecified || target(), 24),
            Some(136) => (target(), 24),
            _ => return true,
        };
        owns && message
            .get(options..)
            .is_some_and(|o| link_layer_options_are(mac, o))
    }
}

/// Source and destination port; none in a later fragment.
fn ipv4_udp_ports(packet: &[u8]) -> Option<(u16, u16)> {
    let ports = usize::from(packet[0] & 15) * 4;
    let first = be16(packet, 6)? & 0x1fff == 0;
    if packet.get(9) != Some(&UDP) || !first {
        return None;
    }
    Some((be16(packet, ports)?, be16(packet, ports + 2)?))
}

/// Router and neighbor solicitations and multicast reports may come before there is an address.
fn is_unnumbered(message: &[u8]) -> bool {
    matches!(message.first(), Some(131 | 133 | 135 | 143))
}

/// What an IPv6 packet carries behind its extension headers, and its kind. None if they are cut
/// short or more than are looked through: a false claim could hide behind them. A fragment's kind
/// is 44; receivers ignore discovery in fragments (RFC 6980), so those need no look.
fn ipv6_payload(packet: &[u8]) -> Option<(u8, &[u8])> {
    let (mut next, mut at) = (*packet.get(6)?, 40);
    for _ in 0..=MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&next) {
            return Some((next, packet.get(at..)?));
        }
        next = *packet.get(at)?;
        at += (usize::from(*packet.get(at + 1)?) + 1) * 8;
    }
    None
}

/// Options are (type, length in 8 octets, body); 1 and 2 hold a link-layer address.
fn link_layer_options_are(mac: Mac, mut options: &[u8]) -> bool {
    while let [kind, units, ..] = *options {
        let len = usize::from(units) * 8;
        if len == 0 || len > options.len() {
            return false;
        }
        if matches!(kind, 1 | 2) && octets(options, 2) != Some(mac.0) {
            return false;
        }
        options = &options[len..];
    }
    true
}

fn link_local(mac: Mac) -> u128 {
    let [a, b, c, d, e, f] = mac.0;
    let interface = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    0xfe80 << 112 | u128::from(interface)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
