// SPDX-License-Identifier: Apache-2.0
//! Networks of IPv4 and IPv6, and the addresses of the packets in a tunnel.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(a) => (u128::from(u32::from(a)) << 96, 32),
        IpAddr::V6(a) => (u128::from(a), 128),
    }
}

impl Network {
    /// Reads `10.0.0.0/8`, `fd00::/8`, or an address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, bits.parse().ok()?),
            None => (text, if text.contains(':') { 128 } else { 32 }),
        };
        let address = address.parse().ok()?;
        let most = number(address).1;
        (u32::from(bits) <= most).then_some(Self { address, bits })
    }

    /// The number of common bits if the address belongs to the network.
    pub fn holds(&self, address: IpAddr) -> Option<u8> {
        let ((own, width), (other, theirs)) = (number(self.address), number(address));
        let unlike = (own ^ other).leading_zeros() < u32::from(self.bits);
        (width == theirs && !unlike).then_some(self.bits)
    }
}

impl core::fmt::Display for Network {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// A packet's header, as far as a tunnel reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// Its sender.
    pub source: IpAddr,
    /// Its receiver.
    pub destination: IpAddr,
    /// Bytes of its header.
    pub header: usize,
    /// Bytes of the packet.
    pub length: usize,
}

/// Reads the header of an IPv4 or IPv6 packet, behind which padding may stand.
pub fn inner(packet: &[u8]) -> Option<Inner> {
    let found = match packet.first()? >> 4 {
        4 => inner_v4(packet.first_chunk()?),
        6 => inner_v6(packet.first_chunk()?),
        _ => return None,
    };
    let sound = found.header >= 20 && found.header <= found.length && found.length <= packet.len();
    sound.then_some(found)
}

fn inner_v4(bytes: &[u8; 20]) -> Inner {
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(
            bytes[at],
            bytes[at + 1],
            bytes[at + 2],
            bytes[at + 3],
        ))
    };
    Inner {
        source: address(12),
        destination: address(16),
        header: usize::from(bytes[0] & 15) * 4,
        length: usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
    }
}

fn inner_v6(bytes: &[u8; 40]) -> Inner {
    let address = |at: usize| {
        let octets: [u8; 16] = core::array::from_fn(|n| bytes[at + n]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Inner {
        source: address(8),
        destination: address(24),
        header: 40,
        length: 40 + usize::from(u16::from_be_bytes([bytes[4], bytes[5]])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        let network = Network::parse("10.1.0.0/16").unwrap();
        assert_eq!(network.holds("10.1.255.1".parse().unwrap()), Some(16));
        assert_eq!(network.holds("10.2.0.1".parse().unwrap()), None);
        assert_eq!(network.holds("a01::1".parse().unwrap()), None);
        let all = Network::parse("::/0").unwrap();
        assert_eq!(all.holds("fd00::1".parse().unwrap()), Some(0));
        assert_eq!(all.holds("1.2.3.4".parse().unwrap()), None);
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/x",
            "10.0.0.0/",
        ] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut packet = [0u8; 48];
        packet[0] = 0x45;
        packet[3] = 48;
        assert_eq!(inner(&packet).map(|i| (i.header, i.length)), Some((20, 48)));
        packet[3] = 49;
        assert_eq!(inner(&packet), None);
        packet[3] = 48;
        packet[0] = 0x44;
        assert_eq!(inner(&packet), None);
        packet[0] = 0x4f;
        packet[3] = 40;
        assert_eq!(inner(&packet), None, "options beyond the packet");
        packet[0] = 0x60;
        packet[5] = 8;
        assert_eq!(inner(&packet).map(|i| i.length), Some(48));
        packet[5] = 9;
        assert_eq!(inner(&packet), None);
        assert_eq!(inner(&[]), None);
    }
}
