// SPDX-License-Identifier: Apache-2.0
//! Answers pings of IPv6.
//!
//! # Synopsis
//! `ICMP6PingResponder()`: turns an ICMPv6 echo request into its reply (RFC 4443, section 4.2): addresses swapped, hop limit
//! 255, checksum right. Sets the destination annotation.
//! # Ports
//! 1/1-2, agnostic. The header annotation must be set. Output 1 (push) gets all other packets, also requests behind
//! extension headers and those with a group's address. They are dropped if it is not connected.
//! # Handlers
//! None of its own.
//! # Example
//! `routes[0] -> ICMP6PingResponder -> routes;`
use click_wire::checksum;

use crate::ip6::{Address, HOP_LIMIT, HOP_LIMIT_AT, ICMP6, View, header_mut};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ICMP6PingResponder",
    ports: "1/1-2",
    processing: "a/ah",
    build: |_| Some(Box::new(ICMP6PingResponder)),
    ..Class::DEFAULT
};

const ECHO: u8 = 128;
const ECHO_REPLY: u8 = 129;
/// Bytes of the header of an echo request.
const MESSAGE: usize = 8;

struct ICMP6PingResponder;

fn is_host(address: Address) -> bool {
    !address.0.is_multicast() && !address.0.is_unspecified()
}

fn is_ping(packet: &Packet) -> bool {
    let hosts = |h: &View<'_>| is_host(h.source()) && is_host(h.destination());
    let icmp = View::marked(packet).filter(|h| h.next_header() == ICMP6 && hosts(h));
    let message = packet.transport().filter(|m| m.len() >= MESSAGE);
    icmp.is_some() && message.is_some_and(|m| m[0] == ECHO)
}

/// Turns the request into its answer; the other side's address.
fn answer(packet: &mut Packet) -> Option<Address> {
    let header = header_mut(packet)?;
    // the sum of the pseudo header does not change with the order of the addresses
    header[8..].rotate_left(16);
    header[HOP_LIMIT_AT] = HOP_LIMIT;
    let message = packet.transport_mut()?;
    let old = u16::from_be_bytes([message[0], message[1]]);
    let sum = u16::from_be_bytes([message[2], message[3]]);
    let sum = checksum::update(sum, old, u16::from(ECHO_REPLY) << 8);
    message[..2].copy_from_slice(&[ECHO_REPLY, 0]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(View::marked(packet)?.destination())
}

impl InPlace for ICMP6PingResponder {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !is_ping(packet) {
            return 1;
        }
        let Some(to) = answer(packet) else {
            return DROPPED;
        };
        to.put(packet);
        0
    }
}

impl Element for ICMP6PingResponder {
    in_place!(plain);
}
