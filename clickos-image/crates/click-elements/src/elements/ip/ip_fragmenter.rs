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
//! # Differences from Click
//! Cuts off padding after a packet that fits. A packet shorter than its header says leaves by
//! output 1.
//! # Example
//! `fr :: IPFragmenter(1500) -> arp; fr[1] -> ICMPError(10.0.0.1, unreachable, needfrag, PMTU 1500) -> ...`
use click_wire::checksum;
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
    if headroom > MAX_HEADROOM {
        a.error(
            "HEADROOM",
            format!("{headroom} is out of range, the most is {MAX_HEADROOM}"),
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

const MAX_HEADROOM: usize = 65_535;
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

/// A header of fragments, but for the fields that differ.
struct Template<'a> {
    header: &'a [u8],
    /// The running sum of all other fields.
    sum: u64,
}

impl<'a> Template<'a> {
    fn new(header: &'a [u8]) -> Self {
        let mut others = [0; LONGEST];
        others[..header.len()].copy_from_slice(header);
        // total length, fragment field and checksum
        for at in [2, 6, 10] {
            others[at] = 0;
            others[at + 1] = 0;
        }
        let sum = checksum::add(0, &others);
        Self { header, sum }
    }

    /// Writes the header in front of that many bytes of payload.
    fn write(&self, to: &mut [u8], payload: usize, fragment: u16) {
        let total = self.header.len() + payload;
        let total = u16::try_from(total).expect("shorter than the packet it is of");
        to.copy_from_slice(self.header);
        to[2..4].copy_from_slice(&total.to_be_bytes());
        to[6..8].copy_from_slice(&fragment.to_be_bytes());
        let sum = checksum::finish(self.sum + u64::from(total) + u64::from(fragment));
        to[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

impl IPFragmenter {
    /// True if a packet may go as it is.
    fn fits(&self, packet: &Packet) -> bool {
        packet.network().map_or(packet.len(), <[u8]>::len) <= self.mtu
    }

    /// Appends a packet that is too long in fragments; gives it back if that cannot be.
    fn send(
        &mut self,
        ctx: &mut Context<'_>,
        mut packet: Packet,
        out: &mut Batch,
    ) -> Result<(), Packet> {
        let available = packet.network().map_or(packet.len(), <[u8]>::len);
        let checked = packet.network().map(Header::new_checked);
        let Some(Ok(header)) = checked else {
            return Err(packet);
        };
        let (length, total, field) = (header.header_len(), header.total_len(), header.fragment());
        packet.take(available - total);
        if total <= self.mtu {
            out.push_back(packet);
            return Ok(());
        }
        let unwanted = field & ipv4::DONT_FRAGMENT != 0;
        let piece = self.mtu.saturating_sub(length) & !7;
        if (unwanted && self.honor_df) || piece == 0 {
            return Err(packet);
        }
        if unwanted {
            // the sender did not expect that the identification matters
            let [a, b, ..] = ctx.random_u32().to_le_bytes();
            let bytes = packet.network_mut().unwrap_or_default();
            bytes[4..6].copy_from_slice(&[a, b]);
        }
        let field = field & !ipv4::DONT_FRAGMENT;
        self.cut(ctx, packet, (field, length, piece), out);
        Ok(())
    }

    /// Appends a packet in fragments. It has a fragment field, and a header of `length` bytes; the first fragment has
    /// `piece` bytes of payload.
    fn cut(
        &mut self,
        ctx: &mut Context<'_>,
        mut packet: Packet,
        (field, length, piece): (u16, usize, usize),
        out: &mut Batch,
    ) {
        let first = out.len();
        let original = packet.network().unwrap_or_default();
        let mut header = [0; LONGEST];
        header[..length].copy_from_slice(&original[..length]);
        let cut = original.len() - length - piece;
        // the place of the first fragment, which is the packet itself
        let mut rest = self.later(ctx, &packet, field, length, piece);
        packet.take(cut);
        let bytes = packet.network_mut().unwrap_or_default();
        let template = Template::new(&header[..length]);
        template.write(&mut bytes[..length], piece, field | ipv4::MORE_FRAGMENTS);
        out.push_back(packet);
        out.append(&mut rest);
        ctx.recycle(rest);
        self.fragments += (out.len() - first) as u64;
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
        let template = Template::new(&header[..header_len]);
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
                let (head, rest) = fragment.data_mut().split_at_mut(header_len);
                template.write(head, data.len(), field.wrapping_add(eighths) | more);
                rest.copy_from_slice(data);
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
        let unseen = ctx.outputs_are_unseen();
        let mut out = ctx.batch();
        for packet in batch.drain_front(usize::MAX) {
            if self.fits(&packet) {
                out.push_back(packet);
                continue;
            }
            if !unseen {
                ctx.push(0, out);
                out = ctx.batch();
            }
            if let Err(packet) = self.send(ctx, packet, &mut out) {
                ctx.push(0, out);
                out = ctx.batch();
                self.refuse(ctx, packet);
            }
            if !unseen {
                // a fragment goes all the way before the next one
                for fragment in out.drain_front(usize::MAX) {
                    ctx.push_one(0, fragment);
                }
            }
        }
        ctx.recycle(batch);
        ctx.push(0, out);
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.fragments, self.drops) = (old.fragments, old.drops);
        }
    }
}
