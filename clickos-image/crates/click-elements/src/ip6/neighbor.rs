// SPDX-License-Identifier: Apache-2.0
//! Messages of neighbor discovery (RFC 4861).
use core::net::Ipv6Addr;

use click_wire::ether;

use super::{Address, ETHERTYPE, HEADER, HOP_LIMIT, ICMP6, emit, transport_checksum};

/// A message of neighbor discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor {
    pub kind: u8,
    pub flags: u8,
    pub source: Address,
    pub destination: Address,
    /// The address that it is about.
    pub target: Address,
    /// The link-layer address in its option, if it has one.
    pub link: Option<[u8; 6]>,
}

pub const SOLICITATION: u8 = 135;
pub const ADVERTISEMENT: u8 = 136;
/// Flags of advertisements: from a router, asked for, replaces a known address.
pub const ROUTER: u8 = 0x80;
pub const SOLICITED: u8 = 0x40;
pub const OVERRIDE: u8 = 0x20;
/// The group of all nodes, and its Ethernet address.
pub const ALL_NODES: (Address, [u8; 6]) = (
    Address(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
    [0x33, 0x33, 0, 0, 0, 1],
);
/// Type, code, checksum, flags, target.
const FIXED: usize = 24;
/// With the option for one Ethernet address.
const MESSAGE: usize = FIXED + 8;
/// Bytes of a frame with such a message.
pub const FRAME: usize = ether::HEADER + HEADER + MESSAGE;

impl Neighbor {
    /// The message in a frame; `None` if it is another packet, was routed, or its checksum is wrong.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let header = ether::Repr::parse(frame).ok()?;
        let packet = frame
            .get(ether::HEADER..)
            .filter(|_| header.ethertype == ETHERTYPE)?;
        let length = u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]);
        let packet = packet.get(..HEADER + usize::from(length))?;
        let message = packet.get(HEADER..).filter(|m| m.len() >= FIXED)?;
        let valid = packet[0] >> 4 == 6 && packet[6..8] == [ICMP6, HOP_LIMIT] && message[1] == 0;
        if !valid || transport_checksum(packet) != 0 {
            return None;
        }
        Some(Self {
            kind: message[0],
            flags: message[4],
            source: Address::at(&packet[8..])?,
            destination: Address::at(&packet[24..])?,
            target: Address::at(&message[8..])?,
            link: link_option(&message[FIXED..], message[0]),
        })
    }

    /// The advertisement of a router's own address that nothing asked for (RFC 4861, section 7.2.6).
    pub fn announcement(ip: Address, mac: [u8; 6]) -> Self {
        Self {
            kind: ADVERTISEMENT,
            flags: ROUTER | OVERRIDE,
            source: ip,
            destination: ALL_NODES.0,
            target: ip,
            link: Some(mac),
        }
    }

    /// What answers a solicitation, and the Ethernet address that gets it (section 7.2.4); `None` for another message, and
    /// for one of a group or of the address itself, which no host sends.
    pub fn answer(&self, mac: [u8; 6], asker: [u8; 6]) -> Option<(Self, [u8; 6])> {
        let is_host = !self.source.0.is_multicast() && self.source != self.target;
        if self.kind != SOLICITATION || !is_host || ether::is_group(asker) {
            return None;
        }
        let mut answer = Self::announcement(self.target, mac);
        if self.source.0.is_unspecified() {
            return Some((answer, ALL_NODES.1));
        }
        (answer.flags, answer.destination) = (answer.flags | SOLICITED, self.source);
        Some((answer, asker))
    }

    /// Writes the frame, of `FRAME` bytes.
    pub fn emit(&self, from: [u8; 6], to: [u8; 6], frame: &mut [u8]) {
        let header = ether::Repr {
            destination: to,
            source: from,
            ethertype: ETHERTYPE,
        };
        header.emit(frame);
        let packet = &mut frame[ether::HEADER..];
        packet[HEADER..].fill(0);
        emit(packet, ICMP6, self.source, self.destination);
        let message = &mut packet[HEADER..];
        (message[0], message[4]) = (self.kind, self.flags);
        message[8..FIXED].copy_from_slice(&self.target.0.octets());
        message[FIXED..FIXED + 2].copy_from_slice(&[option_of(self.kind), 1]);
        message[FIXED + 2..].copy_from_slice(&self.link.unwrap_or_default());
        let sum = transport_checksum(packet);
        packet[HEADER + 2..HEADER + 4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The option that says a link-layer address: the sender's in questions, the target's in answers.
fn option_of(kind: u8) -> u8 {
    if kind == SOLICITATION { 1 } else { 2 }
}

/// The link-layer address among options.
fn link_option(mut options: &[u8], kind: u8) -> Option<[u8; 6]> {
    while let [option, units, ..] = *options {
        let length = usize::from(units) * 8;
        let whole = options.get(..length).filter(|_| length > 0)?;
        if option == option_of(kind) {
            return whole[2..].first_chunk().copied();
        }
        options = &options[length..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Neighbor {
        Neighbor {
            kind: SOLICITATION,
            flags: 0,
            source: Address("fe80::1".parse().unwrap()),
            destination: Address("ff02::1:ff00:2".parse().unwrap()),
            target: Address("fe80::2".parse().unwrap()),
            link: Some([2, 0, 0, 0, 0, 1]),
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_that_was_changed() {
        let mut frame = [0; FRAME];
        message().emit([2, 0, 0, 0, 0, 1], [0x33; 6], &mut frame);
        assert_eq!(Neighbor::parse(&frame), Some(message()));
        for at in ether::HEADER + 6..FRAME {
            let mut changed = frame;
            changed[at] ^= 0x40;
            assert_eq!(Neighbor::parse(&changed), None, "byte {at}");
        }
        for length in 0..FRAME {
            assert_eq!(Neighbor::parse(&frame[..length]), None);
        }
    }

    #[test]
    fn no_group_and_no_owner_of_the_address_gets_an_answer() {
        let asker = [2, 0, 0, 0, 0, 1];
        let (answer, to) = message().answer([4; 6], asker).unwrap();
        assert_eq!((answer.destination, to), (message().source, asker));
        for group in [[0xff; 6], [0x33, 0x33, 0, 0, 0, 1]] {
            assert_eq!(message().answer([4; 6], group), None);
        }
        for source in ["ff02::1", "fe80::2"] {
            let source = Address(source.parse().unwrap());
            let question = Neighbor {
                source,
                ..message()
            };
            assert_eq!(question.answer([4; 6], asker), None, "{source:?}");
        }
    }

    #[test]
    fn options_that_lie_end_the_search() {
        let link = [2, 1, 1, 2, 3, 4, 5, 6];
        assert_eq!(link_option(&link, ADVERTISEMENT), Some([1, 2, 3, 4, 5, 6]));
        assert_eq!(link_option(&link, SOLICITATION), None);
        assert_eq!(link_option(&[9, 0, 2, 1], ADVERTISEMENT), None);
        assert_eq!(link_option(&[2, 9, 0, 0], ADVERTISEMENT), None);
    }
}
