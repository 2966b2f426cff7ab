// SPDX-License-Identifier: Apache-2.0
//! MD5 sums of payloads, which tell packets with the same content.
use md5::{Digest, Md5};

use crate::prelude::*;

/// The letters for six bits.
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@";

/// The sum.
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// A sum with six bits a letter, the lowest bits first.
pub fn letters(sum: [u8; 16]) -> String {
    let bits = u128::from_le_bytes(sum);
    let letter = |n: u32| char::from(LETTERS[usize::from((bits >> (6 * n)) as u8 & 63)]);
    (0..22).map(letter).collect()
}

/// A sum in hexadecimal digits.
pub fn hex(sum: [u8; 16]) -> String {
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_algorithm_in_both_forms() {
        assert_eq!(hex(md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
        // 90 01 50: 010000, 0001 10 (1 and the upper bits of 90), 0000 0000 ...: q, g, a, u
        let text = letters(md5(b"abc"));
        assert!(text.starts_with("qgau") && text.len() == 22, "{text}");
    }
}
