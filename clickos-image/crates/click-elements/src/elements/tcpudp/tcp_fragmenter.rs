// SPDX-License-Identifier: Apache-2.0
//! Cuts TCP packets that are too long into several, each with a part of the text.
//!
//! # Synopsis
//! `TCPFragmenter([MTU, MTU_ANNO])`: packets whose IP and TCP headers and text have MTU bytes or more become several, each of at most MTU. If
//! the two-byte annotation MTU_ANNO is not 0 and smaller than MTU, it counts instead. At least one of the two is needed.
//! # Ports
//! 1/1, push. Packets need a marked IP header; each fragment gets a copy of the bytes in
//! front. Others than TCP pass.
//! # Handlers
//! * `count` (read): packets that came. `fragmented_count` (read): those that were cut. `fragments` (read): what they became.
//! # Differences from Click
//! Incomplete TCP packets pass.
//! # Example
//! `in -> TCPFragmenter(MTU 1400) -> out;`
use click_wire::{checksum, ipv4, tcp};

use crate::ip_packet::header;
use crate::numbers::WordAnno;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "TCPFragmenter",
    processing: "h/h",
    args: &[keyword("MTU"), keyword("MTU_ANNO")],
    handlers: &[
        read("count", |me: &mut TCPFragmenter, _| text(me.count)),
        read("fragmented_count", |me, _| text(me.cut)),
        read("fragments", |me, _| text(me.fragments)),
    ],
    build: |a| {
        let (mtu, anno) = (a.or("MTU", 0u16), a.opt::<WordAnno>("MTU_ANNO"));
        let (mtu, anno) = (mtu?, anno?);
        if mtu == 0 && anno.is_none() {
            a.error("MTU", "expected MTU or MTU_ANNO, got none");
        }
        Some(Box::new(TCPFragmenter {
            mtu,
            anno: anno.map(|anno| anno.0),
            count: 0,
            cut: 0,
            fragments: 0,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

const FIN: u8 = 1;

struct TCPFragmenter {
    mtu: u16,
    anno: Option<usize>,
    count: u64,
    cut: u64,
    fragments: u64,
}

/// Where text begins in an IP packet, and where it ends.
struct Segment {
    ip_header: usize,
    text: usize,
    end: usize,
}

fn segment(packet: &Packet) -> Option<Segment> {
    let ip = header(packet)?;
    let (bytes, ip_header) = (packet.network()?, ip.header_len());
    let end = ip.total_len();
    let rest = bytes
        .get(ip_header..end)
        .filter(|rest| rest.len() >= tcp::HEADER)?;
    let text = ip_header + usize::from(rest[12] >> 4) * 4;
    let whole =
        ip.protocol() == ipv4::TCP && ip.fragment() & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0;
    let sound = ip_header >= ipv4::HEADER && (ip_header + tcp::HEADER..=end).contains(&text);
    (whole && sound).then_some(Segment {
        ip_header,
        text,
        end,
    })
}

/// Keeps the part of the text from `from` on that has `length` bytes.
fn keep(packet: &mut Packet, segment: &Segment, from: usize, length: usize, last: bool) {
    let all = packet.network().map_or(0, <[u8]>::len);
    let end = segment.text + length;
    if let Some(bytes) = packet.network_mut() {
        let start = segment.text + from;
        bytes.copy_within(start..start + length, segment.text);
        let sequence = [4, 5, 6, 7].map(|at| bytes[segment.ip_header + at]);
        let sequence = u32::from_be_bytes(sequence).wrapping_add(u32::try_from(from).unwrap_or(0));
        bytes[segment.ip_header + 4..][..4].copy_from_slice(&sequence.to_be_bytes());
        if !last {
            bytes[segment.ip_header + 13] &= !FIN;
        }
        bytes[2..4].copy_from_slice(&u16::try_from(end).unwrap_or(u16::MAX).to_be_bytes());
    }
    packet.take(all - end);
    fill_checksums(packet, segment.ip_header);
}

fn fill_checksums(packet: &mut Packet, ip_header: usize) {
    let Some(bytes) = packet.network_mut() else {
        return;
    };
    let mut ip = ipv4::View::new_unchecked(&mut *bytes);
    ip.fill_checksum();
    let (source, destination) = (ip.source(), ip.destination());
    let segment = &mut bytes[ip_header..];
    segment[16..18].fill(0);
    let length = u16::try_from(segment.len()).unwrap_or(u16::MAX);
    let pseudo = checksum::pseudo(source, destination, ipv4::TCP, length);
    let sum = checksum::finish(checksum::add(pseudo, segment));
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
}

impl TCPFragmenter {
    /// How much text a packet may have; `None` if there is no limit.
    fn room(&self, packet: &Packet, headers: usize) -> Option<usize> {
        let own = self.anno.map_or(0, |anno| packet.anno().u16(anno));
        let limits = [self.mtu, own].into_iter().filter(|mtu| *mtu > 0);
        usize::from(limits.min()?)
            .checked_sub(headers)
            .filter(|room| *room > 0)
    }

    fn send(&mut self, ctx: &mut Context<'_>, mut packet: Packet) {
        self.count += 1;
        let found = segment(&packet);
        let cut = found.and_then(|s| Some((self.room(&packet, s.text)?, s)));
        let Some((room, segment)) = cut.filter(|(room, s)| s.end - s.text >= *room) else {
            return ctx.push_one(0, packet);
        };
        self.cut += 1;
        let length = segment.end - segment.text;
        for from in (room..length).step_by(room).map(|end| end - room) {
            if let Some(mut part) = ctx.pool().duplicate(&mut packet) {
                keep(&mut part, &segment, from, room, false);
                ctx.push_one(0, part);
                self.fragments += 1;
            }
        }
        let from = (length - 1) / room * room;
        let mut last = packet;
        keep(&mut last, &segment, from, length - from, true);
        ctx.push_one(0, last);
        self.fragments += 1;
    }
}

impl Element for TCPFragmenter {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            self.send(ctx, packet);
        }
        ctx.recycle(batch);
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.count, self.cut, self.fragments) = (old.count, old.cut, old.fragments);
        }
    }
}
