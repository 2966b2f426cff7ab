// SPDX-License-Identifier: Apache-2.0
//! Frames of one flow.
use crate::frame::headers::ETHERNET;

/// The first bytes of a frame, up to the flags of TCP.
const BYTES: usize = 48;
const WORDS: usize = BYTES / 8;
/// Numbers by which a burst finds its flows.
pub const PLACES: usize = 16;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Marks the bytes that [`FlowBytes`] has, but for the flags of TCP: addresses, type, version, fragment,
/// protocol, addresses, ports.
const MASKS: [u64; WORDS] = [
    u64::MAX,
    u64::from_ne_bytes([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]),
    u64::from_ne_bytes([0, 0, 0, 0, 0x3f, 0xff, 0, 0xff]),
    u64::from_ne_bytes([0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    u64::from_ne_bytes([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]),
    0,
];
const FLAGS: u64 = u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 0, 0xff]);

/// The bytes by which guard, filters and chains judge a packet of TCP or UDP: IPv4 without tags, options and
/// fragments. Frames with the same ones get the same verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowBytes {
    words: [u64; WORDS],
    /// The mask of the last word.
    last: u64,
    /// The least length of the packet.
    least: usize,
}

fn word(head: &[u8; BYTES], n: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| head[n * 8 + at]))
}

fn total(head: &[u8; BYTES]) -> usize {
    usize::from(u16::from_be_bytes([head[16], head[17]]))
}

impl FlowBytes {
    /// None for other frames, and for packets that are too short for their headers or longer than the frame.
    #[inline]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let head: &[u8; BYTES] = frame.first_chunk()?;
        let (least, last) = match head[23] {
            UDP => (28, 0),
            TCP => (34, FLAGS),
            _ => return None,
        };
        let total = total(head);
        let is_whole = head[20] & 0x3f == 0 && head[21] == 0;
        let is_plain = head[12..15] == [8, 0, 0x45] && is_whole;
        if !is_plain || total < least || total > frame.len() - ETHERNET {
            return None;
        }
        let mut words = std::array::from_fn(|n| word(head, n) & MASKS[n]);
        words[WORDS - 1] = word(head, WORDS - 1) & last;
        Some(Self { words, last, least })
    }

    /// A number below [`PLACES`] for a frame, the same for those of one flow.
    #[inline]
    pub fn place(frame: &[u8]) -> usize {
        const FACTOR: u32 = 0x9e37_79b1;
        let ports = frame.get(34..38).and_then(|ports| ports.first_chunk());
        let ports = ports.map_or(0, |ports| u32::from_ne_bytes(*ports));
        (ports.wrapping_mul(FACTOR) >> (u32::BITS - PLACES.ilog2())) as usize
    }

    /// True for a frame of these bytes: [`Self::of`] returns the same for it.
    #[inline]
    pub fn are_of(&self, frame: &[u8]) -> bool {
        let Some(head) = frame.first_chunk() else {
            return false;
        };
        let mut other = (word(head, WORDS - 1) & self.last) ^ self.words[WORDS - 1];
        for (n, mask) in MASKS[..WORDS - 1].iter().enumerate() {
            other |= (word(head, n) & mask) ^ self.words[n];
        }
        let total = total(head);
        other == 0 && self.least <= total && total <= frame.len() - ETHERNET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(protocol: u8) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..80).collect();
        frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 60, 0, 1, 0, 0, 64, protocol]);
        frame
    }

    #[test]
    fn each_byte_of_the_flow_counts_and_no_other_one() {
        // Type of service, length, identifier, DF, time to live, checksum, and what is behind the ports.
        let free = |at: usize| matches!(at, 15..20 | 22 | 24..26 | 38..);
        for protocol in [TCP, UDP] {
            let first = FlowBytes::of(&frame(protocol)).unwrap();
            for at in 0..80 {
                let mut other = frame(protocol);
                // The length stays within the frame.
                other[at] ^= if at == 16 { 0 } else { 1 };
                let same = FlowBytes::of(&other) == Some(first);
                assert_eq!(first.are_of(&other), same, "protocol {protocol}, byte {at}");
                let places = [&frame(protocol), &other].map(|frame| FlowBytes::place(frame));
                assert!(!same || places[0] == places[1]);
                assert!(places[1] < PLACES);
                let is_free = free(at) && !(protocol == TCP && at == 47);
                assert_eq!(same, is_free, "protocol {protocol}, byte {at}");
            }
            let mut unfragmented = frame(protocol);
            unfragmented[20] = 0x40;
            assert_eq!(FlowBytes::of(&unfragmented), Some(first));
        }
    }

    #[test]
    fn packets_that_are_judged_by_other_bytes_have_none() {
        let changed = |at: usize, value: u8| {
            let mut frame = frame(UDP);
            frame[at] = value;
            frame
        };
        let others = [
            changed(14, 0x46),
            changed(20, 0x20),
            changed(21, 1),
            changed(23, 1),
            changed(12, 0x81),
            changed(16, 1),
            changed(17, 27),
            changed(17, 67),
            frame(UDP)[..47].to_vec(),
        ];
        let first = FlowBytes::of(&frame(UDP)).unwrap();
        for other in &others {
            assert_eq!(FlowBytes::of(other), None, "{other:?}");
            assert!(!first.are_of(other), "{other:?}");
        }
        let mut short = frame(TCP);
        short[17] = 33;
        assert_eq!(FlowBytes::of(&short), None);
    }
}
