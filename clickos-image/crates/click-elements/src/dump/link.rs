// SPDX-License-Identifier: Apache-2.0
//! What the packets of a pcap file begin with, and where their IP header is.
use crate::prelude::*;
use click_core::ArgContext;
use click_core::anno::DST_IP;

/// A link type of pcap files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link(pub u32);

const NULL: u32 = 0;
const ETHER: u32 = 1;
const PPP: u32 = 9;
const FDDI: u32 = 10;
const HOST_RAW: u32 = 12;
const PPP_HDLC: u32 = 50;
const ATM: u32 = 100;
const RAW: u32 = 101;
const HDLC: u32 = 104;
const WIFI: u32 = 105;
const SLL: u32 = 113;
const PRISM: u32 = 119;
const AIRONET: u32 = 120;
const SUNATM: u32 = 123;
const RADIO: u32 = 127;
/// The type that `tcpdump -i any` writes at present.
const SLL2: u32 = 276;

/// Names of link types; the first of a number is shown.
const NAMES: [(&str, u32); 19] = [
    ("NULL", NULL),
    ("IP", RAW),
    ("ETHER", ETHER),
    ("FDDI", FDDI),
    ("ATM", ATM),
    ("RFC1483", ATM),
    ("ATM_RFC1483", ATM),
    ("802_11", WIFI),
    ("802.11", WIFI),
    ("802_11_RADIO", RADIO),
    ("802.11_RADIO", RADIO),
    ("SLL", SLL),
    ("AIRONET", AIRONET),
    ("HDLC", HDLC),
    ("PPP_HDLC", PPP_HDLC),
    ("PPP", PPP),
    ("SUNATM", SUNATM),
    ("PRISM", PRISM),
    ("SLL2", SLL2),
];

/// Ethernet types of IPv4 and IPv6, and of a VLAN tag.
const IP_TYPES: [[u8; 2]; 2] = [[0x08, 0x00], [0x86, 0xdd]];
const VLAN: [u8; 2] = [0x81, 0x00];
/// Protocol numbers of IPv4 and IPv6 in PPP.
const PPP_IP: [u8; 2] = [0x21, 0x57];
/// Address families of IPv4, and of IPv6 on three systems.
const FAMILIES: [u16; 4] = [2, 24, 28, 30];

/// Bytes of a header of SLL2; the type is in front.
const SLL2_HEADER: usize = 20;

impl Link {
    pub const ETHER: Self = Self(ETHER);
    pub const RAW_IP: Self = Self(RAW);

    /// The link type of a file's header; both numbers of raw IP are one.
    pub fn of_header(number: u32) -> Self {
        match number & 0x0fff_ffff {
            HOST_RAW | 14 | 228 | 229 => Self(RAW),
            number => Self(number),
        }
    }

    /// The error of a link type whose packets nothing is known of.
    pub fn check(self) -> Result<(), String> {
        match NAMES.iter().any(|(_, number)| *number == self.0) {
            true => Ok(()),
            false => Err(format!(
                "the file has link type {}, whose IP packets cannot be found",
                self.0
            )),
        }
    }

    /// Where the IP header of a packet begins, if it is an IP packet.
    fn ip_at(self, data: &[u8]) -> Option<usize> {
        match self.0 {
            RAW => Some(0),
            ETHER => ethernet(data, 0),
            FDDI => fddi(data),
            ATM => llc(data, 0),
            SUNATM => llc(data, 4),
            SLL => typed(data, 14),
            HDLC => typed(data, 2),
            PPP_HDLC => ppp_hdlc(data),
            PPP => ppp(data),
            WIFI => wifi(data, 0),
            PRISM => wifi(data, 144),
            RADIO => wifi(data, radio(data)?),
            NULL => null(data),
            SLL2 => typed(data, 0).map(|_| SLL2_HEADER),
            _ => None,
        }
    }

    /// Marks the IP header of a packet and sets its destination annotation; false if it has none.
    pub fn mark_ip(self, packet: &mut Packet) -> bool {
        let Some(at) = self.ip_at(packet.data()) else {
            return false;
        };
        let rest = packet.data().get(at..).unwrap_or_default();
        let length = match rest.first().map(|b| (b >> 4, usize::from(b & 15) * 4)) {
            Some((4, length)) if length >= 20 && length <= rest.len() => length,
            Some((6, _)) if rest.len() >= 40 => 40,
            _ => return false,
        };
        if let (20.., Some(destination)) = (length, rest.get(16..20).filter(|_| rest[0] >> 4 == 4))
        {
            let destination = destination
                .first_chunk()
                .map_or(0, |b| u32::from_le_bytes(*b));
            packet.anno_mut().set_u32(DST_IP, destination);
        }
        packet.set_network(at, length);
        true
    }
}

fn pair(data: &[u8], at: usize) -> Option<[u8; 2]> {
    data.get(at..)?.first_chunk().copied()
}

/// Behind an Ethernet type at `at` that stands for IP.
fn typed(data: &[u8], at: usize) -> Option<usize> {
    IP_TYPES.contains(&pair(data, at)?).then_some(at + 2)
}

fn ethernet(data: &[u8], at: usize) -> Option<usize> {
    match pair(data, at + 12)? {
        VLAN => typed(data, at + 16),
        _ => typed(data, at + 12),
    }
}

/// LLC with SNAP or, as its own kind, IP.
fn llc(data: &[u8], at: usize) -> Option<usize> {
    match data.get(at..)? {
        [0xaa, 0xaa, 0x03, 0, 0, 0, ..] => typed(data, at + 6),
        [0x06, 0x06, _, _, ..] => Some(at + 4),
        _ => None,
    }
}

/// The frame control of asynchronous LLC frames, then two addresses.
fn fddi(data: &[u8]) -> Option<usize> {
    let is_llc = data.first()? & 0xf0 == 0x50;
    is_llc.then(|| llc(data, 13)).flatten()
}

fn ppp_hdlc(data: &[u8]) -> Option<usize> {
    match data {
        [0xff, _, 0, protocol, ..] => PPP_IP.contains(protocol).then_some(4),
        [0x0f | 0x8f, ..] => typed(data, 2),
        _ => None,
    }
}

fn ppp(data: &[u8]) -> Option<usize> {
    let at = if data.starts_with(&[0xff, 3]) { 2 } else { 0 };
    match data.get(at..)? {
        [protocol, _, ..] if PPP_IP.contains(protocol) => Some(at + 1),
        [0, protocol, ..] if PPP_IP.contains(protocol) => Some(at + 2),
        _ => None,
    }
}

/// Frames of data; between two access points they have a fourth address.
fn wifi(data: &[u8], at: usize) -> Option<usize> {
    let frame = data.get(at..).filter(|f| f.len() >= 24)?;
    let header = if frame[1] & 3 == 3 { 30 } else { 24 };
    (frame[0] & 0x0c == 0x08)
        .then(|| llc(data, at + header))
        .flatten()
}

/// The length of a radiotap header.
fn radio(data: &[u8]) -> Option<usize> {
    let length = usize::from(u16::from_le_bytes(pair(data, 2)?));
    (length >= 8).then_some(length)
}

/// An address family in the writer's byte order.
fn null(data: &[u8]) -> Option<usize> {
    let family = match data {
        [0, 0, high, low, ..] => u16::from_be_bytes([*high, *low]),
        [low, high, _, _, ..] => u16::from_le_bytes([*low, *high]),
        _ => return None,
    };
    FAMILIES.contains(&family).then_some(4)
}

impl FromArg for Link {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let word = String::from_arg(text, at)?.to_ascii_uppercase();
        let named = NAMES
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, n)| *n);
        let number = word.strip_prefix('#').and_then(|n| n.parse().ok());
        named.or(number).map(Self).ok_or_else(|| {
            format!(
                "expected what packets begin with, such as ETHER or IP, got \"{}\"",
                text.shown()
            )
        })
    }
}

impl core::fmt::Display for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "#{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_is_found_behind_every_link_header() {
        let behind = |link: &str, header: &[u8]| {
            let number = NAMES.iter().find(|(name, _)| *name == link).unwrap().1;
            Link(number).ip_at(&[header, &[0x45; 20]].concat())
        };
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        let zeros = [0; 144];
        assert_eq!(behind("IP", &[]), Some(0));
        assert_eq!(behind("ETHER", &[&zeros[..12], &[8, 0]].concat()), Some(14));
        assert_eq!(
            behind(
                "ETHER",
                &[&zeros[..12], &[0x81, 0, 0, 7, 0x86, 0xdd]].concat()
            ),
            Some(18)
        );
        assert_eq!(behind("ETHER", &[&zeros[..12], &[8, 6]].concat()), None);
        assert_eq!(
            behind("FDDI", &[&[0x57], &zeros[..12], &snap].concat()),
            Some(21)
        );
        assert_eq!(behind("ATM", &[6, 6, 3, 0]), Some(4));
        assert_eq!(
            behind("SUNATM", &[&zeros[..4], &snap[..]].concat()),
            Some(12)
        );
        assert_eq!(behind("SLL", &[&zeros[..14], &[8, 0]].concat()), Some(16));
        assert_eq!(behind("HDLC", &[0x0f, 0, 8, 0]), Some(4));
        assert_eq!(behind("PPP_HDLC", &[0xff, 3, 0, 0x21]), Some(4));
        assert_eq!(behind("PPP", &[0xff, 3, 0x57]), Some(3));
        assert_eq!(
            behind("802_11", &[&[8, 1], &zeros[..22], &snap].concat()),
            Some(32)
        );
        assert_eq!(
            behind(
                "PRISM",
                &[&zeros[..], &[8, 3], &zeros[..28], &snap].concat()
            ),
            Some(182)
        );
        assert_eq!(
            behind(
                "802_11_RADIO",
                &[&[0, 0, 8, 0, 0, 0, 0, 0, 8, 1], &zeros[..22], &snap].concat()
            ),
            Some(40)
        );
        assert_eq!(behind("NULL", &[2, 0, 0, 0]), Some(4));
        assert_eq!(behind("NULL", &[0, 0, 0, 30]), Some(4));
        assert_eq!(behind("AIRONET", &zeros), None);
    }

    #[test]
    fn short_packets_of_any_link_are_no_ip_packets() {
        for (_, number) in NAMES.iter().filter(|(_, n)| *n != RAW) {
            let found = (0..4).filter_map(|n| Link(*number).ip_at(&[0xff; 4][..n]));
            assert_eq!(found.count(), 0, "{number}");
        }
    }
}
