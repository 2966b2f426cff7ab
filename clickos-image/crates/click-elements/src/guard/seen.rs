// SPDX-License-Identifier: Apache-2.0
//! What a packet is to a firewall: part of a flow, an error about one, or a fragment.
use super::ends::{Ends, mapped};
use crate::headers::{Headers, Start};

const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;

/// The fields of a TCP header that windows depend on.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    pub flags: u8,
    pub seq: u32,
    pub ack: Option<u32>,
    pub window: u16,
    /// The bits by which a SYN says that windows are shifted.
    pub scale: Option<u8>,
    /// Bytes of text.
    pub len: u32,
}

impl Tcp {
    pub fn is_fin(&self) -> bool {
        self.flags & 1 != 0
    }

    pub fn is_syn(&self) -> bool {
        self.flags & 2 != 0
    }

    pub fn is_rst(&self) -> bool {
        self.flags & 4 != 0
    }

    /// The answer to the first packet.
    pub fn is_syn_ack(&self) -> bool {
        self.is_syn() && self.ack.is_some()
    }

    /// The first packet of a connection.
    pub fn begins(&self) -> bool {
        self.flags & 0x17 == 2
    }

    /// After its last number.
    pub fn end(&self) -> u32 {
        let more = u32::from(self.is_syn()) + u32::from(self.is_fin());
        self.seq.wrapping_add(self.len).wrapping_add(more)
    }

    fn of(header: &[u8]) -> Option<Self> {
        let length = usize::from(header.get(12)? >> 4) * 4;
        let fixed: &[u8; 20] = header.first_chunk()?;
        let options = header.get(20..length)?;
        let flags = fixed[13];
        // no packet has these (RFC 9293, section 3.1)
        let is_possible = flags & 7 != 0 || flags & 0x10 != 0;
        let contradicts = flags & 2 != 0 && flags & 5 != 0 || flags & 5 == 5;
        if !is_possible || contradicts {
            return None;
        }
        let word = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        Some(Self {
            flags,
            seq: word(4),
            ack: (flags & 0x10 != 0).then(|| word(8)),
            window: u16::from_be_bytes([fixed[14], fixed[15]]),
            scale: scale(options).filter(|_| flags & 2 != 0),
            len: u32::try_from(header.len() - length).ok()?,
        })
    }
}

/// The window scale of a SYN's options (RFC 7323, section 2.2).
fn scale(mut options: &[u8]) -> Option<u8> {
    loop {
        match *options {
            [3, 3, shift, ..] => return Some(shift),
            [0, ..] | [] => return None,
            [1, ref rest @ ..] => options = rest,
            [_, len, ..] if len >= 2 => options = options.get(usize::from(len)..)?,
            _ => return None,
        }
    }
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// One of a flow; `answers` if it is an answer by its kind, such as that to a ping.
    Part {
        ends: Ends,
        tcp: Option<Tcp>,
        answers: bool,
    },
    /// An error about a packet of a flow, and its destination.
    Error { about: Ends, to: u128 },
}

/// A fragment: what all of its packet share, and whether it is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub source: u128,
    pub destination: u128,
    pub id: u32,
    pub is_first: bool,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u128::from_be_bytes(*bytes))
}

/// Source and destination.
fn addresses(headers: &Headers<'_>) -> Option<(u128, u128)> {
    let (four, six) = (headers.from(Start::Ip4), headers.from(Start::Ip6));
    match six {
        [] => Some((mapped(be32(four, 12)?), mapped(be32(four, 16)?))),
        _ => Some((be128(six, 8)?, be128(six, 24)?)),
    }
}

/// Addresses, protocol and ports of any packet; of ICMP, type and code are in the places of ports.
pub fn ends(headers: &Headers<'_>) -> Option<Ends> {
    let (source, destination) = addresses(headers)?;
    let protocol = u8::try_from(headers.protocol()?).ok()?;
    let upper = headers.from(Start::Transport);
    let (sport, dport) = match (protocol, upper) {
        (ICMP | ICMP6, [kind, code, ..]) => ((*kind).into(), (*code).into()),
        (TCP | UDP | SCTP | DCCP, _) => (be16(upper, 0).unwrap_or(0), be16(upper, 2).unwrap_or(0)),
        _ => (0, 0),
    };
    Some(Ends {
        source,
        destination,
        sport,
        dport,
        protocol,
    })
}

impl Seen {
    /// What a packet is, if its headers are whole and possible.
    pub fn of(headers: &Headers<'_>) -> Option<Self> {
        let (source, destination) = addresses(headers)?;
        let protocol = u8::try_from(headers.protocol()?).ok()?;
        let upper = headers.from(Start::Transport);
        let ends = |sport, dport| Ends {
            source,
            destination,
            sport,
            dport,
            protocol,
        };
        let part = |ends, tcp, answers| Some(Self::Part { ends, tcp, answers });
        match protocol {
            TCP => part(
                ends(be16(upper, 0)?, be16(upper, 2)?),
                Some(Tcp::of(upper)?),
                false,
            ),
            UDP | SCTP | DCCP => part(ends(be16(upper, 0)?, be16(upper, 2)?), None, false),
            ICMP | ICMP6 => match control(protocol, *upper.first()?) {
                Control::Ping { answers } => {
                    let id = be16(upper, 4)?;
                    part(ends(id, id), None, answers)
                }
                Control::Error => Some(Self::Error {
                    about: quoted(upper.get(8..)?)?,
                    to: destination,
                }),
                Control::Other => None,
            },
            _ => part(ends(0, 0), None, false),
        }
    }
}

/// Kinds of ICMP messages.
enum Control {
    Ping { answers: bool },
    Error,
    Other,
}

fn control(protocol: u8, kind: u8) -> Control {
    match (protocol, kind) {
        (ICMP, 8) | (ICMP6, 128) => Control::Ping { answers: false },
        (ICMP, 0) | (ICMP6, 129) => Control::Ping { answers: true },
        (ICMP, 3 | 11 | 12) | (ICMP6, 1..=4) => Control::Error,
        _ => Control::Other,
    }
}

/// The flow of a packet that an error quotes, of which only the beginning may be there.
fn quoted(bytes: &[u8]) -> Option<Ends> {
    let headers = match bytes.first()? >> 4 {
        6 => Headers::of_ip6(bytes, None),
        4 => {
            let is_first = be16(bytes, 6)? & 0x1fff == 0;
            let length = u32::from(bytes[0] & 15) * 4;
            (length >= 20 && is_first).then(|| Headers::of_ip4(bytes, length, None))?
        }
        _ => return None,
    };
    let (source, destination) = addresses(&headers)?;
    let protocol = u8::try_from(headers.protocol()?).ok()?;
    let upper = headers.from(Start::Transport);
    let (sport, dport) = match protocol {
        TCP | UDP | SCTP | DCCP => (be16(upper, 0)?, be16(upper, 2)?),
        ICMP | ICMP6 => match control(protocol, *upper.first()?) {
            Control::Ping { .. } => (be16(upper, 4)?, be16(upper, 4)?),
            _ => return None,
        },
        _ => (0, 0),
    };
    Some(Ends {
        source,
        destination,
        sport,
        dport,
        protocol,
    })
}

impl Fragment {
    /// The place of a fragment; none if the packet is whole.
    pub fn of(headers: &Headers<'_>) -> Option<Self> {
        if headers.is_fragment() != Some(true) {
            return None;
        }
        let (source, destination) = addresses(headers)?;
        let four = headers.from(Start::Ip4);
        let header = headers.from(Start::Fragment6);
        let (id, offset) = match four {
            [] => (be32(header, 4)?, be16(header, 2)? >> 3),
            _ => (be16(four, 4)?.into(), be16(four, 6)? & 0x1fff),
        };
        Some(Self {
            source,
            destination,
            id,
            is_first: offset == 0,
        })
    }
}
