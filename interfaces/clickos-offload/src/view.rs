// SPDX-License-Identifier: Apache-2.0
//! The fields of a frame that rules look at.

const ETHERNET: usize = 14;
const IPV4: u16 = 0x0800;
const SHORTEST: usize = 20;

/// A frame as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub ether_destination: [u8; 6],
    pub ether_source: [u8; 6],
    pub ether_type: u16,
    /// The packet behind an untagged Ethernet header, if it is a valid IPv4 packet.
    pub ip: Option<Ip>,
}

/// A valid IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    pub source: u32,
    pub destination: u32,
    pub protocol: u8,
    pub tos: u8,
    /// The first 4 bytes behind the header; none in later fragments.
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
    /// Bytes of the header.
    pub header: usize,
}

impl View {
    /// Reads a frame of `len` bytes from its first bytes, which must hold all headers.
    #[must_use]
    pub fn of(head: &[u8], len: usize) -> Option<Self> {
        let ether_type = be16(head, 12)?;
        let packet = head.get(ETHERNET..)?;
        let ip = || Ip::of(packet, len.saturating_sub(ETHERNET));
        Some(Self {
            ether_destination: *head.first_chunk()?,
            ether_source: *head.get(6..)?.first_chunk()?,
            ether_type,
            ip: (ether_type == IPV4).then(ip).flatten(),
        })
    }
}

impl Ip {
    fn of(packet: &[u8], len: usize) -> Option<Self> {
        let header = packet.first_chunk::<SHORTEST>()?;
        let bytes = usize::from(header[0] & 15) * 4;
        let total: usize = be16(header, 2)?.into();
        let whole = packet.get(..bytes)?;
        let valid = header[0] >> 4 == 4
            && bytes >= SHORTEST
            && (bytes..=len).contains(&total)
            && sum(whole) == u16::MAX;
        let is_first = be16(header, 6)? & 0x1fff == 0;
        let body = packet.get(bytes..total.min(packet.len()))?;
        let port = |at| be16(body, at).filter(|_| is_first);
        valid.then_some(Self {
            source: be32(header, 12)?,
            destination: be32(header, 16)?,
            protocol: header[9],
            tos: header[1],
            source_port: port(0),
            destination_port: port(2),
            header: bytes,
        })
    }
}

/// The ones' complement sum of 16-bit words (RFC 1071).
pub fn sum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)));
    let sum: u32 = words.sum();
    fold(sum)
}

/// The sum of two halves, with the carries.
pub fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once + (once >> 16)) as u16
}

pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|b| u16::from_be_bytes(*b))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|b| u32::from_be_bytes(*b))
}
