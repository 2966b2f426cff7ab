// SPDX-License-Identifier: Apache-2.0
//! Words for errors about arguments that also contain keys.
use crate::prelude::*;

/// Bytes of the shortest key.
const KEY: usize = 16;
/// Bytes of the longest network.
const NETWORK: usize = 43;

/// True for a word that is as long as keys are, and no address.
pub fn may_be_key(word: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || b".:/".contains(&byte);
    let is_address =
        word.len() <= NETWORK && word.contains(['.', ':']) && word.bytes().all(is_digit);
    word.len() >= KEY && !is_address
}

/// A word between quotes; only its length if it may be a key in a wrong place.
pub fn unless_key(word: &str) -> String {
    match may_be_key(word) {
        true => format!("{} bytes", word.len()),
        false => format!("\"{}\"", word.shown()),
    }
}
