// SPDX-License-Identifier: Apache-2.0
//! What the delaying elements share.
use crate::prelude::*;

/// Packets that are let go at once at most.
pub const BURST: usize = 32;

/// A timestamp below this does not count: packets of dumps that count from 0 come in when they come in.
const MIN_NS: u64 = 1_000_000_000;

/// Moves a packet's timestamp to when it may go; one without a timestamp came in now.
pub fn delay_packet(packet: &mut Packet, now_ns: u64, delay: Span) {
    let came = match packet.timestamp_ns() {
        ..MIN_NS => now_ns,
        ns => ns,
    };
    packet.set_timestamp_ns(came.saturating_add(delay.ns));
}
