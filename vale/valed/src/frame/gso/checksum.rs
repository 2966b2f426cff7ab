// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071).
use super::vnet::Checksum;

/// The ones' complement sum of `bytes` in 16-bit words, added to `sum`; not folded.
pub fn add(sum: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let sum = words.fold(sum, |sum, w| {
        sum + u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]]))
    });
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

/// Folds a sum into a checksum.
pub fn finish(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// Fills in a checksum. [`super::TxOffload::parse`] has checked its bounds.
pub fn complete(frame: &mut [u8], checksum: Checksum) {
    let start = usize::from(checksum.start);
    let at = start + usize::from(checksum.offset);
    let value = finish(add(0, &frame[start..]));
    // 0 means "no checksum" to UDP, and 0xffff is equal to it in ones' complement.
    let value = if value == 0 { 0xffff } else { value };
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(add(0, &bytes)), !0xddf2);
    }

    #[test]
    fn odd_lengths_are_padded_with_zero() {
        assert_eq!(finish(add(0, &[0x12, 0x34, 0x56])), !(0x1234 + 0x5600));
        assert_eq!(finish(add(0, &[])), 0xffff);
        assert_eq!(finish(add(0, &[0xff; 65_535])), finish(add(0, &[0xff, 0])));
    }

    /// The IPv4 header of a well-known example: its checksum is 0xb861.
    #[test]
    fn a_known_header() {
        let mut header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        complete(
            &mut header,
            Checksum {
                start: 0,
                offset: 10,
            },
        );
        assert_eq!(header[10..12], [0xb8, 0x61]);
    }
}
