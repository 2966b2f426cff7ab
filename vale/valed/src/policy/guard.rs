// SPDX-License-Identifier: Apache-2.0
//! Port security: judges from the bytes of a frame alone whether a port may send it. The
//! verdicts and their reasons stand in docs/adr/0009-port-security.md.
use std::net::IpAddr;

use vale_proto::{Allowed, IpNet, Mac, PortAdd};

use crate::frame::drop_reason::DropReason;
use crate::frame::headers::{ARP, ETHERNET, Ethernet, IPV4, IPV6, octets};
use crate::frame::packet::{self, FragmentPart, udp_ports};
use crate::policy::rogue::{self, DHCP_CLIENT, ICMPV6, UDP};

/// An address range with the MAC it may be used with, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range<T> {
    mac: Mac,
    network: T,
    mask: T,
}

/// The source addresses that a port may use; without port security any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    secure: bool,
    /// VLAN tags are allowed.
    tags: bool,
    /// Answers of DHCP servers are allowed.
    serves_dhcp: bool,
    macs: Vec<Mac>,
    v4: Vec<Range<u32>>,
    v6: Vec<Range<u128>>,
}

/// An ARP message for Ethernet and IPv4, in bytes.
const ARP_MESSAGE: usize = 28;
/// UDP ports of a client's DHCP request.
const DHCP_REQUEST: (u16, u16) = (DHCP_CLIENT, 67);

impl Guard {
    /// The guard of a checked `port-add`.
    pub fn new(add: &PortAdd) -> Self {
        let tags = add.vlan_tags;
        Self {
            tags,
            ..Self::of(add.port_security, add.mac, &add.allowed).serving_dhcp(add.dhcp_server)
        }
    }

    /// The guard of a port without VLAN tags. It also allows the link-local address of each allowed
    /// MAC (RFC 4291, appendix A): IPv6 does not work without.
    pub fn of(secure: bool, port: Option<Mac>, allowed: &[Allowed]) -> Self {
        let mut this = Self {
            secure,
            tags: false,
            serves_dhcp: false,
            macs: Vec::new(),
            v4: Vec::new(),
            v6: Vec::new(),
        };
        this.macs.extend(port);
        for entry in allowed {
            let Some(mac) = entry.mac.or(port) else {
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

    /// The same guard of a port that Neutron has made the port of a DHCP server or relay, or not.
    pub fn serving_dhcp(self, serves_dhcp: bool) -> Self {
        Self {
            serves_dhcp,
            ..self
        }
    }

    /// Takes the addresses of another guard, and leaves its own there; VLAN tags stay as they are.
    /// False if both are the same.
    pub fn exchange(&mut self, other: &mut Self) -> bool {
        other.tags = self.tags;
        let differs = self != other;
        if differs {
            std::mem::swap(self, other);
        }
        differs
    }

    /// True if the port may use the allowed addresses only.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// True if port security names this MAC.
    pub fn allows(&self, mac: Mac) -> bool {
        self.secure && self.macs.binary_search(&mac).is_ok()
    }

    /// Returns the number of bytes at the frame's start on which the verdict rests. No later step
    /// may change them.
    ///
    /// # Errors
    /// This port must not send the frame.
    pub fn judge(&self, ethernet: &Ethernet, frame: &[u8]) -> Result<usize, DropReason> {
        if !self.secure {
            return Ok(ethernet.payload);
        }
        let (mac, payload) = (ethernet.source, &frame[ethernet.payload..]);
        if !self.has_mac(mac) {
            return Err(DropReason::Spoof);
        }
        let is_tagged = ethernet.payload != ETHERNET;
        let judged = match ethernet.kind {
            _ if is_tagged && !self.tags => Err(DropReason::Type),
            IPV4 => self.judge_ipv4(mac, payload),
            ARP => self.judge_arp(mac, payload),
            IPV6 => self.judge_ipv6(mac, payload),
            _ => Err(DropReason::Type),
        };
        judged.map(|bytes| ethernet.payload + bytes)
    }

    /// Judges a packet that a hop of a chain passes on: as [`Self::judge`], for the IP addresses of
    /// others. Their MAC address is allowed only if the chain knows the packet's `is_station`; this
    /// holds without port security too, since other switches learn it.
    ///
    /// # Errors
    /// The chain does not carry such a frame.
    pub fn judge_relayed(
        &self,
        ethernet: &Ethernet,
        frame: &[u8],
        is_station: bool,
    ) -> Result<usize, DropReason> {
        if !is_station && !self.has_mac(ethernet.source) {
            return Err(DropReason::Spoof);
        }
        if !self.secure {
            return Ok(ethernet.payload);
        }
        let bytes = &frame[ethernet.payload..];
        let judged = match ethernet.kind {
            IPV4 => {
                let packet = packet::ipv4(bytes)?;
                packet.headers + rogue::ipv4(&packet, false)?
            }
            IPV6 => {
                let packet = packet::ipv6(bytes)?;
                if packet.protocol == ICMPV6 && rogue::is_discovery(packet.body) {
                    return Err(DropReason::Spoof);
                }
                packet.headers + rogue::ipv6(&packet, false)?
            }
            _ => return Err(DropReason::Type),
        };
        Ok(ethernet.payload + judged)
    }

    /// True if the port may use an address, with any of its MAC addresses.
    pub fn has(&self, address: IpAddr) -> bool {
        !self.secure
            || match address {
                IpAddr::V4(a) => self.v4.iter().any(|r| u32::from(a) & r.mask == r.network),
                IpAddr::V6(a) => self.v6.iter().any(|r| u128::from(a) & r.mask == r.network),
            }
    }

    /// True if the port may use a whole network: one of its own contains it.
    pub fn covers(&self, network: IpNet) -> bool {
        !self.secure
            || match network {
                IpNet::V4(net) => {
                    let (first, mask) = (u32::from(net.network()), u32::from(net.netmask()));
                    let holds = |r: &Range<u32>| first & r.mask == r.network && mask >= r.mask;
                    self.v4.iter().any(holds)
                }
                IpNet::V6(net) => {
                    let (first, mask) = (u128::from(net.network()), u128::from(net.netmask()));
                    let holds = |r: &Range<u128>| first & r.mask == r.network && mask >= r.mask;
                    self.v6.iter().any(holds)
                }
            }
    }

    /// True for the port's own MAC address, and for each that it may use.
    pub fn has_mac(&self, mac: Mac) -> bool {
        self.macs.contains(&mac)
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

    fn judge_ipv4(&self, mac: Mac, bytes: &[u8]) -> Result<usize, DropReason> {
        let packet = packet::ipv4(bytes)?;
        let source = octets(bytes, 12).map_or(0, u32::from_be_bytes);
        let asks_dhcp = || {
            let is_udp = packet.part == FragmentPart::Whole && packet.protocol == UDP;
            source == 0 && is_udp && udp_ports(packet.body) == Some(DHCP_REQUEST)
        };
        let owns = self.has_v4(mac, source) || asks_dhcp();
        owns.then_some(()).ok_or(DropReason::Spoof)?;
        Ok(packet.headers + rogue::ipv4(&packet, self.serves_dhcp)?)
    }

    /// The sender's addresses (RFC 826). A probe has none, and its target must be the port's:
    /// another's probe would make the owner give the address up (RFC 5227, 2.1.1).
    fn judge_arp(&self, mac: Mac, bytes: &[u8]) -> Result<usize, DropReason> {
        let message: [u8; ARP_MESSAGE] = octets(bytes, 0).ok_or(DropReason::Malformed)?;
        let is_request = message[6..8] == [0, 1];
        // Ethernet and IPv4 with their address lengths; request or reply.
        if message[..6] != [0, 1, 8, 0, 6, 4] || !is_request && message[6..8] != [0, 2] {
            return Err(DropReason::Type);
        }
        let address = |at| octets(&message, at).map_or(0, u32::from_be_bytes);
        let (sender, target) = (address(14), address(24));
        let probes = || is_request && sender == 0 && self.has_v4(mac, target);
        let owns = message[8..14] == mac.0 && (self.has_v4(mac, sender) || probes());
        owns.then_some(ARP_MESSAGE).ok_or(DropReason::Spoof)
    }

    fn judge_ipv6(&self, mac: Mac, bytes: &[u8]) -> Result<usize, DropReason> {
        let packet = packet::ipv6(bytes)?;
        let source = octets(bytes, 8).map_or(0, u128::from_be_bytes);
        let message = match (packet.part, packet.protocol) {
            (FragmentPart::Whole, ICMPV6) => packet.body,
            _ => &[],
        };
        let unspecified = source == 0;
        let owns = self.has_v6(mac, source) || unspecified && is_unnumbered(message);
        owns.then_some(()).ok_or(DropReason::Spoof)?;
        let judged = packet.headers + rogue::ipv6(&packet, self.serves_dhcp)?;
        if rogue::is_discovery(message) {
            self.judge_discovery(mac, message, unspecified)?;
        }
        Ok(judged)
    }

    /// The body of neighbor discovery has addresses too (RFC 4861, 4.1-4.4). The sender must own
    /// the address it advertises or probes, and each link-layer address.
    fn judge_discovery(&self, mac: Mac, message: &[u8], probes: bool) -> Result<(), DropReason> {
        let speaks_for_target = match message.first() {
            Some(135) => probes,
            Some(136) => true,
            _ => false,
        };
        let options = if message.first() == Some(&133) { 8 } else { 24 };
        let options = message.get(options..).ok_or(DropReason::Malformed)?;
        let target = octets(message, 8).map_or(0, u128::from_be_bytes);
        if speaks_for_target && !self.has_v6(mac, target) {
            return Err(DropReason::Spoof);
        }
        check_link_layer_options(mac, options)
    }
}

/// Router and neighbor solicitations and multicast reports may come before there is an address.
fn is_unnumbered(message: &[u8]) -> bool {
    matches!(message.first(), Some(131 | 133 | 135 | 143))
}

/// Options are (type, length in 8 octets, body); 1 and 2 hold a link-layer address.
fn check_link_layer_options(mac: Mac, mut options: &[u8]) -> Result<(), DropReason> {
    while let [kind, units, ..] = *options {
        let len = usize::from(units) * 8;
        if len == 0 || len > options.len() {
            return Err(DropReason::Malformed);
        }
        if matches!(kind, 1 | 2) && octets(options, 2) != Some(mac.0) {
            return Err(DropReason::Spoof);
        }
        options = &options[len..];
    }
    Ok(())
}

fn link_local(mac: Mac) -> u128 {
    let [a, b, c, d, e, f] = mac.0;
    let interface = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    0xfe80 << 112 | u128::from(interface)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
