// SPDX-License-Identifier: Apache-2.0
//! Sets the aggregate annotation of packets from a field of their headers.
//!
//! # Synopsis
//! `AggregateIP(FIELD [, INCREMENTAL, UNSHIFT_IP_ADDR])`: FIELD is `ip`, `tcp`, `udp`, `icmp`, another protocol's name, `ip proto
//! N`, `tcpudp`, `transp` (any transport header) or `payload`; then the name of a field (`src`, `ttl`, `dport` ...), its place in
//! bytes, `[OFFSET:LENGTH]`, `[FIRST-LAST]` or `[OFFSET]`, or the same in bits with `{}`; then, if wanted, `/BITS` for the first bits
//! or `& MASK` for some in the middle. It must lie in a word of 4 bytes. With INCREMENTAL (default false) the value is put behind the
//! bits of the aggregate there was. With UNSHIFT_IP_ADDR (default false) the first bits of an address stay where they are in
//! it: `ip src/8` of 18.26.4.44 is 18.0.0.0, not 18.
//! # Ports
//! 1/1-2, agnostic. Packets without the field, and without a marked IP header, leave by output 1 (push), or are dropped.
//! # Handlers
//! * `field` (read): FIELD as it was understood. `header` (read): its header. `bit_offset`, `bit_length` (read): its place there.
//! # Differences from Click
//! `header` is `ip` where Click's is empty; places in brackets may follow a name without a blank.
//! # Example
//! `FromDump(in.pcap, STOP true) -> CheckIPHeader(14) -> AggregateIP(ip dst/24) -> AggregateCounter -> Discard;`
use click_core::anno::AGGREGATE;

use crate::ip_field::{Header, IpField};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AggregateIP",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        mandatory("FIELD"),
        keyword("INCREMENTAL"),
        keyword("UNSHIFT_IP_ADDR"),
    ],
    handlers: &[
        read("field", |me: &mut AggregateIP, _| text(me.field)),
        read("header", |me, _| text(me.field.header)),
        read("bit_offset", |me, _| text(me.field.offset)),
        read("bit_length", |me, _| text(me.field.len)),
    ],
    build: |a| {
        let field = a.need::<IpField>("FIELD");
        let (incremental, unshift) = (a.or("INCREMENTAL", false), a.or("UNSHIFT_IP_ADDR", false));
        let (field, incremental) = (field?, incremental?);
        if incremental && field.len == 32 {
            a.error(
                "INCREMENTAL",
                "a field of 32 bits leaves nothing of the aggregate",
            );
        }
        let address = field.header == Header::Ip && ADDRESSES.contains(&field.offset);
        let behind = 31 - (field.offset + field.len - 1) % 32;
        Some(Box::new(AggregateIP {
            field,
            incremental,
            shift: if unshift? && address { behind } else { 0 },
        }))
    },
    ..Class::DEFAULT
};

/// Where addresses are in an IP header, in bits.
const ADDRESSES: core::ops::Range<u32> = 96..160;

struct AggregateIP {
    field: IpField,
    incremental: bool,
    /// By how much the value is shifted.
    shift: u32,
}

impl InPlace for AggregateIP {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(value) = self.field.value(packet) else {
            return 1;
        };
        let anno = packet.anno_mut();
        let before = match self.incremental {
            true => anno.u32(AGGREGATE) << self.field.len,
            false => 0,
        };
        anno.set_u32(AGGREGATE, before.wrapping_add(value << self.shift));
        0
    }
}

impl Element for AggregateIP {
    in_place!(plain);
}
