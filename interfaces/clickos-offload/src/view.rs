// SPDX-License-Identifier: Apache-2.0
//! The fields of a frame that rules look at.

const ETHERNET: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const SHORTEST: usize = 20;
/// The header of each IPv6 packet.
pub const FIXED: usize = 40;
/// Rules see no more bytes of a frame, so all who judge it see the same.
pub const HEAD: usize = 128;
/// Extension headers that are read at most.
const CHAIN: usize = 8;
const NOTHING: u8 = 59;

/// A frame as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub ether_destination: [u8; 6],
    pub ether_source: [u8; 6],
    pub ether_type: u16,
    /// The packet after an untagged Ethernet header, if it is a valid IPv4 packet.
    pub ip: Option<Ip>,
    /// The same for IPv6.
    pub ip6: Option<Ip6>,
}

/// The fields of a valid packet; A is its kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<A> {
    pub source: A,
    pub destination: A,
    /// The one after the extension headers, if it is IPv6.
    pub protocol: u8,
    pub tos: u8,
    /// The first 4 bytes after the headers; none in later fragments.
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
    /// It is a part of a packet.
    pub is_fragment: bool,
    /// Bytes in front of the protocol's.
    pub header: usize,
}

/// A valid IPv4 packet.
pub type Ip = Header<u32>;
/// A valid IPv6 packet whose headers lie within the head of the frame.
pub type Ip6 = Header<u128>;

impl View {
    /// A number of the packet's flow; 0 if it is not IP.
    #[must_use]
    pub fn flow(&self) -> u64 {
        let four = self.ip.as_ref().map(Header::flow);
        four.or(self.ip6.as_ref().map(Header::flow)).unwrap_or(0)
    }

    /// Reads a frame of `len` bytes from its first bytes, of which it needs 128.
    #[must_use]
    pub fn of(head: &[u8], len: usize) -> Option<Self> {
        let head = &head[..head.len().min(HEAD)];
        let ether_type = be16(head, 12)?;
        let packet = head.get(ETHERNET..)?;
        let len = len.saturating_sub(ETHERNET);
        let (mut ip, mut ip6) = (None, None);
        match ether_type {
            IPV4 => ip = Ip::of(packet, len),
            IPV6 => ip6 = Ip6::of(packet, len),
            _ => {}
        }
        Some(Self {
            ether_destination: *head.first_chunk()?,
            ether_source: *head.get(6..)?.first_chunk()?,
            ether_type,
            ip,
            ip6,
        })
    }
}

impl<A: Copy + Into<u128>> Header<A> {
    /// A number of the packet's flow. A fragment has that of its addresses and protocol.
    fn flow(&self) -> u64 {
        let ports = [self.source_port, self.destination_port];
        let ports = match self.is_fragment {
            true => [0; 2],
            false => ports.map(|port| u64::from(port.unwrap_or(0))),
        };
        let [source, destination] = [self.source, self.destination].map(|address| {
            let wide: u128 = address.into();
            mix((wide >> 64) as u64) ^ wide as u64
        });
        let both = mix(source) ^ mix(destination.rotate_left(32));
        mix(both ^ ports[0] << 32 ^ ports[1] << 16 ^ u64::from(self.protocol))
    }
}

/// Spreads a number over all bits.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
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
        let fragment = be16(header, 6)?;
        let is_first = fragment & 0x1fff == 0;
        let body = packet.get(bytes..total.min(packet.len()))?;
        let port = |at| be16(body, at).filter(|_| is_first);
        valid.then_some(Self {
            source: be32(header, 12)?,
            destination: be32(header, 16)?,
            protocol: header[9],
            tos: header[1],
            source_port: port(0),
            destination_port: port(2),
            is_fragment: fragment & 0x3fff != 0,
            header: bytes,
        })
    }
}

impl Ip6 {
    fn of(packet: &[u8], len: usize) -> Option<Self> {
        let fixed = packet.first_chunk::<FIXED>()?;
        let payload: usize = be16(fixed, 4)?.into();
        let end = FIXED + payload;
        // A jumbogram has its length elsewhere (RFC 2675).
        let has_length = payload > 0 || fixed[6] == NOTHING;
        (fixed[0] >> 4 == 6 && end <= len && has_length).then_some(())?;
        let upper = Upper::of(packet.get(..end.min(packet.len()))?, fixed[6])?;
        let ports = upper.ports(packet, end)?;
        Some(Self {
            source: be128(fixed, 8)?,
            destination: be128(fixed, 24)?,
            protocol: upper.protocol,
            tos: fixed[0] << 4 | fixed[1] >> 4,
            source_port: ports.map(|(source, _)| source),
            destination_port: ports.map(|(_, destination)| destination),
            is_fragment: upper.is_fragment,
            header: upper.at,
        })
    }
}

/// The protocol after the extension headers.
struct Upper {
    protocol: u8,
    at: usize,
    is_first: bool,
    is_fragment: bool,
}

impl Upper {
    /// Reads the extension headers; none if they are not there as a whole, or too many.
    fn of(packet: &[u8], next_header: u8) -> Option<Self> {
        let mut upper = Self {
            protocol: next_header,
            at: FIXED,
            is_first: true,
            is_fragment: false,
        };
        for _ in 0..CHAIN {
            if !upper.is_extension() || !upper.is_first {
                return Some(upper);
            }
            upper.skip(packet)?;
        }
        (!upper.is_extension()).then_some(upper)
    }

    /// Hop-by-hop options, routing, fragment, authentication, destination options, mobility, HIP, Shim6.
    fn is_extension(&self) -> bool {
        matches!(self.protocol, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140)
    }

    /// Continues after an extension header.
    fn skip(&mut self, packet: &[u8]) -> Option<()> {
        let units = usize::from(*packet.get(self.at + 1)?);
        let bytes = match self.protocol {
            44 => 8,
            51 => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        let header = packet.get(self.at..self.at + bytes)?;
        if self.protocol == 44 {
            let fragment = be16(header, 2)?;
            self.is_first = fragment >> 3 == 0;
            self.is_fragment |= fragment & !6 != 0;
        }
        self.protocol = header[0];
        self.at += bytes;
        Some(())
    }

    /// The ports of a packet that ends at `end`: none if it has none. No answer if they are not in sight.
    fn ports(&self, packet: &[u8], end: usize) -> Option<Option<(u16, u16)>> {
        match self.is_first && self.at + 4 <= end {
            true => Some(Some((be16(packet, self.at)?, be16(packet, self.at + 2)?))),
            false => Some(None),
        }
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

fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|b| u128::from_be_bytes(*b))
}
