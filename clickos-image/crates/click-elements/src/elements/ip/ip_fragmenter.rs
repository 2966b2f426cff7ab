// SPDX-License-Identifier: Apache-2.0
//! Cuts IP packets that are too long into fragments.
//!
//! # Synopsis
//! `IPFragmenter(MTU [, HONOR_DF, VERBOSE, HEADROOM])`: MTU in bytes from the IP header on, at least 8. Packets that
//! must not be fragmented are, unless HONOR_DF (default true), and get a random identification then. VERBOSE (default
//! false) prints a message for every packet that could not be sent, not for the first five only. HEADROOM is the room
//! in front of fragments (default 128 bytes).
//! # Ports
//! 1/1-2, push. The header annotation must be set. Fragments leave in order, with the annotations of their packet; what
//! is in front of the IP header stays in front of the first only. Output 1 gets packets that must not, or cannot, be
//! fragmented; they are dropped if it is not connected.
//! # Handlers
//! * `fragments` (read): fragments made. `drops` (read): packets that could not be sent.
//! # Example
//! `fr :: IPFragmenter(1500) -> arp; fr[1] -> ICMPError(10.0.0.1, unreachable, needfrag, PMTU 1500) -> ...`
use click_wire::ipv4::{self, View as Header};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPFragmenter",
    ports: "1/1-2",
    processing: "h/h",
    args: &[
        mandatory("MTU"),
        optional("HONOR_DF"),
        optional("VERBOSE"),
        keyword("HEADROOM"),
    ],
    handlers: &[
        read("fragments", |me: &mut IPFragmenter, _| text(me.fragments)),
        read("drops", |me, _| text(me.drops)),
    ],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (mtu, honor_df) = (a.need("MTU"), a.or("HONOR_DF", true));
    let (verbose, headroom) = (
        a.or("VERBOSE", false),
        a.or("HEADROOM", click_core::HEADROOM),
    );
    let (mtu, headroom): (usize, usize) = (mtu?, headroom?);
    if mtu < 8 {
        a.error("MTU", format!("{mtu} is out of range, the least is 8"));
    }
    if headroom > MOST_HEADROOM {
        a.error(
            "HEADROOM",
            format!("{headroom} is out of range, the most is {MOST_HEADROOM}"),
        );
    }
    Some(Box::new(IPFragmenter {
        mtu,
        honor_df: honor_df?,
        verbose: verbose?,
        headroom,
        fragments: 0,
        drops: 0,
    }))
}

const MOST_HEADROOM: usize = 65_535;
/// Messages about packets that cannot be sent, unless VERBOSE.
const COMPLAINTS: u64 = 5;
/// The longest header.
const LONGEST: usize = 60;
/// An option with this bit goes into every fragment (RFC 791).
const COPIED: u8 = 0x80;

struct IPFragmenter {
    mtu: usize,
    honor_df: bool,
    verbose: bool,
    headroom: usize,
    fragments: u64,
    drops: u64,
}

/// The header of all fragments but the first, and its length: only some options are copied.
fn later_header(first: &[u8]) -> ([u8; LONGEST], usize) {
    let mut header = [0; LONGEST];
    header[..ipv4::HEADER].copy_from_slice(&first[..ipv4::HEADER]);
    let (mut length, mut rest) = (ipv4::HEADER, &first[ipv4::HEADER..]);
    while let [kind, behind @ ..] = rest {
        if *kind == 1 {
            rest = behind;
            continue;
        }
        let size = behind.first().map_or(0, |size| usize::from(*size));
        if *kind == 0 || size < 2 || size > rest.len() {
            break;
        }
        let (option, behind) = rest.split_at(size);
        if kind & COPIED != 0 {
            header[length..length + size].copy_from_slice(option);
            length += size;
        }
        rest = behind;
    }
    let length = length.next_multiple_of(4);
    header[0] = 0x40 | u8::try_from(length / 4).expect("at most 60 bytes");
    (header, length)
}

/// Sets total length, fragment field and checksum of a header.
fn finish(header: &mut [u8], payload: usize, fragment: u16) {
    let total = u16::try_from(header.len() + payload).expect("shorter than the packet it is of");
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[6..8].copy_from_slice(&fragment.to_be_bytes());
    Header::new_unchecked(header).fill_checksum();
}

impl IPFragmenter {
    /// True if a packet may go as it is.
    fn fits(&self, packet: &Packet) -> bool {
        packet.network().map_or(packet.len(), <[u8]>::len) <= self.mtu
    }

    /// Sends a packet that is too long in fragments; gives it back if that cannot be.
    fn send(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Result<(), Packet> {
        let available = packet.network().map_or(packet.len(), <[u8]>::len);
        let checked = packet.network().map(Header::new_checked);
        let Some(Ok(header)) = checked else {
            return Err(packet);
        };
        let (length, total, field) = (header.header_len(), header.total_len(), header.fragment());
        packet.take(available - total);
        if total <= self.mtu {
            ctx.push_one(0, packet);
            return Ok(());
        }
        let unwanted = field & ipv4::DONT_FRAGMENT != 0;
        let piece = self.mtu.saturating_sub(length) & !7;
        if (unwanted && self.honor_df) || piece == 0 {
            return Err(packet);
        }
        if unwanted {
            // the sender did not expect that the identification matters
            let [a, b, ..] = ctx.draw().to_le_bytes();
            let bytes = packet.network_mut().unwrap_or_default();
            bytes[4..6].copy_from_slice(&[a, b]);
        }
        self.cut(ctx, packet, field & !ipv4::DONT_FRAGMENT, length, piece);
        Ok(())
    }

    /// Sends a packet with a header of `length` bytes in fragments, the first with `piece` bytes of payload.
    fn cut(
        &mut self,
        ctx: &mut Context<'_>,
        mut packet: Packet,
        field: u16,
        length: usize,
        piece: usize,
    ) {
        let mut rest = self.later(ctx, &packet, field, length, piece);
        let cut = packet.network().map_or(0, <[u8]>::len) - length - piece;
        packet.take(cut);
        let bytes = packet.network_mut().unwrap_or_default();
        finish(&mut bytes[..length], piece, field | ipv4::MORE_FRAGMENTS);
        self.fragments += 1 + rest.len() as u64;
        ctx.push_one(0, packet);
        for fragment in rest.drain_front(usize::MAX) {
            ctx.push_one(0, fragment);
        }
        ctx.recycle(rest);
    }

    /// All fragments but the first; those there is no buffer for are missing.
    fn later(
        &self,
        ctx: &mut Context<'_>,
        packet: &Packet,
        field: u16,
        length: usize,
        from: usize,
    ) -> Batch {
        let (original, payload) = packet.network().unwrap_or_default().split_at(length);
        let (header, header_len) = later_header(original);
        let piece = (self.mtu - header_len) & !7;
        let mut fragments = ctx.batch();
        let mut at = from;
        while at < payload.len() {
            let data = &payload[at..payload.len().min(at + piece)];
            let more = match at + data.len() < payload.len() {
                true => ipv4::MORE_FRAGMENTS,
                false => 0,
            };
            let eighths = u16::try_from(at / 8).expect("a packet has less than 64 KB");
            let total = header_len + data.len();
            if let Some(mut fragment) = ctx.pool().alloc_with(self.headroom, total) {
                let bytes = fragment.data_mut();
                bytes[..header_len].copy_from_slice(&header[..header_len]);
                bytes[header_len..].copy_from_slice(data);
                finish(
                    &mut bytes[..header_len],
                    data.len(),
                    field.wrapping_add(eighths) | more,
                );
                fragment.set_network(0, header_len);
                fragment.set_timestamp_ns(packet.timestamp_ns());
                fragment.anno_mut().copy_from(packet.anno());
                fragments.push_back(fragment);
            }
            at += data.len();
        }
        fragments
    }

    fn refuse(&mut self, ctx: &mut Context<'_>, packet: Packet) {
        if self.verbose || self.drops < COMPLAINTS {
            let addresses = crate::ip_packet::header(&packet)
                .map(|h| format!("{} {}", h.source(), h.destination()))
                .unwrap_or_default();
            let (mtu, length) = (self.mtu, packet.len());
            let line = format!("IPFragmenter({mtu}) DF {addresses} len={length}");
            ctx.print(&line);
        }
        self.drops += 1;
        ctx.push_one(1, packet);
    }
}

impl Element for IPFragmenter {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if batch.iter().all(|packet| self.fits(packet)) {
            return ctx.push(0, batch);
        }
        let mut sweep = batch.sweep();
        while let Some(packet) = sweep.next() {
            if self.fits(&packet) {
                sweep.keep(packet);
                continue;
            }
            let mut before = ctx.batch();
            sweep.give_kept(&mut before);
            ctx.push(0, before);
            if let Err(packet) = self.send(ctx, packet) {
                self.refuse(ctx, packet);
            }
        }
        drop(sweep);
        ctx.push(0, batch);
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.fragments, self.drops) = (old.fragments, old.drops);
        }
    }
}
