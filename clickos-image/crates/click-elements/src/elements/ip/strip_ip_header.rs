// SPDX-License-Identifier: Apache-2.0
//! Removes the IP header from the front of packets.
//!
//! # Synopsis
//! `StripIPHeader()`: removes everything in front of the transport header.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it pass unchanged.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! A packet without a marked IP header passes.
//! # Example
//! `CheckIPHeader -> StripIPHeader -> ... -> UnstripIPHeader`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StripIPHeader",
    build: |_| Some(Box::new(StripIPHeader)),
    ..Class::DEFAULT
};

struct StripIPHeader;

impl InPlace for StripIPHeader {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if let Some(Ok(length)) = packet.transport_offset().map(usize::try_from) {
            packet.pull(length);
        }
        0
    }
}

impl Element for StripIPHeader {
    in_place!(plain);
}
