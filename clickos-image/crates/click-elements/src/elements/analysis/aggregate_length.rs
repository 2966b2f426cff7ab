// SPDX-License-Identifier: Apache-2.0
//! Sets the aggregate annotation of packets to their length.
//!
//! # Synopsis
//! `AggregateLength([IP])`: bytes that were cut off count, too. With IP (default false) what is in front of the IP header does
//! not.
//! # Ports
//! 1/1-2, agnostic. With IP, packets without a marked network header leave by output 1 (push), or are dropped.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDump(in.pcap, STOP true) -> AggregateLength -> a :: AggregateCounter -> Discard;`
use click_core::anno::{AGGREGATE, EXTRA_LENGTH};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AggregateLength",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[keyword("IP")],
    build: |a| {
        let ip = a.or("IP", false)?;
        Some(Box::new(AggregateLength { ip }))
    },
    ..Class::DEFAULT
};

struct AggregateLength {
    ip: bool,
}

impl InPlace for AggregateLength {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let counted = match self.ip {
            true => packet.network().map(<[u8]>::len),
            false => Some(packet.len()),
        };
        let Some(counted) = counted else {
            return 1;
        };
        let counted = u32::try_from(counted).expect("a packet is smaller than 4 GiB");
        let anno = packet.anno_mut();
        anno.set_u32(AGGREGATE, counted.wrapping_add(anno.u32(EXTRA_LENGTH)));
        0
    }
}

impl Element for AggregateLength {
    in_place!(plain);
}
