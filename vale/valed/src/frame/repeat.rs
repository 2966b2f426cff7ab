// SPDX-License-Identifier: Apache-2.0
//! Frames of one flow that follow each other.
use crate::frame::headers::ETHERNET;

/// The first bytes of a frame, up to the flags of TCP.
const BYTES: usize = 48;
const WORDS: usize = BYTES / 8;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowBytes([u64; WORDS]);

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
        let total = usize::from(u16::from_be_bytes([head[16], head[17]]));
        let is_whole = head[20] & 0x3f == 0 && head[21] == 0;
        let is_plain = head[12..15] == [8, 0, 0x45] && is_whole;
        if !is_plain || total < least || total > frame.len() - ETHERNET {
            return None;
        }
        let mut words = [0; WORDS];
        for (n, word) in words.iter_mut().enumerate() {
            let bytes = std::array::from_fn(|at| head[n * 8 + at]);
            *word = u64::from_ne_bytes(bytes) & MASKS[n];
        }
        words[WORDS - 1] = u64::from_ne_bytes(std::array::from_fn(|at| head[40 + at])) & last;
        Some(Self(words))
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
        for other in &others {
            assert_eq!(FlowBytes::of(other), None, "{other:?}");
        }
        let mut short = frame(TCP);
        short[17] = 33;
        assert_eq!(FlowBytes::of(&short), None);
    }
}
