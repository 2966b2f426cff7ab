// SPDX-License-Identifier: Apache-2.0
//! The TCP or UDP header of a frame, and its checksum.
use super::vnet::Checksum;
use crate::frame::headers::{Ethernet, IPV4, IPV6, be16};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// The flag of TCP by which a sender tells that it has slowed down (RFC 3168, 6.1.2).
pub const CWR: u8 = 0x80;

/// The headers of a TCP segment or UDP datagram that is no fragment.
pub struct Transport {
    /// Offsets of the IP header, and of the TCP or UDP header.
    pub l3: usize,
    pub l4: usize,
    pub protocol: u8,
    pub is_v6: bool,
}

impl Transport {
    /// None for other frames. Senders complete the checksum after IPv6 extension headers themselves.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let Ethernet { kind, payload, .. } = Ethernet::parse(frame)?;
        let l3 = payload;
        let (is_v6, l4, protocol) = match kind {
            IPV4 => {
                let header = usize::from(frame.get(l3)? & 15) * 4;
                let fragment = be16(frame, l3 + 6)? & 0x3fff != 0;
                if header < 20 || fragment {
                    return None;
                }
                (false, l3 + header, *frame.get(l3 + 9)?)
            }
            IPV6 => (true, l3 + 40, *frame.get(l3 + 6)?),
            _ => return None,
        };
        matches!(protocol, TCP | UDP).then_some(Self {
            l3,
            l4,
            protocol,
            is_v6,
        })
    }

    pub fn checksum(&self) -> Checksum {
        let offset = if self.protocol == TCP { 16 } else { 6 };
        // At most 22 bytes of Ethernet and 60 of IP.
        let start = u16::try_from(self.l4).unwrap_or(u16::MAX);
        Checksum { start, offset }
    }
}

impl Checksum {
    /// The checksum of a frame's TCP or UDP header, from the frame or its head. None without such a
    /// header.
    pub fn of(head: &[u8]) -> Option<Self> {
        let found = Transport::parse(head)?.checksum();
        (found.field() + 2 <= head.len()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u16, packet: &[u8], len: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1];
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame.resize(len, 0);
        frame
    }

    fn v4(header: u8, fragment: u16, protocol: u8) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        vec![header, 0, 0, 0, 0, 0, high, low, 64, protocol]
    }

    #[test]
    fn tcp_and_udp_have_a_checksum() {
        let v6 = |protocol| vec![0x60, 0, 0, 0, 0, 0, protocol];
        for (packet, kind, start, offset) in [
            (v4(0x45, 0, TCP), IPV4, 34, 16),
            (v4(0x4f, 0x4000, UDP), IPV4, 74, 6),
            (v6(TCP), IPV6, 54, 16),
            (v6(UDP), IPV6, 54, 6),
        ] {
            let end = usize::from(start + offset) + 2;
            let found = Checksum::of(&frame(kind, &packet, end));
            assert_eq!(found, Some(Checksum { start, offset }));
            assert_eq!(Checksum::of(&frame(kind, &packet, end - 1)), None, "cut");
        }
    }

    #[test]
    fn other_frames_have_none() {
        for (packet, kind, why) in [
            (v4(0x45, 0, 1), IPV4, "ICMP"),
            (v4(0x44, 0, TCP), IPV4, "header too short"),
            (v4(0x45, 0x2000, TCP), IPV4, "first fragment"),
            (v4(0x45, 1, UDP), IPV4, "later fragment"),
            (vec![0x60, 0, 0, 0, 0, 0, 0], IPV6, "extension header"),
            (v4(0x45, 0, TCP), 0x0806, "ARP"),
        ] {
            assert_eq!(Checksum::of(&frame(kind, &packet, 200)), None, "{why}");
        }
        assert_eq!(Checksum::of(&[0; 13]), None);
    }
}
