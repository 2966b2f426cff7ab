// SPDX-License-Identifier: Apache-2.0
//! Puts IP headers in front of packets.
//!
//! # Synopsis
//! `IPEncap(PROTO, SRC, DST [, TOS, TTL, DSCP, ECT, CE, DF])`: PROTO is a number or a name; DST may be `DST_ANNO`, the
//! destination annotation. TTL is 250 unless given. Type of service 0, or TOS, or made of DSCP (0 to 63), ECT (`true`
//! or `1` for ECT(1), `2` for ECT(0)) and CE; TOS excludes the others, ECT excludes CE. DF (default false) forbids
//! fragments. Identifications count up from 0. Header and destination annotations are set.
//! # Ports
//! 1/1, agnostic. Packets too long for a header are dropped.
//! # Handlers
//! * `src`, `dst` (read, write): SRC and DST.
//! # Example
//! `... -> IPEncap(ipip, 10.0.0.1, 10.0.0.2, DF true) -> arp;`
use click_wire::ipv4;

use crate::ip_packet::{Destination, encapsulate};
use crate::numbers::Protocol;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPEncap",
    args: &[
        mandatory("PROTO"),
        mandatory("SRC"),
        mandatory("DST"),
        keyword("TOS"),
        keyword("TTL"),
        keyword("DSCP"),
        keyword("ECT"),
        keyword("CE"),
        keyword("DF"),
    ],
    handlers: &[
        read_write(
            "src",
            |me: &mut IPEncap, _| text(me.header.source),
            set!(|me, source, _| {
                me.header.source = source;
            }),
        ),
        read_write(
            "dst",
            |me, _| text(me.destination),
            set!(|me, to, _| me.destination = to),
        ),
    ],
    build,
    live: true,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (protocol, source) = (a.need::<Protocol>("PROTO"), a.need("SRC"));
    let (destination, ttl) = (a.need("DST"), a.or("TTL", 250u8));
    let (tos, df) = (type_of_service(a), a.or("DF", false));
    let source: Ipv4Addr = source?;
    Some(Box::new(IPEncap {
        header: ipv4::Repr {
            tos: tos?,
            id: 0,
            fragment: if df? { ipv4::DONT_FRAGMENT } else { 0 },
            ttl: ttl?,
            protocol: protocol?.0,
            source,
            destination: source,
            payload_len: 0,
        },
        destination: destination?,
    }))
}

fn type_of_service(a: &mut Args<'_>) -> Option<u8> {
    let (tos, dscp) = (a.opt::<u8>("TOS"), a.opt::<u8>("DSCP"));
    let (ect, ce) = (a.or("ECT", "false".to_string()), a.or("CE", false));
    let (tos, dscp, ce) = (tos?, dscp?, ce?);
    let ect = match ect?.as_str() {
        "2" => 2,
        word => u8::from(a.parse::<bool>("ECT", word)?),
    };
    let others = dscp.is_some() || ect != 0 || ce;
    if tos.is_some() && others {
        a.error("TOS", "excludes DSCP, ECT and CE");
    }
    if ect != 0 && ce {
        a.error("ECT", "excludes CE");
    }
    if let Some(dscp) = dscp.filter(|d| *d > 63) {
        a.error("DSCP", format!("{dscp} is out of range, the most is 63"));
        return None;
    }
    let congestion = if ce { 3 } else { ect };
    Some(tos.unwrap_or(dscp.unwrap_or(0) << 2 | congestion))
}

struct IPEncap {
    header: ipv4::Repr,
    destination: Destination,
}

impl InPlace for IPEncap {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let mut header = self.header;
        header.destination = self.destination.of(packet);
        if !encapsulate(packet, header) {
            return DROPPED;
        }
        self.header.id = self.header.id.wrapping_add(1);
        0
    }
}

impl Element for IPEncap {
    in_place!(plain);

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.header.id = old.header.id;
        }
    }
}
