// SPDX-License-Identifier: Apache-2.0
//! Writes a number and times into UDP packets, so that their delay can be seen at the other end.
//!
//! # Synopsis
//! `StoreUDPTimeSeqRecord(OFFSET [, DELTA])`: the IPv4 or IPv6 header is OFFSET bytes after the start. Behind the UDP
//! header five numbers of 32 bits are stored: the packet's number, the time in seconds and nanoseconds, and twice 0. With
//! DELTA (default false) the last two become the time since the one that is stored, and the rest stays.
//! # Ports
//! 1/1, agnostic. Packets that are no UDP packets or have no room for the record are dropped.
//! # Handlers
//! * `count` (read): packets that got a record. `reset` (write): numbers begin at 1 again.
//! # Differences from Click
//! Keeps a right UDP checksum right; packets without one get none.
//! # Example
//! `... -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 5) -> StoreUDPTimeSeqRecord(OFFSET 0) -> ...`
use click_wire::{checksum, ipv4, udp};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StoreUDPTimeSeqRecord",
    args: &[mandatory("OFFSET"), keyword("DELTA")],
    handlers: &[
        read("count", |me: &mut StoreUDPTimeSeqRecord, _| text(me.count)),
        command("reset", run!(|me, _| me.count = 0)),
    ],
    build: |a| {
        let (offset, delta) = (a.need("OFFSET"), a.or("DELTA", false));
        Some(Box::new(StoreUDPTimeSeqRecord {
            offset: offset?,
            delta: delta?,
            count: 0,
        }))
    },
    ..Class::DEFAULT
};

const IP6_HEADER: usize = 40;
/// Bytes of the record.
const RECORD: usize = 20;
const SECOND_NS: u64 = 1_000_000_000;

struct StoreUDPTimeSeqRecord {
    offset: usize,
    delta: bool,
    count: u32,
}

/// The UDP packet in an IP packet.
fn datagram(packet: &mut [u8]) -> Option<&mut [u8]> {
    let (protocol, header) = match packet.first()? >> 4 {
        4 => (*packet.get(9)?, usize::from(packet[0] & 15) * 4),
        6 => (*packet.get(6)?, IP6_HEADER),
        _ => return None,
    };
    let datagram = packet.get_mut(header..).filter(|_| protocol == ipv4::UDP)?;
    (datagram.len() >= udp::HEADER + RECORD).then_some(datagram)
}

/// Two numbers for a time, as they are stored.
fn stamp(ns: u64) -> [u32; 2] {
    let seconds = u32::try_from((ns / SECOND_NS) & 0xffff_ffff).expect("32 bits");
    let rest = u32::try_from(ns % SECOND_NS).expect("less than a second");
    [seconds, rest]
}

fn number(record: &[u8], index: usize) -> u32 {
    let bytes = record[index * 4..].first_chunk();
    u32::from_be_bytes(*bytes.expect("the record was measured"))
}

impl StoreUDPTimeSeqRecord {
    /// The record of a packet that has `old`.
    fn record(&self, old: &[u8], now_ns: u64) -> [u32; 5] {
        let [seconds, rest] = stamp(now_ns);
        if !self.delta {
            return [self.count, seconds, rest, 0, 0];
        }
        let then = [0, 1, 2].map(|index| number(old, index));
        let then_ns = u64::from(then[1]) * SECOND_NS + u64::from(then[2]);
        let [seconds, rest] = stamp(now_ns.saturating_sub(then_ns));
        [then[0], then[1], then[2], seconds, rest]
    }

    fn store(&mut self, packet: &mut [u8], now_ns: u64) -> Option<()> {
        let datagram = datagram(packet.get_mut(self.offset..)?)?;
        self.count = self.count.wrapping_add(1);
        let (header, payload) = datagram.split_at_mut(udp::HEADER);
        let old: [u8; RECORD] = *payload.first_chunk()?;
        let new = self.record(&old, now_ns);
        let mut sum = u16::from_be_bytes([header[6], header[7]]);
        for (index, new) in new.into_iter().enumerate() {
            if sum != 0 {
                sum = checksum::update_u32(sum, number(&old, index), new);
                // 0 would mean that there is no checksum
                sum = if sum == 0 { 0xffff } else { sum };
            }
            payload[index * 4..index * 4 + 4].copy_from_slice(&new.to_be_bytes());
        }
        header[6..8].copy_from_slice(&sum.to_be_bytes());
        Some(())
    }
}

impl InPlace for StoreUDPTimeSeqRecord {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match self.store(packet.data_mut(), ctx.now_ns()) {
            Some(()) => 0,
            None => DROPPED,
        }
    }
}

impl Element for StoreUDPTimeSeqRecord {
    in_place!();
}
