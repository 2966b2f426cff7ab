// SPDX-License-Identifier: Apache-2.0
//! Prints IP packets as tcpdump does, a line each.
//!
//! # Synopsis
//! `IPPrint([LABEL, CONTENTS, PAYLOAD, MAXLENGTH, ID, TTL, TOS, LENGTH, TIMESTAMP, AGGREGATE, PAINT, SWAP, ACTIVE])`:
//! after LABEL and, unless TIMESTAMP is false, the time. ID, TTL, TOS, LENGTH, AGGREGATE and PAINT (default false) add
//! what they say. At most MAXLENGTH bytes (default 1500, negative: all) of the packet are added as CONTENTS, or of its
//! payload as PAYLOAD: NONE (default), HEX or ASCII. SWAP (default true) shows identifiers and sequence numbers of
//! pings with their bytes swapped. Nothing is printed unless ACTIVE (default true).
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are not printed.
//! # Handlers
//! * `active` (read, write): ACTIVE.
//! # Differences from Click
//! OUTFILE, CHANNEL and NBYTES are missing. If a TCP packet ends before its header gives the
//! header's length, PAYLOAD shows all of it. An ARP packet of another protocol is printed.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPPrint(in) -> Discard;`
use core::fmt::Write as _;

use click_core::anno;
use click_wire::ipv4::{self, View as Header};
use click_wire::udp;

use crate::ip_packet::header;
use crate::prelude::*;
use crate::print_line::{Contents, ascii, hex, stamp};
use crate::transport_line::Subject;

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
    handlers: &[read_write(
        "active",
        |me: &mut IPPrint, _| text(me.active),
        set!(|me, active, _| me.active = active),
    )],
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
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if self.active && packet.network_offset().is_some() {
            self.print(ctx, packet);
        }
        0
    }
}

impl Element for IPPrint {
    in_place!();
}
