// SPDX-License-Identifier: Apache-2.0
//! The message of VRRP version 3 over IPv4 (RFC 9568, section 5).
use click_wire::{checksum, ipv4};

use crate::prelude::*;

/// The number of the protocol.
pub const PROTOCOL: u8 = 112;
/// The destination of advertisements, and its Ethernet address (RFC 1112, section 6.4).
pub const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 18);
pub const GROUP_MAC: [u8; 6] = [0x01, 0x00, 0x5e, 0, 0, 18];
/// Bytes without addresses.
const HEADER: usize = 8;
/// Version 3, type ADVERTISEMENT.
const VERSION_TYPE: u8 = 0x31;
/// The hop count of messages that no router has forwarded.
pub const TTL: u8 = 255;
/// The most addresses of a virtual router here. The count has 8 bits.
pub const MAX_ADDRESSES: usize = 16;

/// The virtual router's Ethernet address for IPv4 (section 7.3).
pub fn virtual_mac(vrid: u8) -> [u8; 6] {
    [0, 0, 0x5e, 0, 1, vrid]
}

/// An advertisement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    pub vrid: u8,
    /// 255 for the owner of the addresses, 0 for a router that leaves.
    pub priority: u8,
    /// Hundredths of a second, 1 to 4095.
    pub interval_cs: u16,
    pub addresses: Vec<Ipv4Addr>,
    /// The sum covers a pseudo-header, too. RFC 9568, section 5.2.8, says that it does not; RFC 5798 was read both ways.
    pub has_pseudo: bool,
}

impl Advertisement {
    /// Reads an IPv4 packet; `None` if RFC 9568, section 7.1, says to drop it.
    pub fn parse(packet: &ipv4::View<&[u8]>) -> Option<Self> {
        let body = packet.payload();
        if packet.protocol() != PROTOCOL || packet.ttl() != TTL || body.len() < HEADER {
            return None;
        }
        let (count, interval) = (usize::from(body[3]), u16::from_be_bytes([body[4], body[5]]));
        let addresses = body[HEADER..].get(..4 * count)?;
        let is_right = |start| checksum::finish(checksum::add(start, body)) == 0;
        let has_pseudo = !is_right(0);
        let found = Self {
            vrid: body[1],
            priority: body[2],
            interval_cs: interval & 0x0fff,
            addresses: addresses.chunks_exact(4).map(ipv4_at).collect(),
            has_pseudo,
        };
        let is_good =
            body[0] == VERSION_TYPE && found.vrid > 0 && found.interval_cs > 0 && count > 0;
        let is_sum = !has_pseudo || is_right(pseudo(packet.source(), body));
        (is_good && is_sum).then_some(found)
    }

    /// The bytes of the message that `from` sends.
    pub fn bytes(&self, from: Ipv4Addr) -> Vec<u8> {
        let count = u8::try_from(self.addresses.len()).unwrap_or(u8::MAX);
        let mut bytes = vec![VERSION_TYPE, self.vrid, self.priority, count];
        bytes.extend((self.interval_cs & 0x0fff).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.addresses.iter().flat_map(Ipv4Addr::octets));
        let start = match self.has_pseudo {
            true => pseudo(from, &bytes),
            false => 0,
        };
        let sum = checksum::finish(checksum::add(start, &bytes)).to_be_bytes();
        bytes[6..8].copy_from_slice(&sum);
        bytes
    }
}

/// The sum of the pseudo-header.
fn pseudo(from: Ipv4Addr, body: &[u8]) -> u64 {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
    checksum::pseudo(from, GROUP, PROTOCOL, length)
}

fn ipv4_at(bytes: &[u8]) -> Ipv4Addr {
    let [a, b, c, d] = [bytes[0], bytes[1], bytes[2], bytes[3]];
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    fn advertisement() -> Advertisement {
        Advertisement {
            vrid: 7,
            priority: 200,
            interval_cs: 20,
            addresses: vec![Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)],
            has_pseudo: false,
        }
    }

    /// The packet of a message, with another TTL if asked.
    fn packet(body: &[u8], ttl: u8) -> Vec<u8> {
        let mut bytes = vec![0; 20];
        ipv4::Repr {
            tos: 0xc0,
            id: 1,
            fragment: 0,
            ttl,
            protocol: PROTOCOL,
            source: FROM,
            destination: GROUP,
            payload_len: body.len() as u16,
        }
        .emit(&mut bytes);
        bytes.extend(body);
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Advertisement> {
        Advertisement::parse(&ipv4::View::new_checked(bytes).ok()?)
    }

    #[test]
    fn what_is_written_is_read_with_either_sum() {
        for has_pseudo in [false, true] {
            let message = Advertisement {
                has_pseudo,
                ..advertisement()
            };
            let bytes = message.bytes(FROM);
            assert_eq!(bytes[..6], [0x31, 7, 200, 2, 0, 20]);
            assert_eq!(checksum::of(&bytes) == 0, !has_pseudo);
            assert_eq!(parse(&packet(&bytes, 255)), Some(message));
        }
    }

    #[test]
    fn whatever_section_7_1_drops_is_dropped() {
        let good = advertisement().bytes(FROM);
        assert_eq!(parse(&packet(&good, 254)), None, "it was forwarded");
        for (at, value) in [(0, 0x21), (0, 0x32), (1, 0), (3, 0), (3, 3), (5, 0), (6, 9)] {
            let mut bad = good.clone();
            bad[at] = value;
            if at != 6 {
                bad[6..8].fill(0);
                let sum = checksum::of(&bad).to_be_bytes();
                bad[6..8].copy_from_slice(&sum);
            }
            assert_eq!(parse(&packet(&bad, 255)), None, "byte {at} is {value}");
        }
        for len in 0..good.len() {
            assert_eq!(parse(&packet(&good[..len], 255)), None, "{len} bytes");
        }
    }
}
