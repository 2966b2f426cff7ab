// SPDX-License-Identifier: Apache-2.0
//! Fields of IP packets by name or place: `ip src/24`, `tcp[4:2]`, `ip off & 0x1fff`.
use core::fmt;

use click_core::value::number;
use click_core::{ArgContext, Packet};
use click_wire::{ipv4, tcp, udp};

use crate::classify::names::{ANY_TRANSPORT, Kind, Lookup, TCP_OR_UDP, lookup, protocol_name};
use crate::prelude::*;
use crate::rewrite::kind::is_later_fragment;

/// Where a field's place is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Ip,
    /// The transport header of this protocol; `TCP_OR_UDP` and `ANY_TRANSPORT` among them.
    Transport(u32),
    /// The data after a TCP or UDP header.
    Payload,
}

const ICMP: Header = Header::Transport(1);
const TCP: Header = Header::Transport(6);
const UDP: Header = Header::Transport(17);
const PORTS: Header = Header::Transport(TCP_OR_UDP);

/// Fields that have names: header, name, place and length in bits.
const NAMED: [(Header, &str, u32, u32); 44] = [
    (Header::Ip, "vers", 0, 4),
    (Header::Ip, "hl", 4, 4),
    (Header::Ip, "tos", 8, 8),
    (Header::Ip, "dscp", 8, 6),
    (Header::Ip, "ecn", 14, 2),
    (Header::Ip, "len", 16, 16),
    (Header::Ip, "id", 32, 16),
    (Header::Ip, "off", 48, 16),
    (Header::Ip, "rf", 48, 1),
    (Header::Ip, "df", 49, 1),
    (Header::Ip, "mf", 50, 1),
    (Header::Ip, "fragoff", 51, 13),
    (Header::Ip, "ttl", 64, 8),
    (Header::Ip, "proto", 72, 8),
    (Header::Ip, "sum", 80, 16),
    (Header::Ip, "src", 96, 32),
    (Header::Ip, "dst", 128, 32),
    (PORTS, "sport", 0, 16),
    (PORTS, "dport", 16, 16),
    (UDP, "sport", 0, 16),
    (UDP, "dport", 16, 16),
    (UDP, "len", 32, 16),
    (UDP, "sum", 48, 16),
    (TCP, "sport", 0, 16),
    (TCP, "dport", 16, 16),
    (TCP, "seq", 32, 32),
    (TCP, "seqno", 32, 32),
    (TCP, "ackno", 64, 32),
    (TCP, "hl", 96, 4),
    (TCP, "flags", 104, 8),
    (TCP, "urg", 106, 1),
    (TCP, "ack", 107, 1),
    (TCP, "ackf", 107, 1),
    (TCP, "psh", 108, 1),
    (TCP, "push", 108, 1),
    (TCP, "rst", 109, 1),
    (TCP, "syn", 110, 1),
    (TCP, "fin", 111, 1),
    (TCP, "win", 112, 16),
    (TCP, "sum", 128, 16),
    (TCP, "urp", 144, 16),
    (ICMP, "type", 0, 8),
    (ICMP, "code", 8, 8),
    (ICMP, "sum", 16, 16),
];

/// A field within a word of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpField {
    pub header: Header,
    /// Its place and length in bits.
    pub offset: u32,
    pub len: u32,
}

const EXPECTED: &str = "expected HEADER, a field's name or [OFFSET:LENGTH], and /BITS or & MASK";
/// The farthest place in a header, in bits.
const FARTHEST: u32 = 1 << 16;

impl FromArg for IpField {
    fn from_arg(arg: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let mut text = Cursor(arg.trim());
        let field = text.field().filter(|_| text.0.is_empty());
        let field = field.ok_or_else(|| format!("{EXPECTED}, got \"{}\"", arg.shown()))?;
        let last = field.offset + field.len - 1;
        if field.offset / 32 != last / 32 {
            return Err(format!("\"{arg}\" is not within a word of 4 bytes"));
        }
        Ok(field)
    }
}

/// The unread rest of an argument.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn eat(&mut self, what: char) -> bool {
        let rest = self.0.strip_prefix(what);
        self.0 = rest.unwrap_or(self.0).trim_start();
        rest.is_some()
    }

    /// A word of letters and digits; empty if there is none.
    fn word(&mut self) -> &'a str {
        let end = self.0.find(|c: char| !c.is_ascii_alphanumeric());
        let (word, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.trim_start();
        word
    }

    fn number(&mut self) -> Option<u32> {
        number(self.word()).and_then(|n| u32::try_from(n).ok())
    }

    fn field(&mut self) -> Option<IpField> {
        let mut field = self.header_and_name()?;
        if self.eat('[') {
            field = self.part(field, 8, ']')?;
        } else if self.eat('{') {
            field = self.part(field, 1, '}')?;
        }
        if self.eat('/') {
            field.len = self.number().filter(|bits| *bits <= field.len)?;
        }
        if self.eat('&') {
            field = masked(field, self.number()?)?;
        }
        (field.len > 0 && field.offset < FARTHEST).then_some(field)
    }

    /// A whole header of unknown length, or one of its fields.
    fn header_and_name(&mut self) -> Option<IpField> {
        let header = match self.word() {
            "ip" => self.ip_or_protocol()?,
            "payload" | "data" => Header::Payload,
            name => match lookup(name, Some(Kind::Protocol), None) {
                Lookup::Value(_, protocol) => Header::Transport(protocol),
                _ => return None,
            },
        };
        match self.word() {
            "" => Some(IpField {
                header,
                offset: 0,
                len: 0,
            }),
            name => named(header, name),
        }
    }

    /// What `ip` begins: that header, or with `proto` and a number that of a protocol.
    fn ip_or_protocol(&mut self) -> Option<Header> {
        let mut ahead = Cursor(self.0);
        if ahead.word() == "proto" && ahead.0.starts_with(|c: char| c.is_ascii_digit()) {
            let protocol = ahead.number().filter(|n| *n < 256)?;
            self.0 = ahead.0;
            return Some(Header::Transport(protocol));
        }
        Some(Header::Ip)
    }

    /// `OFFSET`, `OFFSET:LENGTH` or `FIRST-LAST` of a field, in units of that many bits.
    fn part(&mut self, of: IpField, unit: u32, end: char) -> Option<IpField> {
        let first = self.number()?;
        let count = if self.eat(':') {
            self.number()?
        } else if self.eat('-') {
            self.number()?.checked_add(1)?.checked_sub(first)?
        } else {
            1
        };
        let (offset, len) = (first.checked_mul(unit)?, count.checked_mul(unit)?);
        let fits = of.len == 0 || offset.checked_add(len)? <= of.len;
        (self.eat(end) && fits && offset < FARTHEST && len <= 32).then_some(IpField {
            offset: of.offset + offset,
            len,
            ..of
        })
    }
}

/// The field of this name.
fn named(header: Header, name: &str) -> Option<IpField> {
    let fits = |h: Header| h == header || (header == Header::Ip && h == PORTS);
    let found = NAMED.iter().find(|(h, n, ..)| fits(*h) && *n == name);
    found.map(|(header, _, offset, len)| IpField {
        header: *header,
        offset: *offset,
        len: *len,
    })
}

/// The part of a field that a mask of neighboring bits leaves.
fn masked(field: IpField, mask: u32) -> Option<IpField> {
    let (below, len) = (mask.trailing_zeros(), mask.count_ones());
    let together = mask.checked_shr(below)?.trailing_ones() == len;
    let offset = (field.offset + field.len).checked_sub(below + len)?;
    (together && below + len <= field.len).then_some(IpField {
        offset,
        len,
        ..field
    })
}

impl IpField {
    /// Its value in a packet; nothing if the packet has no such field, or ends in its word.
    pub fn value(&self, packet: &Packet) -> Option<u32> {
        let at = (self.offset / 32 * 4) as usize;
        let word = self.header.bytes(packet)?.get(at..)?.first_chunk()?;
        let below = 31 - (self.offset + self.len - 1) % 32;
        Some((u32::from_be_bytes(*word) >> below) & (u32::MAX >> (32 - self.len)))
    }
}

impl Header {
    fn bytes(self, packet: &Packet) -> Option<&[u8]> {
        let ip = packet.network().filter(|ip| ip.len() >= ipv4::HEADER)?;
        if self == Self::Ip {
            return Some(ip);
        }
        let transport = packet.transport().filter(|_| !is_later_fragment(ip))?;
        match self {
            Self::Transport(protocol) => is_of(ip[9], protocol).then_some(transport),
            _ if ip[9] == ipv4::UDP => transport.get(udp::HEADER..),
            _ if ip[9] == ipv4::TCP => {
                let words = transport.get(..tcp::HEADER)?[12] >> 4;
                transport.get(usize::from(words) * 4..)
            }
            _ => None,
        }
    }
}

fn is_of(protocol: u8, wanted: u32) -> bool {
    match wanted {
        ANY_TRANSPORT => true,
        TCP_OR_UDP => [ipv4::TCP, ipv4::UDP].contains(&protocol),
        one => u32::from(protocol) == one,
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip => f.write_str("ip"),
            Self::Payload => f.write_str("payload"),
            Self::Transport(protocol) => match protocol_name(*protocol) {
                Some(name) => f.write_str(name),
                None => write!(f, "ip proto {protocol}"),
            },
        }
    }
}

impl fmt::Display for IpField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            header,
            offset,
            len,
        } = *self;
        let begins = |(h, _, at, _): &&(Header, &str, u32, u32)| *h == header && *at == offset;
        let there = NAMED.iter().filter(begins);
        let nearest = there.filter(|(.., l)| *l >= len).min_by_key(|(.., l)| *l);
        match nearest {
            Some((_, name, _, whole)) if *whole == len => write!(f, "{header} {name}"),
            Some((_, name, ..)) => write!(f, "{header} {name}/{len}"),
            None if offset % 8 == 0 && len == 8 => write!(f, "{header}[{}]", offset / 8),
            None if offset % 8 == 0 && len % 8 == 0 => {
                write!(f, "{header}[{}:{}]", offset / 8, len / 8)
            }
            None => write!(f, "{header}{{{offset}:{len}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_core::{Environment, Names};

    fn parsed(text: &str) -> Result<IpField, String> {
        let environment = Environment::new();
        let at = ArgContext {
            environment: &environment,
            names: &Names::new(&environment),
            element: "",
        };
        IpField::from_arg(text, at)
    }

    #[test]
    fn fields_are_read_and_shown() {
        let same = [
            "ip src",
            "ip dst/24",
            "tcp dport",
            "gre[0:2]",
            "tcp flags",
            "ip{70:6}",
            "icmp[5]",
        ];
        for text in same {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
        let others = [
            ("ip[8:2] & 0x3f0", "ip{70:6}"),
            ("ip proto 47 [0-1]", "gre[0:2]"),
            ("ip proto 99[3]", "ip proto 99[3]"),
            ("ip off & 0x1fff", "ip fragoff"),
            ("ip sport", "tcpudp sport"),
            ("ip tos/6", "ip dscp"),
            ("tcp seq [1:2]", "tcp[5:2]"),
            ("payload [0:4]", "payload[0:4]"),
        ];
        for (text, shown) in others {
            assert_eq!(parsed(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let wrong = [
            "",
            "ip",
            "src",
            "ip nonsense",
            "ip[",
            "ip[3",
            "ip[3:",
            "ip[3:2] x",
            "ip src/33",
            "ip src/0",
            "ip tos & 0x5",
            "ip tos & 0x100",
            "ip tos & 0",
            "ip[2-1]",
            "ip[2:3]",
            "ip[99999999999]",
            "ip[536870912:1]",
            "ip proto 256[0]",
            "ip tos[1]",
            "ip[0:5]",
            "ip{0:0}",
            "ip[4294967295-4294967295]",
            "ip & 4294967295",
        ];
        for text in wrong {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
