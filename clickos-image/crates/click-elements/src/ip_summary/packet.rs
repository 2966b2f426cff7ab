// SPDX-License-Identifier: Apache-2.0
//! The fields of a packet as text; `-` where a field does not apply.
use click_core::anno;
use click_wire::icmp;

use super::binary::{Form, Value, form, put};
use super::digest;
use super::field::{FLAGS, Field, PROTOCOLS};
use super::options;
use crate::prelude::*;
use crate::standard::time::Time;

/// The parts of an IP packet that are there.
struct Parts<'a> {
    packet: &'a Packet,
    /// From the IP header to the end of the data.
    ip: Option<&'a [u8]>,
    header_len: usize,
    total_len: usize,
}

/// What a column of a line has.
enum Shown {
    Number(u64),
    Address(u32),
    /// Nanoseconds since the epoch.
    Time(u64),
    Word(&'static str),
    Letter(char),
    Text(String),
}

use Shown::{Letter, Number, Word};

/// Appends the packet's line to others: `fields` with blanks between them.
pub fn show(packet: &Packet, fields: &[Field], line: &mut String) {
    let parts = Parts::of(packet);
    for (n, field) in fields.iter().enumerate() {
        if n > 0 {
            line.push(' ');
        }
        match parts.field(*field) {
            Some(shown) => shown.append_to(line),
            None => line.push('-'),
        }
    }
}

impl Shown {
    #[inline(never)]
    fn append_to(self, line: &mut String) {
        match self {
            Number(number) => decimal(line, number, 1),
            Self::Address(address) => {
                for (n, byte) in address.to_be_bytes().into_iter().enumerate() {
                    if n > 0 {
                        line.push('.');
                    }
                    decimal(line, byte.into(), 1);
                }
            }
            Self::Time(ns) => time(line, ns),
            Word(word) => line.push_str(word),
            Letter(letter) => line.push(letter),
            Self::Text(text) => line.push_str(&text),
        }
    }
}

/// Appends a number of at least that many digits. Most of a record are numbers, and the formatter of the standard
/// library takes several times as long.
#[inline(never)]
fn decimal(line: &mut String, mut number: u64, least: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 0 || digits.len() - at < least {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    line.push_str(core::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// The packet's binary record.
pub fn store(packet: &Packet, fields: &[Field]) -> Vec<u8> {
    let parts = Parts::of(packet);
    let mut record = Vec::new();
    for field in fields {
        let octets = parts.octets(*field);
        let value = match form(*field) {
            Form::Octets(_) | Form::Options => octets.as_deref().map(Value::Octets),
            Form::Time => Some(Value::Time(parts.time(*field))),
            _ => parts.number(*field).map(Value::Number),
        };
        put(*field, value, &mut record);
    }
    record
}

fn be16(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

fn be32(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

fn ether(b: &[u8], at: usize) -> Option<Shown> {
    let bytes: [u8; 6] = b.get(at..at + 6)?.try_into().ok()?;
    Some(Shown::Text(EtherAddr(bytes).to_string()))
}

impl<'a> Parts<'a> {
    fn of(packet: &'a Packet) -> Self {
        let ip = packet
            .network()
            .filter(|b| b.first().is_some_and(|v| v >> 4 == 4));
        let header_len = ip.map_or(0, |b| usize::from(b[0] & 15) * 4);
        let total_len = ip.and_then(|b| be16(b, 2)).map_or(0, usize::from);
        let whole = (20..=total_len).contains(&header_len);
        Self {
            packet,
            ip: ip.filter(|b| whole && b.len() >= 20),
            header_len,
            total_len,
        }
    }

    fn fragment(&self) -> Option<u16> {
        be16(self.ip?, 6)
    }

    /// After the IP header, up to the end of the IP packet; nothing in later fragments.
    fn transport(&self) -> Option<&'a [u8]> {
        let first = self.fragment()? & 0x1fff == 0;
        self.data().filter(|_| first)
    }

    fn data(&self) -> Option<&'a [u8]> {
        let ip = self.ip?;
        ip.get(self.header_len..self.total_len.min(ip.len()))
    }

    /// The stored bytes after all headers; `None` if the packet has a payload and none of its
    /// bytes are stored. Without an IP header it is the whole packet.
    fn payload(&self) -> Option<&'a [u8]> {
        let Some(ip) = self.ip else {
            return Some(self.packet.data());
        };
        let headers = self.headers()?;
        if headers == self.total_len {
            return Some(&[]);
        }
        let payload = ip.get(headers..self.total_len.min(ip.len()))?;
        Some(payload).filter(|payload| !payload.is_empty())
    }

    /// How long the payload is, or was on its way.
    fn payload_len(&self) -> Option<u64> {
        match self.ip {
            Some(_) => Some(self.total_len.saturating_sub(self.headers()?) as u64),
            None => Some(self.whole_len()),
        }
    }

    fn of_protocol(&self, protocols: &[u8]) -> Option<&'a [u8]> {
        let protocol = self.ip?[9];
        self.transport().filter(|_| protocols.contains(&protocol))
    }

    /// A TCP header, unless it says that it is too short.
    fn tcp(&self) -> Option<&'a [u8]> {
        let tcp = self.of_protocol(&[6])?;
        Some(tcp).filter(|tcp| tcp.get(12).is_none_or(|words| words >> 4 >= 5))
    }

    fn icmp(&self) -> Option<&'a [u8]> {
        self.of_protocol(&[1])
    }

    /// Octets of headers in front of the payload.
    fn headers(&self) -> Option<usize> {
        let transport = match (self.transport(), self.ip?[9]) {
            (Some(t), 6) => t
                .get(12)
                .map_or(20, |words| usize::from(words >> 4) * 4)
                .max(20),
            (Some(_), 17) => 8,
            _ => 0,
        };
        Some(self.header_len + transport)
    }

    /// Octets the packet had on its way.
    fn whole_len(&self) -> u64 {
        self.packet.len() as u64 + u64::from(self.packet.anno().u32(anno::EXTRA_LENGTH))
    }

    /// The time a field is about, in nanoseconds.
    fn time(&self, field: Field) -> u64 {
        match field {
            Field::FirstTimestamp => Time::first_of(self.packet).0 as u64,
            _ => self.packet.timestamp_ns(),
        }
    }

    /// A field that is a number.
    fn number(&self, field: Field) -> Option<u64> {
        Some(match field {
            Field::IpProto => u64::from(self.ip?[9]),
            Field::IpEcn => u64::from(self.ip?[1] & 3),
            Field::IpFrag => match self.field(field)? {
                Letter(letter) => u64::from(letter),
                _ => return None,
            },
            Field::IpFragoff => u64::from(self.fragment()?),
            Field::TcpFlags => u64::from(be16(self.tcp()?, 12)? & 0x1ff),
            Field::EthType => u64::from(be16(self.packet.mac()?, 12)?),
            Field::Direction => u64::from(self.packet.anno().u8(anno::PAINT)),
            Field::IcmpTypeName => u64::from(*self.icmp()?.first()?),
            Field::IcmpCodeName => u64::from(*self.icmp()?.get(1)?),
            _ => match self.field(field)? {
                Number(number) => number,
                _ => return None,
            },
        })
    }

    /// A field that is some octets of the packet.
    fn octets(&self, field: Field) -> Option<Vec<u8>> {
        let only = |only| Some(options::pick_tcp(self.tcp_options()?, only));
        match field {
            Field::IpSrc => Some(self.ip?.get(12..16)?.to_vec()),
            Field::IpDst => Some(self.ip?.get(16..20)?.to_vec()),
            Field::EthDst => Some(self.packet.mac()?.get(..6)?.to_vec()),
            Field::EthSrc => Some(self.packet.mac()?.get(6..12)?.to_vec()),
            Field::PayloadMd5 | Field::PayloadMd5Hex => Some(digest::md5(self.payload()?).to_vec()),
            Field::IpOpt => Some(self.ip?.get(20..self.header_len)?.to_vec()),
            Field::TcpOpt => only(options::Only::All),
            Field::TcpNtopt => only(options::Only::NotTimes),
            Field::TcpSack => only(options::Only::Sack),
            _ => None,
        }
    }

    fn tcp_options(&self) -> Option<&'a [u8]> {
        let tcp = self.tcp()?;
        let end = usize::from(*tcp.get(12)? >> 4) * 4;
        tcp.get(20..end)
    }

    fn field(&self, field: Field) -> Option<Shown> {
        let ns = self.time(field);
        let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let anno = self.packet.anno();
        Some(match field {
            Field::Timestamp | Field::FirstTimestamp => Shown::Time(ns),
            Field::TsSec => Number(seconds),
            Field::TsUsec => Number(fraction / 1000),
            Field::TsUsec1 => Number(ns / 1000),
            Field::Count => Number(u64::from(anno.u32(EXTRA_PACKETS)) + 1),
            Field::Direction => match anno.u8(anno::PAINT) {
                0 => Letter('>'),
                1 => Letter('<'),
                other => Number(other.into()),
            },
            Field::Link => Number(anno.u8(anno::PAINT).into()),
            Field::Aggregate => Number(anno.u32(anno::AGGREGATE).into()),
            Field::EthDst => ether(self.packet.mac()?, 0)?,
            Field::EthSrc => ether(self.packet.mac()?, 6)?,
            Field::EthType => Shown::Text(format!("{:04x}", be16(self.packet.mac()?, 12)?)),
            Field::WireLen => Number(self.packet.len() as u64),
            Field::IpLen if self.ip.is_none() => Number(self.whole_len()),
            _ => {
                let headers = self.of_ip(field).or_else(|| self.of_transport(field));
                return headers.or_else(|| self.of_payload(field));
            }
        })
    }

    fn of_ip(&self, field: Field) -> Option<Shown> {
        let ip = self.ip?;
        Some(match field {
            Field::IpSrc => Shown::Address(be32(ip, 12)?),
            Field::IpDst => Shown::Address(be32(ip, 16)?),
            Field::IpProto => {
                let letter = PROTOCOLS.iter().find(|(_, p)| *p == ip[9]);
                letter.map_or(Number(ip[9].into()), |(letter, _)| Letter(*letter))
            }
            Field::IpLen => Number(self.total_len as u64),
            Field::IpHl => Number(self.header_len as u64),
            Field::IpId => Number(be16(ip, 4)?.into()),
            Field::IpTos => Number(ip[1].into()),
            Field::IpDscp => Number((ip[1] >> 2).into()),
            Field::IpEcn => Word(["no", "ect1", "ect2", "ce"][usize::from(ip[1] & 3)]),
            Field::IpTtl => Number(ip[8].into()),
            Field::IpSum => Number(be16(ip, 10)?.into()),
            Field::IpFrag => Letter(match self.fragment()? {
                f if f & 0x1fff > 0 => 'f',
                f if f & 0x2000 > 0 => 'F',
                f if f & 0x4000 > 0 => '!',
                _ => '.',
            }),
            Field::IpFragoff => {
                let f = self.fragment()?;
                let more = if f & 0x2000 > 0 { "+" } else { "" };
                let whole = if f & 0x4000 > 0 { "!" } else { "" };
                Shown::Text(format!("{}{more}{whole}", (f & 0x1fff) * 8))
            }
            Field::IpOpt => Shown::Text(options::show_ip(ip.get(20..self.header_len)?)),
            Field::IpCaptureLen => Number(self.total_len.min(ip.len()) as u64),
            _ => return None,
        })
    }

    fn of_payload(&self, field: Field) -> Option<Shown> {
        Some(match field {
            Field::PayloadLen => Number(self.payload_len()?),
            Field::Payload => Shown::Text(quoted(self.payload()?)),
            Field::PayloadMd5 => Shown::Text(digest::letters(digest::md5(self.payload()?))),
            Field::PayloadMd5Hex => Shown::Text(digest::hex(digest::md5(self.payload()?))),
            _ => return None,
        })
    }

    fn of_transport(&self, field: Field) -> Option<Shown> {
        let ports = || self.of_protocol(&[6, 17]);
        Some(match field {
            Field::Sport => Number(be16(ports()?, 0)?.into()),
            Field::Dport => Number(be16(ports()?, 2)?.into()),
            Field::TcpSeq => Number(be32(self.tcp()?, 4)?.into()),
            Field::TcpAck => Number(be32(self.tcp()?, 8)?.into()),
            Field::TcpOff => Number(u64::from(*self.tcp()?.get(12)? >> 4) * 4),
            Field::TcpFlags => Shown::Text(flags(be16(self.tcp()?, 12)? & 0x1ff)),
            Field::TcpWindow => Number(be16(self.tcp()?, 14)?.into()),
            Field::TcpUrp => Number(be16(self.tcp()?, 18)?.into()),
            Field::TcpOpt => {
                Shown::Text(options::show_tcp(self.tcp_options()?, options::Only::All))
            }
            Field::TcpNtopt => Shown::Text(options::show_tcp(
                self.tcp_options()?,
                options::Only::NotTimes,
            )),
            Field::TcpSack => {
                Shown::Text(options::show_tcp(self.tcp_options()?, options::Only::Sack))
            }
            Field::UdpLen => Number(be16(self.of_protocol(&[17])?, 4)?.into()),
            Field::IcmpType => Number((*self.icmp()?.first()?).into()),
            Field::IcmpCode => Number((*self.icmp()?.get(1)?).into()),
            Field::IcmpTypeName => {
                let kind = *self.icmp()?.first()?;
                icmp::type_name(kind).map_or(Number(kind.into()), Word)
            }
            Field::IcmpCodeName => {
                let message = self.icmp()?;
                let (kind, code) = (*message.first()?, *message.get(1)?);
                icmp::code_name(kind, code).map_or(Number(code.into()), Word)
            }
            Field::IcmpFlowid => Number(
                be16(self.icmp()?, 4)
                    .filter(|_| self.icmp_has_flow())?
                    .into(),
            ),
            Field::IcmpSeq => Number(
                be16(self.icmp()?, 6)
                    .filter(|_| self.icmp_has_flow())?
                    .into(),
            ),
            Field::IcmpNextmtu => {
                let message = self.icmp()?;
                let needs_fragments = message.get(..2)? == [3, 4];
                Number(be16(message, 6).filter(|_| needs_fragments)?.into())
            }
            _ => return None,
        })
    }

    /// True if the ICMP message has an identifier and a sequence number.
    fn icmp_has_flow(&self) -> bool {
        let kind = self.icmp().and_then(|m| m.first());
        kind.is_some_and(|k| matches!(k, 0 | 8 | 13 | 14 | 15 | 16 | 17 | 18))
    }
}

/// Offset of the annotation for packets a packet stands for besides itself.
pub const EXTRA_PACKETS: usize = 24;

/// Appends a time with microseconds; before the epoch it is in two's complement.
fn time(line: &mut String, ns: u64) {
    let ns = match ns as i64 {
        signed @ ..0 => {
            line.push('-');
            signed.unsigned_abs()
        }
        _ => ns,
    };
    decimal(line, ns / 1_000_000_000, 1);
    line.push('.');
    decimal(line, ns % 1_000_000_000 / 1000, 6);
}

fn flags(bits: u16) -> String {
    let set = FLAGS
        .chars()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1);
    let letters: String = set.map(|(_, letter)| letter).collect();
    if letters.is_empty() {
        ".".to_string()
    } else {
        letters
    }
}

/// Bytes as a string in double quotes.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            32..=126 => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}
