// SPDX-License-Identifier: Apache-2.0
//! Puts ESP headers in front of packets.
//!
//! # Synopsis
//! `IPsecESPEncap()`: in front of the data come the SPI, the next sequence number and a random vector of 8 bytes, behind
//! it padding (1, 2, 3, ...) up to a multiple of 8 bytes, its length, and the protocol of the marked IP header (0
//! without one). Packets must come from a `RadixIPsecLookup`, which says by which association they are sent.
//! # Ports
//! 1/1, agnostic. Packets without an association, and packets that would become too long, are dropped.
//! # Handlers
//! None of its own.
//! # Example
//! `rt[1] -> IPsecESPEncap -> IPsecAuthHMACSHA1(0) -> IPsecAES(1) -> IPsecEncap(50) -> ...`
use crate::ip_packet::header;
use crate::ipsec::{ESP_HEADER, User};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPsecESPEncap",
    build: |_| Some(Box::new(IPsecESPEncap::default())),
    ..Class::DEFAULT
};

/// The padded data, with length and protocol, is a multiple of this.
const BLOCK: usize = 8;

#[derive(Default)]
struct IPsecESPEncap {
    user: User,
}

impl InPlace for IPsecESPEncap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let vector = ctx.random();
        let Some(mut association) = self.user.association(ctx, packet) else {
            return DROPPED;
        };
        let protocol = header(packet).map_or(0, |h| h.protocol());
        let padding = (packet.len() + 2).next_multiple_of(BLOCK) - (packet.len() + 2);
        if !packet.push(ESP_HEADER) || !packet.put(padding + 2) {
            return DROPPED;
        }
        let data = packet.data_mut();
        data[..4].copy_from_slice(&association.terms.spi.to_be_bytes());
        data[4..8].copy_from_slice(&association.take_number().to_be_bytes());
        data[8..16].copy_from_slice(&vector.to_be_bytes());
        trailer(data, padding, protocol);
        0
    }
}

impl Element for IPsecESPEncap {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.user.connect(ctx);
        Ok(())
    }
}

fn trailer(data: &mut [u8], padding: usize, protocol: u8) {
    let begin = data.len() - padding - 2;
    let length = u8::try_from(padding).expect("less than a block");
    let bytes = (1..=length).chain([length, protocol]);
    data[begin..]
        .iter_mut()
        .zip(bytes)
        .for_each(|(b, v)| *b = v);
}
