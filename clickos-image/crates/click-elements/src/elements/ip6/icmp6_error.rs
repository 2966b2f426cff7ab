// SPDX-License-Identifier: Apache-2.0
//! Answers IPv6 packets with ICMPv6 errors.
//!
//! # Synopsis
//! `ICMP6Error(SRC, TYPE, CODE [, MTU])`: the answer comes from SRC and has TYPE (1 unreachable, 2 too big, 3 time exceeded, 4
//! parameter problem, 137 redirect) and CODE. It contains the first 568 bytes of the packet. Too big tells MTU
//! (default 1500), a parameter problem the place in the packet's annotation, a redirect the destination annotation.
//! # Ports
//! 1/1, agnostic. The header annotation must be set. Never answered (RFC 4443, 2.4): ICMPv6 errors, packets to or from
//! groups, packets from `::` or `::1`, packets that came by broadcast. Destination and fix IP source annotation of the
//! answer are set.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Sends no errors about ICMPv6 errors, and none to senders that cannot be answered.
//! # Example
//! `hops :: DecIP6HLIM; hops[1] -> ICMP6Error(2001:db8::1, 3, 0) -> ...`
use click_core::anno::{self, PacketType};

use crate::ip6::{self, Address, HEADER, ICMP6, View as Header};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ICMP6Error",
    args: &[
        mandatory("SRC"),
        mandatory("TYPE"),
        mandatory("CODE"),
        keyword("MTU"),
    ],
    build: |a| {
        let (source, code) = (a.need("SRC"), a.need("CODE"));
        let mtu = a.or("MTU", MTU);
        let kind = a.need::<u8>("TYPE")?;
        if !matches!(kind, 1..=4 | REDIRECT) {
            let message = format!("expected the type of an ICMPv6 error or 137, got {kind}");
            a.error("TYPE", message);
        }
        Some(Box::new(ICMP6Error {
            source: source?,
            kind,
            code: code?,
            mtu: mtu?,
        }))
    },
    ..Class::DEFAULT
};

const TOO_BIG: u8 = 2;
const PARAMETER_PROBLEM: u8 = 4;
const REDIRECT: u8 = 137;
/// Type, code, checksum and four more bytes.
const MESSAGE: usize = 8;
/// The extra fields of a redirect: two addresses.
const TARGETS: usize = 32;
/// Most bytes of the packet in an answer.
const QUOTED: usize = 568;
/// The MTU that too big tells without another.
const MTU: u32 = 1500;

struct ICMP6Error {
    source: Address,
    kind: u8,
    code: u8,
    mtu: u32,
}

fn deserves_answer(packet: &Packet, bytes: &[u8], header: Header<'_>) -> bool {
    let (source, destination) = (header.source().0, header.destination().0);
    let kind = bytes.get(HEADER).filter(|_| header.next_header() == ICMP6);
    let is_error = kind.is_some_and(|kind| *kind < 128);
    let by_group = matches!(
        packet.anno().packet_type(),
        PacketType::Broadcast | PacketType::Multicast
    );
    let has_sender = !source.is_multicast() && !source.is_loopback() && !source.is_unspecified();
    has_sender && !destination.is_multicast() && !by_group && !is_error
}

impl ICMP6Error {
    /// The four bytes after the checksum.
    fn rest(&self, packet: &Packet) -> u32 {
        match self.kind {
            TOO_BIG => self.mtu,
            PARAMETER_PROBLEM => packet.anno().u8(anno::ICMP_PARAMPROB).into(),
            _ => 0,
        }
    }

    fn answer(&self, ctx: &mut Context<'_>, packet: &Packet) -> Option<Packet> {
        let bytes = packet.network()?;
        let header = Header::of(bytes).filter(|h| deserves_answer(packet, bytes, *h))?;
        let quoted = &bytes[..bytes.len().min(QUOTED)];
        let targets = if self.kind == REDIRECT { TARGETS } else { 0 };
        let message = HEADER + MESSAGE;
        let mut answer = ctx.pool().alloc(message + targets + quoted.len())?;
        let out = answer.data_mut();
        out[HEADER..message].copy_from_slice(&[self.kind, self.code, 0, 0, 0, 0, 0, 0]);
        out[HEADER + 4..message].copy_from_slice(&self.rest(packet).to_be_bytes());
        out[message + targets..].copy_from_slice(quoted);
        if targets > 0 {
            out[message..message + 16].copy_from_slice(&Address::of(packet).0.octets());
            let destination = header.destination().0.octets();
            out[message + 16..message + TARGETS].copy_from_slice(&destination);
        }
        ip6::emit(out, ICMP6, self.source, header.source());
        ip6::fill_checksum(out, 2);
        answer.set_network(0, HEADER);
        header.source().put(&mut answer);
        answer.anno_mut().set_u8(anno::FIX_IP_SRC, 1);
        Some(answer)
    }
}

impl InPlace for ICMP6Error {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        replace(self.answer(ctx, packet), packet)
    }
}

impl Element for ICMP6Error {
    in_place!();
}
