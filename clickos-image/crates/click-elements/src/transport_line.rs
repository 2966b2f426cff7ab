// SPDX-License-Identifier: Apache-2.0
//! What the line about an IP packet says of its transport protocol.
use core::fmt::Write as _;

use click_wire::ipv4::{self, View as Header};
use click_wire::{icmp, udp};

use crate::ip_packet::header;
use crate::prelude::*;

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from(u16_at(b, at)) << 16 | u32::from(u16_at(b, at + 2))
}

/// The headers from which the line is written.
pub struct Subject<'a> {
    packet: &'a Packet,
    pub header: Header<&'a [u8]>,
    /// The transport header and what follows, up to the packet's total length.
    transport: &'a [u8],
}

impl<'a> Subject<'a> {
    /// The line of a packet with a header.
    pub fn of(packet: &'a Packet) -> Option<Self> {
        let header = header(packet)?;
        let most = header.total_len().saturating_sub(header.header_len());
        let transport = packet.transport().unwrap_or_default();
        let transport = &transport[..transport.len().min(most)];
        Some(Self {
            packet,
            header,
            transport,
        })
    }

    /// Bytes after the header, by its total length.
    pub fn payload_len(&self) -> usize {
        self.header
            .total_len()
            .saturating_sub(self.header.header_len())
    }

    /// Where it is from and to.
    pub fn addresses(&self) -> String {
        format!("{} > {}", self.header.source(), self.header.destination())
    }

    /// Addresses with ports; where there are none, addresses and what is there of the protocol.
    fn ends(&self, protocol: &str) -> Result<String, String> {
        let t = self.transport;
        if !self.header.is_first() {
            return Err(format!("{}: {protocol}", self.addresses()));
        }
        if t.len() < 4 {
            return Err(format!("{}: truncated-{protocol}", self.addresses()));
        }
        let (from, to) = (self.header.source(), self.header.destination());
        Ok(format!("{from}.{} > {to}.{}: ", u16_at(t, 0), u16_at(t, 2)))
    }

    /// The text of a TCP packet.
    pub fn tcp(&self) -> String {
        let mut line = match self.ends("tcp") {
            Ok(line) => line,
            Err(short) => return short,
        };
        let t = self.transport;
        if t.len() < 14 {
            return line + "truncated-tcp";
        }
        let flags = t[13];
        let shown = [(2, 'S'), (1, 'F'), (4, 'R'), (8, 'P')];
        let set = shown.iter().filter(|(bit, _)| flags & bit != 0);
        line.extend(set.map(|(_, letter)| *letter));
        if flags & 15 == 0 {
            line.push('.');
        }
        let header_len = u32::from(t[12] >> 4) * 4;
        let mut length = u32::try_from(self.payload_len())
            .unwrap_or(0)
            .wrapping_sub(header_len);
        length = length.wrapping_add(u32::from(flags & 1) + u32::from(flags >> 1 & 1));
        let (first, signed) = (u32_at(t, 4), i32::from_ne_bytes(length.to_ne_bytes()));
        let (last, total) = (first.wrapping_add(length), self.header.total_len());
        let _ = write!(
            line,
            " {first}:{last}({signed},{},{total})",
            self.packet.len()
        );
        if flags & 16 != 0 {
            let _ = write!(line, " ack {}", u32_at(t, 8));
        }
        let _ = match t.get(14..16) {
            Some(window) => write!(line, " win {}", u16_at(window, 0)),
            None => write!(line, "truncated-tcp"),
        };
        line
    }

    /// The text of a UDP packet.
    pub fn udp(&self) -> String {
        let mut line = match self.ends("udp") {
            Ok(line) => line,
            Err(short) => return short,
        };
        let _ = match self.transport.get(4..udp::HEADER) {
            Some(rest) => write!(line, "udp {}", u16_at(rest, 0)),
            None => write!(line, "truncated-udp"),
        };
        line
    }

    /// What is said of an ICMP message; without `swap` the bytes of pings' numbers change places, as in Click.
    pub fn icmp(&self, swap: bool) -> String {
        let mut line = self.addresses() + ": ";
        let t = self.transport;
        if !self.header.is_first() {
            return line + "icmp";
        }
        if t.len() < 2 {
            return line + "truncated-icmp";
        }
        let whole = match t[0] {
            0 | 8 => echo(&mut line, t, swap),
            3 => unreachable(&mut line, t),
            _ => {
                other_icmp(&mut line, t[0], t[1]);
                true
            }
        };
        if !whole {
            line.push_str("truncated-icmp");
        }
        line
    }
}

/// A ping or its answer; whether it is whole.
fn echo(line: &mut String, t: &[u8], swap: bool) -> bool {
    line.push_str(if t[0] == 0 {
        "icmp echo-reply "
    } else {
        "icmp echo "
    });
    if t.len() < icmp::HEADER {
        return false;
    }
    let number = |at| match swap {
        true => u16_at(t, at),
        false => u16_at(t, at).swap_bytes(),
    };
    let _ = write!(line, "({}, {})", number(4), number(6));
    true
}

/// The unreachable thing; true if the message is whole.
fn unreachable(line: &mut String, t: &[u8]) -> bool {
    let code = icmp::code_name(t[0], t[1]).map_or_else(|| format!("code {}", t[1]), String::from);
    let quoted = t.get(icmp::HEADER..).unwrap_or_default();
    if quoted.len() < ipv4::HEADER {
        let _ = write!(line, "icmp unreachable {code} ");
        return false;
    }
    let header = Header::new_unchecked(quoted);
    let _ = write!(line, "icmp {} unreachable {code}", header.destination());
    match t[1] {
        2 => {
            let _ = write!(line, " {}", protocol_name(header.protocol(), ""));
        }
        3 => {
            let _ = write!(line, " {}", protocol_name(header.protocol(), "protocol "));
            let Some(ports) = quoted.get(header.header_len()..).filter(|p| p.len() >= 4) else {
                return false;
            };
            let _ = write!(line, "/{}", u16_at(ports, 2));
        }
        4 if u16_at(t, 6) != 0 => {
            let _ = write!(line, " (mtu {})", u16_at(t, 6));
        }
        _ => {}
    }
    true
}

fn protocol_name(protocol: u8, before_number: &str) -> String {
    match protocol {
        ipv4::ICMP => "icmp".into(),
        2 => "igmp".into(),
        4 => "ipip".into(),
        ipv4::TCP => "tcp".into(),
        ipv4::UDP => "udp".into(),
        33 => "dccp".into(),
        47 => "gre".into(),
        132 => "sctp".into(),
        number => format!("{before_number}{number}"),
    }
}

fn other_icmp(line: &mut String, kind: u8, code: u8) {
    line.push_str("icmp ");
    let _ = match icmp::type_name(kind) {
        Some(name) => write!(line, "{name}"),
        None => write!(line, "type {kind}"),
    };
    let _ = match icmp::code_name(kind, code) {
        Some(name) => write!(line, " {name}"),
        None if code != 0 => write!(line, " code {code}"),
        None => Ok(()),
    };
}
