// SPDX-License-Identifier: Apache-2.0
//! The message of VRRP version 3 over IPv4 and IPv6 (RFC 9568, section 5).
use core::net::{IpAddr, Ipv6Addr};

use click_wire::checksum;

use crate::prelude::*;

/// The number of the protocol.
pub const PROTOCOL: u8 = 112;
/// Bytes without addresses.
const HEADER: usize = 8;
/// Version 3, type ADVERTISEMENT.
const VERSION_TYPE: u8 = 0x31;
/// The hop count of messages that no router has forwarded.
pub const TTL: u8 = 255;
/// The most addresses of a virtual router here. The count has 8 bits.
pub const MAX_ADDRESSES: usize = 16;

/// The virtual router's Ethernet address for the IP version of `ip` (section 7.3).
pub fn virtual_mac(ip: IpAddr, vrid: u8) -> [u8; 6] {
    [0, 0, 0x5e, 0, 1 + u8::from(ip.is_ipv6()), vrid]
}

/// The destination of advertisements of an IP version (sections 5.1.1.2 and 5.1.2.2), and its Ethernet address (RFC 1112,
/// section 6.4; RFC 2464, section 7).
pub fn group(version_of: IpAddr) -> (IpAddr, [u8; 6]) {
    match version_of {
        IpAddr::V4(_) => (Ipv4Addr::new(224, 0, 0, 18).into(), [1, 0, 0x5e, 0, 0, 18]),
        IpAddr::V6(_) => (
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 18).into(),
            [0x33, 0x33, 0, 0, 0, 18],
        ),
    }
}

/// An advertisement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    pub vrid: u8,
    /// 255 for the owner of the addresses, 0 for a router that leaves.
    pub priority: u8,
    /// Hundredths of a second, 1 to 4095.
    pub interval_cs: u16,
    /// Of the IP version of the packet.
    pub addresses: Vec<IpAddr>,
    /// The sum over IPv4 covers a pseudo-header, too. RFC 9568, section 5.2.8, says that it does not; RFC 5798 was read both
    /// ways. Over IPv6 it always does.
    pub has_pseudo: bool,
}

impl Advertisement {
    /// Reads the payload of a packet; `None` if RFC 9568, section 7.1, says to drop it.
    pub fn parse(body: &[u8], from: IpAddr) -> Option<Self> {
        let header = body.first_chunk::<HEADER>()?;
        let (count, interval) = (
            usize::from(header[3]),
            u16::from_be_bytes([header[4], header[5]]),
        );
        let width = if from.is_ipv6() { 16 } else { 4 };
        let addresses = body[HEADER..].get(..width * count)?;
        let is_right = |start| checksum::finish(checksum::add(start, body)) == 0;
        let has_pseudo = from.is_ipv6() || !is_right(0);
        let found = Self {
            vrid: header[1],
            priority: header[2],
            interval_cs: interval & 0x0fff,
            addresses: addresses
                .chunks_exact(width)
                .filter_map(address_at)
                .collect(),
            has_pseudo,
        };
        let is_good =
            header[0] == VERSION_TYPE && found.vrid > 0 && found.interval_cs > 0 && count > 0;
        let is_sum = !has_pseudo || is_right(pseudo(from, body));
        (is_good && is_sum).then_some(found)
    }

    /// The bytes of the message that `from` sends.
    pub fn bytes(&self, from: IpAddr) -> Vec<u8> {
        let count = u8::try_from(self.addresses.len()).unwrap_or(u8::MAX);
        let mut bytes = vec![VERSION_TYPE, self.vrid, self.priority, count];
        bytes.extend((self.interval_cs & 0x0fff).to_be_bytes());
        bytes.extend([0, 0]);
        for address in &self.addresses {
            put(&mut bytes, *address);
        }
        let start = match self.has_pseudo || from.is_ipv6() {
            true => pseudo(from, &bytes),
            false => 0,
        };
        let sum = checksum::finish(checksum::add(start, &bytes)).to_be_bytes();
        bytes[6..8].copy_from_slice(&sum);
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(ip) => bytes.extend(ip.octets()),
        IpAddr::V6(ip) => bytes.extend(ip.octets()),
    }
}

/// The sum of the pseudo-header, which has the same sum for both IP versions.
fn pseudo(from: IpAddr, body: &[u8]) -> u64 {
    let mut addresses = Vec::new();
    put(&mut addresses, from);
    put(&mut addresses, group(from).0);
    checksum::add(u64::from(PROTOCOL) + body.len() as u64, &addresses)
}

/// The address that 4 or 16 bytes are.
fn address_at(bytes: &[u8]) -> Option<IpAddr> {
    match *bytes {
        [a, b, c, d] => Some(Ipv4Addr::new(a, b, c, d).into()),
        _ => bytes
            .first_chunk::<16>()
            .map(|octets| Ipv6Addr::from(*octets).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: [&str; 2] = ["10.0.0.9", "fe80::9"];

    fn advertisement(addresses: [&str; 2]) -> Advertisement {
        Advertisement {
            vrid: 7,
            priority: 200,
            interval_cs: 20,
            addresses: addresses.map(|ip| ip.parse().unwrap()).to_vec(),
            has_pseudo: false,
        }
    }

    /// A message of each IP version, and who sends it.
    fn both() -> [(IpAddr, Advertisement); 2] {
        let addresses = [["10.0.0.1", "10.0.0.2"], ["fe80::1", "2001:db8::1"]];
        [0, 1].map(|n| (FROM[n].parse().unwrap(), advertisement(addresses[n])))
    }

    #[test]
    fn what_is_written_is_read_with_either_sum() {
        for (from, message) in both() {
            for has_pseudo in [from.is_ipv6(), true] {
                let message = Advertisement {
                    has_pseudo,
                    ..message.clone()
                };
                let bytes = message.bytes(from);
                assert_eq!(bytes[..6], [0x31, 7, 200, 2, 0, 20]);
                assert_eq!(checksum::of(&bytes) == 0, !has_pseudo);
                assert_eq!(Advertisement::parse(&bytes, from), Some(message));
            }
        }
    }

    #[test]
    fn whatever_section_7_1_drops_is_dropped() {
        for (from, message) in both() {
            let good = message.bytes(from);
            for (at, value) in [(0, 0x21), (0, 0x32), (1, 0), (3, 0), (3, 3), (5, 0), (6, 9)] {
                let mut bad = good.clone();
                bad[at] = value;
                if at != 6 {
                    bad[6..8].fill(0);
                    let sum = checksum::finish(checksum::add(pseudo(from, &bad), &bad));
                    bad[6..8].copy_from_slice(&sum.to_be_bytes());
                }
                let read = Advertisement::parse(&bad, from);
                assert_eq!(read, None, "{from}: byte {at} is {value}");
            }
            for len in 0..good.len() {
                let read = Advertisement::parse(&good[..len], from);
                assert_eq!(read, None, "{from}: {len} bytes");
            }
        }
    }

    #[test]
    fn ipv6_has_no_sum_without_the_pseudo_header() {
        let (from, message) = both()[1].clone();
        let mut bytes = message.bytes(from);
        bytes[6..8].fill(0);
        let sum = checksum::of(&bytes).to_be_bytes();
        bytes[6..8].copy_from_slice(&sum);
        assert_eq!(Advertisement::parse(&bytes, from), None);
    }
}
