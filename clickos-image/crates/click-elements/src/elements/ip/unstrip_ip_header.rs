// SPDX-License-Identifier: Apache-2.0
//! Puts a stripped IP header back in front of packets.
//!
//! # Synopsis
//! `UnstripIPHeader()`: the packet begins with its IP header again; nothing happens if that was not stripped.
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
    name: "UnstripIPHeader",
    build: |_| Some(Box::new(UnstripIPHeader)),
    ..Class::DEFAULT
};

struct UnstripIPHeader;

impl InPlace for UnstripIPHeader {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let stripped = packet.network_offset().filter(|offset| *offset < 0);
        kept_if(stripped.is_none_or(|offset| packet.push(offset.unsigned_abs())))
    }
}

impl Element for UnstripIPHeader {
    in_place!(plain);
}
