// SPDX-License-Identifier: Apache-2.0
//! Writes a flow's new addresses, ports and sequence numbers into its packets.
use click_wire::{checksum, ipv4, tcp};

use super::kind::{Kind, header_len, is_later_fragment};
use crate::flows::{Delta, Flow, FlowId, Shift};

/// Flags of TCP flows: the side that opened is done, its text or acknowledgment was seen; for the other side shifted by one.
pub const DONE: u8 = 1;
pub const DATA: u8 = 4;
/// Flags of both sides.
pub const BOTH: u8 = 3;
/// A flow that is not of TCP counts packets from its second bit on, up to this; the first is set by answers.
const ENOUGH: u8 = 6;

/// Where the checksums are.
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn set(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// True if a flow that is not of TCP has had three packets, not all from one side.
pub fn is_streaming(flags: u8) -> bool {
    flags > ENOUGH
}

/// Rewrites a packet of a flow whose key was found in it, and notes what it says about the flow.
#[inline]
pub fn rewrite(
    kind: Kind,
    bytes: &mut [u8],
    flow: &mut Flow,
    reply: bool,
    shifts: Option<&mut [Shift; 2]>,
) {
    let Some(length) = header_len(bytes) else {
        return;
    };
    let to = flow.rewritten(reply);
    let turned = |delta: Delta| if reply { delta.inverse() } else { delta };
    let (protocol, first) = (bytes[9], !is_later_fragment(bytes));
    set_addresses(kind, bytes, &to, reply);
    set(bytes, 10, turned(flow.ip).apply(get(bytes, 10)));
    if !first {
        return;
    }
    let (header, rest) = bytes.split_at_mut(length);
    let delta = turned(flow.transport);
    match kind {
        Kind::Ping => set_identifier(rest, &to, reply, delta),
        Kind::Address | Kind::Pair => update_transport(rest, protocol, delta),
        Kind::Ip | Kind::Tcp | Kind::Udp => {
            set(rest, 0, to.sport);
            set(rest, 2, to.dport);
            update_transport(rest, protocol, delta);
            if protocol == ipv4::TCP && kind != Kind::Udp {
                flow.flags = tcp_flags(flow.flags, header, rest, reply);
                shifts
                    .into_iter()
                    .for_each(|shifts| shift(rest, shifts, reply));
            } else {
                flow.flags = count(flow.flags, reply);
            }
        }
    }
}

fn set_addresses(kind: Kind, bytes: &mut [u8], to: &FlowId, reply: bool) {
    if kind != Kind::Address || !reply {
        bytes[12..16].copy_from_slice(&to.source.octets());
    }
    if kind != Kind::Address || reply {
        bytes[16..20].copy_from_slice(&to.destination.octets());
    }
}

fn set_identifier(rest: &mut [u8], to: &FlowId, reply: bool, delta: Delta) {
    if rest.len() >= 8 {
        set(rest, 4, if reply { to.dport } else { to.sport });
        let sum = delta.apply(get(rest, 2));
        set(rest, 2, checksum::settle_zero(sum, rest, 2));
    }
}

/// Updates the checksum of a transport header, if there is one that addresses count in.
#[inline]
pub fn update_transport(rest: &mut [u8], protocol: u8, delta: Delta) {
    match protocol {
        ipv4::TCP if rest.len() >= TCP_CHECKSUM + 2 => {
            set(rest, TCP_CHECKSUM, delta.apply(get(rest, TCP_CHECKSUM)));
        }
        ipv4::UDP if rest.len() >= UDP_CHECKSUM + 2 && get(rest, UDP_CHECKSUM) != 0 => {
            let new = delta.apply(get(rest, UDP_CHECKSUM));
            // 0 would mean that there is no checksum
            set(rest, UDP_CHECKSUM, if new == 0 { 0xffff } else { new });
        }
        _ => {}
    }
}

fn count(flags: u8, reply: bool) -> u8 {
    let flags = flags | u8::from(reply);
    if flags < ENOUGH { flags + 2 } else { flags }
}

/// The new flags of a flow.
fn tcp_flags(flags: u8, header: &[u8], rest: &[u8], reply: bool) -> u8 {
    if rest.len() < TCP_CHECKSUM + 2 {
        return flags;
    }
    let headers = header.len() + usize::from(rest[12] >> 4) * 4;
    let (has_text, sent) = (headers < usize::from(get(header, 2)), rest[13]);
    let side = u8::from(reply);
    let flags = match sent {
        _ if sent & RST != 0 => flags | (BOTH * DONE),
        _ if sent & FIN != 0 => flags | DONE << side,
        _ if sent & SYN != 0 || has_text => flags & !(DONE << side),
        _ => flags,
    };
    // both sides have acknowledged: the connection is established (RFC 5382, section 5)
    if has_text || sent & ACK != 0 {
        flags | DATA << side
    } else {
        flags
    }
}

/// Moves sequence and acknowledgement numbers.
fn shift(rest: &mut [u8], shifts: &mut [Shift; 2], reply: bool) {
    if rest.len() < tcp::HEADER || rest.len() < usize::from(rest[12] >> 4) * 4 {
        return;
    }
    let (mine, other) = (usize::from(reply), usize::from(!reply));
    let sequence = get_long(rest, 4);
    shifts[mine].seen(sequence);
    if shifts[mine].is_any() {
        set_long(rest, 4, shifts[mine].forward(sequence));
    }
    if shifts[other].is_any() {
        set_long(rest, 8, shifts[other].backward(get_long(rest, 8)));
        shift_selective(rest, &shifts[other]);
    }
}

fn get_long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Sets a number at an even or odd place of a TCP header, whose checksum follows.
fn set_long(rest: &mut [u8], at: usize, value: u32) {
    let (start, end) = (at & !1, (at + 5) & !1);
    let sum = |rest: &[u8]| Delta::of_words(&rest[start..end.min(rest.len())]);
    let old = sum(rest);
    rest[at..at + 4].copy_from_slice(&value.to_be_bytes());
    let delta = old.inverse().and(sum(rest));
    set(rest, TCP_CHECKSUM, delta.apply(get(rest, TCP_CHECKSUM)));
}

/// Kinds of TCP options.
const END: u8 = 0;
const NOTHING: u8 = 1;
const SELECTIVE: u8 = 5;

/// Moves the numbers of selective acknowledgements (RFC 2018).
fn shift_selective(rest: &mut [u8], shift: &Shift) {
    let end = usize::from(rest[12] >> 4) * 4;
    let mut at = tcp::HEADER;
    while at < end && rest[at] != END {
        if rest[at] == NOTHING {
            at += 1;
            continue;
        }
        let length = usize::from(rest.get(at + 1).copied().unwrap_or(0));
        if length < 2 || at + length > end {
            return;
        }
        if rest[at] == SELECTIVE && length % 8 == 2 {
            for place in (at + 2..at + length).step_by(4) {
                set_long(rest, place, shift.backward(get_long(rest, place)));
            }
        }
        at += length;
    }
}
