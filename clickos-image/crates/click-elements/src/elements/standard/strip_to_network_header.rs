// SPDX-License-Identifier: Apache-2.0
//! Makes packets begin at their network header.
//!
//! # Synopsis
//! `StripToNetworkHeader`
//! # Ports
//! 1/1, agnostic. Bytes in front of the network header go; a network header that was stripped comes back.
//! A packet without a marked network header is dropped.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Drops a packet without a marked network header.
//! # Example
//! `FromDevice(0) -> MarkIPHeader(14) -> StripToNetworkHeader -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StripToNetworkHeader",
    build: |_| Some(Box::new(StripToNetworkHeader)),
    ..Class::DEFAULT
};

struct StripToNetworkHeader;

impl InPlace for StripToNetworkHeader {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(offset) = packet.network_offset() else {
            return DROPPED;
        };
        if offset >= 0 {
            packet.pull(offset.unsigned_abs());
        } else if !packet.push(offset.unsigned_abs()) {
            return DROPPED;
        }
        0
    }
}

impl Element for StripToNetworkHeader {
    in_place!(plain);
}
