// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
use core::net::Ipv4Addr;

use crate::field::array_at;

/// Adds bytes to a running sum; all but the last piece must have even length.
#[inline]
pub fn add(mut sum: u64, bytes: &[u8]) -> u64 {
    let (mut total, rest) = match bytes.len() {
        ..FEW => (0, bytes),
        _ => add_blocks(bytes),
    };
    let mut words = rest.chunks_exact(size_of::<u64>());
    for word in &mut words {
        let word = u64::from_ne_bytes(core::array::from_fn(|n| word[n]));
        let (added, carry) = total.overflowing_add(word);
        total = added + u64::from(carry);
    }
    // neither the order of bytes nor the length of words matters up to here (RFC 1071, section 2)
    sum += u64::from(u16::from_be(fold(total)));
    let mut halves = words.remainder().chunks_exact(2);
    for half in &mut halves {
        sum += u64::from(u16::from_be_bytes([half[0], half[1]]));
    }
    match *halves.remainder() {
        [last] => sum + (u64::from(last) << 8),
        _ => sum,
    }
}

/// Bytes of words that are added at a time where there are many.
const BLOCK: usize = 32;
/// Fewer bytes are added word by word.
const FEW: usize = 3 * BLOCK;

/// The sum of all whole blocks of bytes as 32-bit words, and what is behind them. The words of a block go to different
/// sums, so that none has to wait for the carry of the word before.
#[inline(never)]
fn add_blocks(bytes: &[u8]) -> (u64, &[u8]) {
    let mut blocks = bytes.chunks_exact(BLOCK);
    let mut sums = [0u64; BLOCK / size_of::<u64>()];
    for block in &mut blocks {
        for (n, sum) in sums.iter_mut().enumerate() {
            let (added, carry) = sum.overflowing_add(u64::from_ne_bytes(array_at(block, 8 * n)));
            *sum = added + u64::from(carry);
        }
    }
    let halves = sums.iter().map(|sum| (sum >> 32) + (sum & 0xffff_ffff));
    (halves.sum(), blocks.remainder())
}

/// The sum of the four parts of a sum, with the carries added.
#[inline]
fn fold(sum: u64) -> u16 {
    // one carry is left at most after each step: 33, 18, 17, 16 bits
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// True if bytes with a checksum in them, an IPv4 header for one, are right.
#[inline]
pub fn is_right(bytes: &[u8]) -> bool {
    match <&[u8; 20]>::try_from(bytes) {
        Ok(header) => is_right_header(header),
        Err(_) => of(bytes) == 0,
    }
}

/// Like [`is_right`] for an IPv4 header without options. The order of a word's bytes does not matter for that (RFC
/// 1071, section 2), and neither does the length of a word, as 2^16 and its powers leave 1 when divided by 65,535: so
/// the sum has to be a multiple of that, and a header of zeros, whose sum is 0, is not.
#[inline]
pub fn is_right_header(header: &[u8; 20]) -> bool {
    let word = |at: usize| u64::from_ne_bytes(array_at(header, at));
    let last = u64::from(u32::from_ne_bytes(array_at(header, 16)));
    let (sum, carry) = word(0).overflowing_add(word(8));
    let (sum, last_carry) = sum.overflowing_add(last + u64::from(carry));
    is_multiple(sum + u64::from(last_carry))
}

/// True if 65,535 divides a number. As it is odd, multiplying by its inverse maps its multiples to the least numbers.
#[inline]
fn is_multiple(n: u64) -> bool {
    const MULTIPLES: u64 = u64::MAX / 0xffff;
    const INVERSE: u64 = MULTIPLES.wrapping_neg();
    n.wrapping_mul(INVERSE) <= MULTIPLES
}

/// Folds a running sum into a checksum field's value.
#[inline]
pub fn finish(sum: u64) -> u16 {
    !fold(sum)
}

/// The checksum of `bytes`; 0 if they contain a right one.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    finish(add(0, bytes))
}

/// The running sum of the pseudo header that TCP and UDP checksums begin with (RFC 793, RFC 768).
#[inline]
pub fn pseudo(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u16) -> u64 {
    let sum = add(add(0, &source.octets()), &destination.octets());
    sum + u64::from(protocol) + u64::from(length)
}

/// The checksum after a 16-bit word it covers changed from `old` to `new` (RFC 1624, equation 3).
#[inline]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum >> 16) + (sum & 0xffff);
    // what is cut off has been added
    !((folded + (folded >> 16)) as u16)
}

/// Like [`update`] for 32 bits, such as an address.
#[inline]
pub fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let halves = |v: u32| {
        (
            u16::try_from(v >> 16).expect("16 bits"),
            u16::try_from(v & 0xffff).expect("16 bits"),
        )
    };
    let ((old_high, old_low), (new_high, new_low)) = (halves(old), halves(new));
    update(update(checksum, old_high, new_high), old_low, new_low)
}

/// An updated checksum of a message that may have nothing but zeros next to it, as ICMP's may: their checksum is
/// 0xffff, which an update cannot tell from 0. The checksum's own place is `at`.
#[inline]
pub fn settle_zero(checksum: u16, message: &[u8], at: usize) -> u16 {
    let mut rest = message.iter().enumerate().filter(|(n, _)| n & !1 != at);
    match checksum {
        0 if rest.all(|(_, byte)| *byte == 0) => 0xffff,
        _ => checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_header() {
        // RFC 1071, section 3
        assert_eq!(
            of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
        assert_eq!(of(&[]), 0xffff);
        assert_eq!(of(&[0x12]), !0x1200);
    }

    #[test]
    fn only_a_message_of_zeros_has_the_other_zero() {
        assert_eq!(settle_zero(update(!0x0800, 0x0800, 0), &[0; 9], 2), 0xffff);
        assert_eq!(settle_zero(0, &[0, 0, 7, 7, 0], 2), 0xffff);
        assert_eq!(settle_zero(0, &[0xff, 0xff, 0, 0], 2), 0);
        assert_eq!(settle_zero(5, &[0; 8], 2), 5);
    }

    proptest! {
        #[test]
        fn a_sum_in_pieces_is_that_of_its_16_bit_words(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xff)], 0..400),
            at in 0usize..200,
        ) {
            let (first, second) = bytes.split_at((2 * at).min(bytes.len() & !1));
            let mut words: u64 = 0;
            for word in bytes.chunks(2) {
                words += u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0));
            }
            let simple = (0..4).fold(words, |sum, _| (sum >> 16) + (sum & 0xffff));
            prop_assert_eq!(u64::from(!finish(add(add(0, first), second))), simple);
        }

        #[test]
        fn a_sum_over_its_own_checksum_is_zero(mut bytes in prop::collection::vec(any::<u8>(), 2..100)) {
            bytes[0..2].fill(0);
            let sum = of(&bytes);
            bytes[0..2].copy_from_slice(&sum.to_be_bytes());
            prop_assert!(of(&bytes) == 0 || of(&bytes) == 0xffff);
        }

        #[test]
        fn a_header_is_right_if_its_sum_is_zero(
            mut bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xff)], 20..22), wrong: bool,
        ) {
            bytes[10..12].fill(0);
            let sum = of(&bytes).wrapping_add(u16::from(wrong));
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            prop_assert_eq!(is_right(&bytes), of(&bytes) == 0);
            prop_assert_eq!(is_right(&bytes), !wrong);
        }

        #[test]
        fn incremental_update_equals_recomputation(
            mut bytes in prop::collection::vec(any::<u8>(), 20..=20),
            at in 1usize..8,
            new in any::<u32>(),
        ) {
            // a header is never all zero: its first word holds version and length
            bytes[0] = 0x45;
            bytes[18..20].fill(0);
            let (before, at) = (of(&bytes), at * 2);
            let old = u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            bytes[at..at + 4].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update_u32(before, old, new), of(&bytes));
        }
    }
}
