// SPDX-License-Identifier: Apache-2.0
//! Answers pings.
//!
//! # Synopsis
//! `ICMPPingResponder()`: turns an ICMP echo request into its reply: addresses swapped, time to live 255, fragment field
//! cleared, checksums right. Sets destination, timestamp and paint (0) annotations.
//! # Ports
//! 1/1-2, agnostic. The header annotation must be set. Output 1 (push) gets everything that is not an echo request; it
//! is dropped if that is not connected.
//! # Handlers
//! None of its own.
//! # Example
//! `c :: IPClassifier(icmp type echo, -); c[0] -> ICMPPingResponder -> EtherMirror -> ToDevice(0);`
use click_core::anno;
use click_wire::{checksum, icmp, ipv4};

use crate::ip_packet::header_mut;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ICMPPingResponder",
    ports: "1/1-2",
    processing: "a/ah",
    build: |_| Some(Box::new(ICMPPingResponder)),
    ..Class::DEFAULT
};

const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
const TTL: u8 = 255;

struct ICMPPingResponder;

fn is_ping(packet: &Packet) -> bool {
    let message = packet.transport().filter(|m| m.len() >= icmp::HEADER);
    let icmp = crate::ip_packet::header(packet).is_some_and(|h| h.protocol() == ipv4::ICMP);
    icmp && message.is_some_and(|m| m[0] == ECHO)
}

/// Turns the request into its answer; the other side's address.
fn answer(packet: &mut Packet) -> Option<Ipv4Addr> {
    let mut header = header_mut(packet)?;
    let (source, destination) = (header.source(), header.destination());
    header.set_source(destination);
    header.set_destination(source);
    header.set_fragment(0);
    header.set_ttl(TTL);
    let message = packet.transport_mut()?;
    let old = u16::from_be_bytes([message[0], message[1]]);
    let sum = u16::from_be_bytes([message[2], message[3]]);
    let sum = checksum::update(sum, old, u16::from(ECHO_REPLY) << 8);
    message[..2].copy_from_slice(&[ECHO_REPLY, 0]);
    let sum = checksum::settle_zero(sum, message, 2);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(source)
}

impl InPlace for ICMPPingResponder {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !is_ping(packet) {
            return 1;
        }
        let Some(to) = answer(packet) else {
            return DROPPED;
        };
        packet.set_timestamp_ns(ctx.now_ns());
        packet.anno_mut().set_dst_ip(to.octets());
        packet.anno_mut().set_u8(anno::PAINT, 0);
        0
    }
}

impl Element for ICMPPingResponder {
    in_place!();
}
