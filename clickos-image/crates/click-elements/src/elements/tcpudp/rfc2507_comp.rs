// SPDX-License-Identifier: Apache-2.0
//! Compresses the headers of TCP packets.
//!
//! # Synopsis
//! `RFC2507Comp`: the element sends only the changed header fields of a known connection, some 5 to 10 octets instead
//! of 40. The first packet of a connection, and one that changed too much, leaves whole after its connection's number.
//! The element remembers 14 connections. A new one replaces one chosen at random.
//! # Ports
//! 1/1, agnostic. Packets begin with the IP header. Other packets than plain TCP with an
//! acknowledgment leave unchanged after an octet that marks them.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! A packet is sent uncompressed if its TCP flags differ from those of the packet before, or if a
//! changed urgent pointer does not match the urgent flag. No messages are printed.
//! # Example
//! `... -> RFC2507Comp -> link :: Null -> RFC2507Decomp -> ...`
use click_wire::{ipv4, tcp};

use crate::prelude::*;
use crate::rfc2507::{CONTEXTS, FULL, HEADERS, Headers, OTHER, compress};

pub static ELEMENT: Class = Class {
    name: "RFC2507Comp",
    build: |_| {
        Some(Box::new(RFC2507Comp {
            contexts: [None; CONTEXTS],
        }))
    },
    ..Class::DEFAULT
};

/// FIN, SYN, RST and ACK; and ACK alone.
const STATE: u8 = 0x17;
const ACK: u8 = 0x10;

struct RFC2507Comp {
    contexts: [Option<Headers>; CONTEXTS],
}

/// Headers that can be compressed: without options but TCP's, no fragment, in the middle of a connection.
fn headers(packet: &Packet) -> Option<Headers> {
    let headers: Headers = *packet.data().first_chunk()?;
    let plain = headers[0] == 0x45 && headers[9] == ipv4::TCP;
    let whole = (headers[6] & 0x3f, headers[7]) == (0, 0);
    let offset = usize::from(headers[ipv4::HEADER + 12] >> 4) * 4;
    let length = usize::from(u16::from_be_bytes([headers[2], headers[3]]));
    let fits = offset >= tcp::HEADER && length == packet.len();
    let middle = headers[ipv4::HEADER + 13] & STATE == ACK;
    (plain && whole && fits && middle).then_some(headers)
}

/// The key of a connection: addresses and ports.
fn connection(headers: &Headers) -> &[u8] {
    &headers[12..ipv4::HEADER + 4]
}

impl RFC2507Comp {
    fn known(&self, headers: &Headers) -> Option<usize> {
        let own = connection(headers);
        let mut contexts = self.contexts.iter();
        contexts.position(|context| context.as_ref().is_some_and(|c| connection(c) == own))
    }

    /// The octets in place of the headers, or in front of them.
    fn front(&mut self, ctx: &mut Context<'_>, headers: &Headers) -> (usize, Vec<u8>) {
        let last = u32::try_from(CONTEXTS - 1).expect("a few");
        let known = self.known(headers);
        let number = known.unwrap_or_else(|| ctx.random_range(1, last) as usize);
        let old = self.contexts[number]
            .replace(*headers)
            .filter(|_| known.is_some());
        let byte = u8::try_from(number).expect("a few");
        match old.and_then(|old| compress(byte, &old, headers)) {
            Some(bytes) => (HEADERS, bytes),
            None => (0, vec![FULL, byte]),
        }
    }
}

impl InPlace for RFC2507Comp {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let (replaced, front) = match headers(packet) {
            Some(headers) => self.front(ctx, &headers),
            None => (0, vec![OTHER]),
        };
        packet.pull(replaced);
        packet.clear_network();
        if !packet.push(front.len()) {
            return DROPPED;
        }
        packet.data_mut()[..front.len()].copy_from_slice(&front);
        0
    }
}

impl Element for RFC2507Comp {
    in_place!();
}
