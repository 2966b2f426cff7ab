// SPDX-License-Identifier: Apache-2.0
//! Marks IP packets with a differentiated services code point (RFC 2474).
use crate::frame::headers::{IPV4, IPV6, be16};

/// Bytes of the fixed header of IPv4 up to the checksum's end.
const IPV4_CHECKED: usize = 12;
const CHECKSUM: usize = 10;
/// Bits of congestion notification (RFC 3168), which stay.
const ECN: u8 = 3;

/// Writes `dscp` into the packet that begins at `payload`. Other frames stay as they are.
pub fn mark(frame: &mut [u8], payload: usize, dscp: u8) {
    let kind = payload.checked_sub(2).and_then(|at| be16(frame, at));
    let packet = frame.get_mut(payload..).unwrap_or_default();
    match kind {
        Some(IPV4) => v4(packet, dscp),
        Some(IPV6) => v6(packet, dscp),
        _ => (),
    }
}

/// The checksum follows the changed word (RFC 1624, equation 3).
fn v4(packet: &mut [u8], dscp: u8) {
    let Some(header) = packet.first_chunk_mut::<IPV4_CHECKED>() else {
        return;
    };
    let before = u16::from_be_bytes([header[0], header[1]]);
    header[1] = dscp << 2 | header[1] & ECN;
    let after = u16::from_be_bytes([header[0], header[1]]);
    let sum = u16::from_be_bytes([header[CHECKSUM], header[CHECKSUM + 1]]);
    let sum = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    header[CHECKSUM..].copy_from_slice(&sum.to_be_bytes());
}

/// The traffic class lies across the first two bytes.
fn v6(packet: &mut [u8], dscp: u8) {
    let Some(header) = packet.first_chunk_mut::<2>() else {
        return;
    };
    let class = header[0] << 4 | header[1] >> 4;
    let class = dscp << 2 | class & ECN;
    *header = [header[0] & 0xf0 | class >> 4, class << 4 | header[1] & 0x0f];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of a sound header is 0xffff (RFC 1071).
    fn sum(header: &[u8]) -> u32 {
        let words = header
            .chunks_exact(2)
            .map(|w| u32::from(be16(w, 0).unwrap()));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn each_mark_keeps_the_checksum_and_the_congestion_bits() {
        let mut frame = vec![0; 12];
        frame.extend([
            8, 0, 0x45, 1, 0, 28, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        let wanted = !(sum(&frame[14..]) as u16);
        frame[24..26].copy_from_slice(&wanted.to_be_bytes());
        for dscp in 0..=63 {
            mark(&mut frame, 14, dscp);
            assert_eq!((frame[15] >> 2, frame[15] & ECN), (dscp, 1));
            assert_eq!(sum(&frame[14..]), 0xffff, "{dscp}");
        }
    }

    #[test]
    fn ipv6_keeps_version_and_flow_label() {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0x3a, 0xbc, 0xde]);
        mark(&mut frame, 14, 46);
        assert_eq!(frame[14..], [0x6b, 0xba, 0xbc, 0xde]);
    }

    #[test]
    fn other_and_short_frames_stay() {
        for kind in [[8, 6], [0x88, 0xcc], [8, 0], [0x86, 0xdd]] {
            let mut frame = vec![0; 12];
            frame.extend(kind);
            frame.extend([0x45; 1]);
            let before = frame.clone();
            mark(&mut frame, 14, 10);
            assert_eq!(frame, before);
            mark(&mut frame, 0, 10);
            mark(&mut frame, 99, 10);
            assert_eq!(frame, before);
        }
    }
}
