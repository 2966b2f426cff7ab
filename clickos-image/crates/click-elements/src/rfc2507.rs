// SPDX-License-Identifier: Apache-2.0
//! Headers of TCP packets compressed against those of the packet before, in the manner of RFC 2507, section 6, and in the
//! format of Click's two elements: a byte for the kind of packet, a context's number, flags, the TCP checksum, differences.
use crate::prelude::*;
use click_wire::{checksum, ipv4, tcp};

/// Kinds of packets.
pub const OTHER: u8 = 0;
pub const FULL: u8 = 1;
pub const COMPRESSED: u8 = 2;
/// Numbers of contexts are less; 0 is none.
pub const CONTEXTS: usize = 15;
/// Octets of an IP header and a TCP header without options.
pub const HEADERS: usize = ipv4::HEADER + tcp::HEADER;
/// Octets in front of the differences.
pub const FIXED: usize = 5;

/// The headers of a connection's last packet.
pub type Headers = [u8; HEADERS];

/// Flags that say what has changed, or is set.
const URGENT: u8 = 1;
const PUSH: u8 = 1 << 4;
const ID: u8 = 1 << 5;
/// Numbers of which the difference is sent: flag, place, octets; in the order in which they are sent.
const NUMBERS: [(u8, usize, usize); 4] = [
    (URGENT, URGENT_AT, 2),
    (1 << 1, ipv4::HEADER + 14, 2),
    (1 << 2, ipv4::HEADER + 8, 4),
    (1 << 3, ipv4::HEADER + 4, 4),
];
/// Where the urgent pointer, the IP identification, the TCP flags and the TCP checksum are.
const URGENT_AT: usize = ipv4::HEADER + 18;
const ID_AT: usize = 4;
const FLAGS_AT: usize = ipv4::HEADER + 13;
const SUM_AT: usize = ipv4::HEADER + 16;
/// Bits of the TCP flags.
const TCP_PUSH: u8 = 8;
const TCP_URGENT: u8 = 0x20;
/// Octets that have to be as they were: version, type of service, fragmentation, lifetime, TCP header's length.
const CONSTANT: [usize; 6] = [0, 1, 6, 7, 8, ipv4::HEADER + 12];

fn get(headers: &Headers, at: usize, octets: usize) -> u32 {
    let bytes = &headers[at..at + octets];
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn set(headers: &mut Headers, at: usize, octets: usize, value: u32) {
    headers[at..at + octets].copy_from_slice(&value.to_be_bytes()[4 - octets..]);
}

/// Adds a difference of less than 2^16 in one octet or, behind a zero, two.
fn put(difference: u32, out: &mut Vec<u8>) -> Option<()> {
    let difference = u16::try_from(difference).ok()?;
    match u8::try_from(difference) {
        Ok(byte) => out.push(byte),
        Err(_) => {
            out.push(0);
            out.extend(difference.to_be_bytes());
        }
    }
    Some(())
}

/// Takes a difference off.
fn take(bytes: &mut &[u8]) -> Option<u32> {
    let (difference, rest) = match *bytes {
        [0, high, low, rest @ ..] => (u16::from_be_bytes([*high, *low]), rest),
        [0, ..] | [] => return None,
        [byte, rest @ ..] => (u16::from(*byte), rest),
    };
    *bytes = rest;
    Some(difference.into())
}

/// What stands for headers `new` behind `old`; `None` if the differences are too large.
pub fn compress(context: u8, old: &Headers, new: &Headers) -> Option<Vec<u8>> {
    // what is urgent in one packet and at the same place in the next cannot be told
    let urgent = new[FLAGS_AT] & TCP_URGENT != 0;
    let told = urgent == (get(new, URGENT_AT, 2) != get(old, URGENT_AT, 2));
    let others = (old[FLAGS_AT] ^ new[FLAGS_AT]) & !(TCP_PUSH | TCP_URGENT);
    if !told || others != 0 || CONSTANT.iter().any(|at| old[*at] != new[*at]) {
        return None;
    }
    let sum = [new[SUM_AT], new[SUM_AT + 1]];
    let mut out = vec![COMPRESSED, context, 0, sum[0], sum[1]];
    for (flag, at, octets) in NUMBERS {
        let difference = get(new, at, octets).checked_sub(get(old, at, octets))?;
        if difference > 0 {
            put(difference, &mut out)?;
            out[2] |= flag;
        }
    }
    let difference = get(new, ID_AT, 2).checked_sub(get(old, ID_AT, 2))?;
    if difference != 1 {
        put(difference, &mut out).filter(|()| difference > 0)?;
        out[2] |= ID;
    }
    if new[FLAGS_AT] & TCP_PUSH != 0 {
        out[2] |= PUSH;
    }
    Some(out)
}

/// Changes `headers` to what a compressed packet says; the rest of the packet. `None` if it is damaged.
pub fn decompress<'a>(headers: &mut Headers, packet: &'a [u8]) -> Option<&'a [u8]> {
    let (flags, mut rest) = (*packet.get(2)?, packet.get(FIXED..)?);
    let mut new = *headers;
    new[SUM_AT..SUM_AT + 2].copy_from_slice(&packet[3..FIXED]);
    for (flag, at, octets) in NUMBERS {
        if flags & flag != 0 {
            let value = get(&new, at, octets).wrapping_add(take(&mut rest)?);
            set(&mut new, at, octets, value);
        }
    }
    let difference = if flags & ID == 0 { 1 } else { take(&mut rest)? };
    let id = get(&new, ID_AT, 2).wrapping_add(difference);
    set(&mut new, ID_AT, 2, id);
    let tcp_flags = new[FLAGS_AT] & !(TCP_PUSH | TCP_URGENT);
    let push = if flags & PUSH != 0 { TCP_PUSH } else { 0 };
    let urgent = if flags & URGENT != 0 { TCP_URGENT } else { 0 };
    new[FLAGS_AT] = tcp_flags | push | urgent;
    set_length(&mut new, HEADERS + rest.len())?;
    *headers = new;
    Some(rest)
}

/// Sets length and checksum of the IP header.
fn set_length(headers: &mut Headers, length: usize) -> Option<()> {
    let length = u16::try_from(length).ok()?;
    headers[2..4].copy_from_slice(&length.to_be_bytes());
    headers[10..12].fill(0);
    let sum = checksum::of(&headers[..ipv4::HEADER]);
    headers[10..12].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Headers of a connection's packet without payload.
    fn headers(id: u16, numbers: [u32; 2], window: u16, push: bool) -> Headers {
        let mut headers = [0; HEADERS];
        (headers[0], headers[8], headers[9]) = (0x45, 64, ipv4::TCP);
        headers[ipv4::HEADER + 12] = 0x50;
        headers[FLAGS_AT] = 0x10 | if push { TCP_PUSH } else { 0 };
        set(&mut headers, ID_AT, 2, id.into());
        set(&mut headers, ipv4::HEADER + 4, 4, numbers[0]);
        set(&mut headers, ipv4::HEADER + 8, 4, numbers[1]);
        set(&mut headers, ipv4::HEADER + 14, 2, window.into());
        set(&mut headers, SUM_AT, 2, numbers[0] & 0xffff);
        set_length(&mut headers, HEADERS).unwrap();
        headers
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(id: u16, more_id in 0u16..400, n: [u32; 2], more in [0u32..70_000, 0u32..300],
                                          window: u16, more_window: u16, push: bool) {
            let old = headers(id, n, window, false);
            let next = [n[0].wrapping_add(more[0]), n[1].wrapping_add(more[1])];
            let new = headers(id.wrapping_add(more_id), next, window.wrapping_add(more_window), push);
            if let Some(mut bytes) = compress(3, &old, &new) {
                bytes.extend(b"xy");
                let mut known = old;
                prop_assert_eq!(decompress(&mut known, &bytes), Some(&b"xy"[..]));
                let mut whole = new;
                set_length(&mut whole, HEADERS + 2).unwrap();
                prop_assert_eq!(known, whole);
            }
        }

        #[test]
        fn damaged_packets_change_nothing_or_a_context(bytes: Vec<u8>) {
            let old = headers(1, [2, 3], 4, true);
            let mut known = old;
            if decompress(&mut known, &bytes).is_none() {
                prop_assert_eq!(known, old);
            }
        }
    }

    #[test]
    fn a_packet_in_order_needs_few_octets() {
        let old = headers(7, [1000, 5], 100, false);
        let new = headers(8, [1300, 5], 100, true);
        let flags = PUSH | 1 << 3;
        assert_eq!(
            compress(3, &old, &new),
            Some(vec![2, 3, flags, 5, 20, 0, 1, 44])
        );
        assert_eq!(compress(3, &new, &old), None);
    }
}
