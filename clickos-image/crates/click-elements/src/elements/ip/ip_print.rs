// SPDX-License-Identifier: Apache-2.0
//! Prints IP packets as tcpdump does, a line each.
//!
//! # Synopsis
//! `IPPrint([LABEL, CONTENTS, PAYLOAD, MAXLENGTH, ID, TTL, TOS, LENGTH, TIMESTAMP, AGGREGATE, PAINT, SWAP, ACTIVE])`:
//! behind LABEL and, unless TIMESTAMP is false, the time. ID, TTL, TOS, LENGTH, AGGREGATE and PAINT (default false) add
//! what they say. At most MAXLENGTH bytes (default 1500, negative: all) of the packet are added as CONTENTS, or of its
//! payload as PAYLOAD: NONE (default), HEX or ASCII. SWAP (default true) shows identifiers and sequence numbers of
//! pings with their bytes swapped. Nothing is printed unless ACTIVE (default true).
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are not printed.
//! # Handlers
//! * `active` (read, write): ACTIVE.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPPrint(in) -> Discard;`
use core::fmt::Write as _;

use click_core::anno;
use click_wire::ipv4::{self, View as Header};
use click_wire::{icmp, udp};

use crate::ip_packet::header;
use crate::prelude::*;
use crate::print_line::{Contents, ascii, hex, stamp};

pub static ELEMENT: Class = Class {
    name: "IPPrint",
    args: &[
        optional("LABEL"),
        keyword("CONTENTS"),
        keyword("PAYLOAD"),
        keyword("MAXLENGTH"),
        keyword("ID"),
        keyword("TTL"),
        keyword("TOS"),
        keyword("LENGTH"),
        keyword("TIMESTAMP"),
        keyword("AGGREGATE"),
        keyword("PAINT"),
        keyword("SWAP"),
        keyword("ACTIVE"),
    ],
    handlers: &[read_write("active")],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (label, max) = (a.or("LABEL", String::new()), a.or("MAXLENGTH", 1500i64));
    let contents = Contents::argument(a, "CONTENTS", "NONE");
    let payload = Contents::argument(a, "PAYLOAD", "NONE");
    let mut flag = |name, default| a.or(name, default);
    let (id, ttl, tos) = (flag("ID", false), flag("TTL", false), flag("TOS", false));
    let (length, timestamp) = (flag("LENGTH", false), flag("TIMESTAMP", true));
    let (aggregate, paint) = (flag("AGGREGATE", false), flag("PAINT", false));
    let (swap, active) = (flag("SWAP", true), flag("ACTIVE", true));
    let (contents, payload) = (contents?, payload?);
    if contents != Contents::None && payload != Contents::None {
        a.error(
            "PAYLOAD",
            "at most one of PAYLOAD and CONTENTS can be shown",
        );
    }
    Some(Box::new(IPPrint {
        label: label?,
        contents,
        payload,
        max: usize::try_from(max?).unwrap_or(usize::MAX),
        id: id?,
        ttl: ttl?,
        tos: tos?,
        length: length?,
        timestamp: timestamp?,
        aggregate: aggregate?,
        paint: paint?,
        swap: swap?,
        active: active?,
    }))
}

#[expect(clippy::struct_excessive_bools, reason = "the arguments")]
struct IPPrint {
    label: String,
    contents: Contents,
    payload: Contents,
    max: usize,
    id: bool,
    ttl: bool,
    tos: bool,
    length: bool,
    timestamp: bool,
    aggregate: bool,
    paint: bool,
    swap: bool,
    active: bool,
}

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from(u16_at(b, at)) << 16 | u32::from(u16_at(b, at + 2))
}

/// What protocol elements of the line are written from.
struct Subject<'a> {
    packet: &'a Packet,
    header: Header<&'a [u8]>,
    /// The transport header and what follows, up to the packet's total length.
    transport: &'a [u8],
}

impl<'a> Subject<'a> {
    fn of(packet: &'a Packet) -> Option<Self> {
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

    fn payload_len(&self) -> usize {
        self.header
            .total_len()
            .saturating_sub(self.header.header_len())
    }

    fn addresses(&self) -> String {
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

    fn tcp(&self) -> String {
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

    fn udp(&self) -> String {
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

    fn icmp(&self, swap: bool) -> String {
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

/// What could not be reached; whether the message is whole.
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

impl IPPrint {
    /// Label, time and annotations.
    fn start(&self, packet: &Packet) -> String {
        let mut line = String::new();
        if !self.label.is_empty() {
            let _ = write!(line, "{}: ", self.label);
        }
        if self.timestamp {
            stamp(&mut line, packet.timestamp_ns());
            line.push_str(": ");
        }
        let (aggregate, paint) = (
            packet.anno().u32(anno::AGGREGATE),
            packet.anno().u8(anno::PAINT),
        );
        let _ = match (self.aggregate, self.paint) {
            (true, true) => write!(line, "#{aggregate}.{paint}: "),
            (true, false) => write!(line, "#{aggregate}: "),
            (false, true) => write!(line, "paint {paint}: "),
            (false, false) => Ok(()),
        };
        line
    }

    fn line(&self, packet: &Packet) -> String {
        let mut line = self.start(packet);
        let Some(subject) = Subject::of(packet) else {
            return line + "truncated-ip";
        };
        let header = &subject.header;
        let fields = [
            (self.id, "id", usize::from(header.id())),
            (self.ttl, "ttl", header.ttl().into()),
            (self.tos, "tos", header.tos().into()),
            (self.length, "length", header.total_len()),
        ];
        for (_, name, value) in fields.iter().filter(|(wanted, _, _)| *wanted) {
            let _ = write!(line, "{name} {value} ");
        }
        line += &match header.protocol() {
            ipv4::TCP => subject.tcp(),
            ipv4::UDP => subject.udp(),
            ipv4::ICMP => subject.icmp(self.swap),
            other => format!("{}: ip-proto-{other}", subject.addresses()),
        };
        let fragment = header.fragment();
        if fragment & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET) != 0 {
            let offset = usize::from(fragment & ipv4::OFFSET) * 8;
            let more = if fragment & ipv4::MORE_FRAGMENTS != 0 {
                "+"
            } else {
                ""
            };
            let (id, length) = (header.id(), subject.payload_len());
            let _ = write!(line, " (frag {id}:{length}@{offset}{more})");
        }
        line
    }

    /// The bytes to show, and how.
    fn shown<'a>(&self, packet: &'a Packet) -> (Contents, &'a [u8]) {
        if self.payload == Contents::None {
            return (self.contents, packet.data());
        }
        let transport = packet.transport().unwrap_or_default();
        let protocol = header(packet)
            .filter(Header::is_first)
            .map(|h| h.protocol());
        let skip = match protocol {
            Some(ipv4::TCP) => transport.get(12).map_or(0, |b| usize::from(b >> 4) * 4),
            Some(ipv4::UDP) => udp::HEADER,
            _ => 0,
        };
        (self.payload, transport.get(skip..).unwrap_or_default())
    }

    fn print(&self, ctx: &mut Context<'_>, packet: &Packet) {
        ctx.print(&self.line(packet));
        let (how, bytes) = match header(packet) {
            Some(_) => self.shown(packet),
            None => return,
        };
        let bytes = &bytes[..bytes.len().min(self.max)];
        let width = if how == Contents::Hex { 24 } else { 48 };
        for piece in bytes.chunks(width) {
            let mut line = "  ".to_string();
            match how {
                Contents::None => return,
                Contents::Hex => hex(&mut line, piece, 4),
                Contents::Ascii => ascii(&mut line, piece),
            }
            ctx.print(&line);
        }
    }
}

impl InPlace for IPPrint {
    fn way(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if self.active && packet.network_offset().is_some() {
            self.print(ctx, packet);
        }
        0
    }
}

impl Element for IPPrint {
    in_place!();

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "active" => text(self.active),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "active" => on_value(view, value, |me: &mut Self, active, _| me.active = active),
            _ => undeclared(handler),
        }
    }
}
