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
        packet[0] >> 4 == 4 && (self.has_v4(mac, source) || unspecified && is_dhcp_request(packet))
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
        let control = find_icmpv6(packet);
        let unspecified = Ipv6Addr::from_bits(source).is_unspecified();
        let may_send =
            self.has_v6(mac, source) || unspecified && control.is_some_and(is_unnumbered);
        Some(
            packet[0] >> 4 == 6
                && may_send
                && control.is_none_or(|c| self.allows_discovery(mac, c, unspecified)),
        )
    }

    /// Neighbor discovery speaks about addresses in its body too (RFC 4861, 4.1-4.6): who
    /// advertises or probes an address must own it, and a link-layer address must be the sender's.
    fn allows_discovery(&self, mac: Mac, message: &[u8], unspecified: bool) -> bool {
        let target = || {
            octets(message, 8)
                .map(u128::from_be_bytes)
                .is_some_and(|t| self.has_v6(mac, t))
        };
        let (owns, options) = match message.first() {
            Some(133) => (true, 8),
            Some(134) => (true, 16),
            Some(135) => (!unspecified || target(), 24),
            Some(136) => (target(), 24),
            _ => return true,
        };
        owns && message
            .get(options..)
            .is_some_and(|o| link_layer_options_are(mac, o))
    }
}

/// From port 68 to port 67 and not a later fragment.
fn is_dhcp_request(packet: &[u8]) -> bool {
    let ports = usize::from(packet[0] & 15) * 4;
    let first = be16(packet, 6).is_some_and(|f| f & 0x1fff == 0);
    packet.get(9) == Some(&UDP) && first && octets(packet, ports) == Some([0, 68, 0, 67])
}

/// Router and neighbor solicitations and multicast reports may come before there is an address.
fn is_unnumbered(message: &[u8]) -> bool {
    matches!(message.first(), Some(131 | 133 | 135 | 143))
}

/// The ICMPv6 message of an unfragmented packet. Receivers ignore discovery in fragments
/// (RFC 6980), so those need no look.
fn find_icmpv6(packet: &[u8]) -> Option<&[u8]> {
    let (mut next, mut at) = (*packet.get(6)?, 40);
    for _ in 0..MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&next) {
            break;
        }
        next = *packet.get(at)?;
        at += (usize::from(*packet.get(at + 1)?) + 1) * 8;
    }
    if next == ICMPV6 {
        packet.get(at..)
    } else {
        None
    }
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
