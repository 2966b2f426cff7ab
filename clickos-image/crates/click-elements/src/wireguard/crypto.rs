// SPDX-License-Identifier: Apache-2.0
//! The functions that WireGuard's messages are made of: BLAKE2s, HKDF with it, and ChaCha20-Poly1305 (WireGuard's
//! paper, section 5.4).
use blake2::digest::consts::U16;
use blake2::digest::{Digest, FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac};
use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, XChaCha20Poly1305};
use hmac::{Mac, SimpleHmac};

/// Keys, hashes and points of the curve.
pub const KEY: usize = 32;
/// A key.
pub type Key = [u8; KEY];
/// Bytes of an authentication tag.
pub const TAG: usize = 16;
/// Bytes of a keyed hash.
pub const MAC: usize = 16;
/// Bytes of the nonce of an encrypted cookie.
pub const LONG_NONCE: usize = 24;

/// The hash of several texts, one behind the other.
pub fn hash(parts: &[&[u8]]) -> Key {
    let mut state = Blake2s256::new();
    parts
        .iter()
        .for_each(|part| Update::update(&mut state, part));
    state.finalize_fixed().into()
}

/// The keyed hash of several texts. Keys have 16 or 32 bytes.
pub fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC] {
    let mut state =
        <Blake2sMac<U16> as KeyInit>::new_from_slice(key).expect("keys have at most 32 bytes");
    parts
        .iter()
        .for_each(|part| Update::update(&mut state, part));
    state.finalize_fixed().into()
}

/// True if two texts are the same. The time does not tell where they differ.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && core::hint::black_box(differences) == 0
}

fn hmac(key: &Key, parts: &[&[u8]]) -> Key {
    let mut state =
        <SimpleHmac<Blake2s256> as KeyInit>::new_from_slice(key).expect("every length is a key's");
    parts.iter().for_each(|part| Mac::update(&mut state, part));
    state.finalize().into_bytes().into()
}

/// N keys of a chain's key and what goes into it.
pub fn derive<const N: usize>(chain: &Key, input: &[u8]) -> [Key; N] {
    let secret = hmac(chain, &[input]);
    let mut last: Option<Key> = None;
    core::array::from_fn(|n| {
        let before: &[u8] = last.as_ref().map_or(&[], |key| key);
        let number = [u8::try_from(n + 1).expect("three keys at most")];
        *last.insert(hmac(&secret, &[before, &number]))
    })
}

fn nonce(counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    nonce
}

/// Encrypts in place; the tag.
pub fn seal(key: &Key, counter: u64, known: &[u8], text: &mut [u8]) -> [u8; TAG] {
    let cipher = ChaCha20Poly1305::new(key.into());
    let sealed = cipher.encrypt_in_place_detached(&nonce(counter).into(), known, text);
    sealed.expect("no packet is too long").into()
}

/// Decrypts in place; false, and the text is unspecified, if the tag is another's.
pub fn open(key: &Key, counter: u64, known: &[u8], text: &mut [u8], tag: &[u8; TAG]) -> bool {
    let cipher = ChaCha20Poly1305::new(key.into());
    let nonce = nonce(counter).into();
    cipher
        .decrypt_in_place_detached(&nonce, known, text, tag.into())
        .is_ok()
}

/// Like [`seal`], with a random nonce.
pub fn seal_long(key: &Key, nonce: &[u8; LONG_NONCE], known: &[u8], text: &mut [u8]) -> [u8; TAG] {
    let cipher = XChaCha20Poly1305::new(key.into());
    let sealed = cipher.encrypt_in_place_detached(nonce.into(), known, text);
    sealed.expect("a cookie is not too long").into()
}

/// Like [`open`], with a random nonce.
pub fn open_long(
    key: &Key,
    nonce: &[u8; LONG_NONCE],
    known: &[u8],
    text: &mut [u8],
    tag: &[u8; TAG],
) -> bool {
    let cipher = XChaCha20Poly1305::new(key.into());
    cipher
        .decrypt_in_place_detached(nonce.into(), known, text, tag.into())
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7693, appendix B: BLAKE2s of "abc".
    #[test]
    fn the_hash_is_that_of_the_standard() {
        assert_eq!(hash(&[b"a", b"bc"])[..4], [0x50, 0x8c, 0x5e, 0x8c]);
        assert_ne!(mac(&[1; 32], &[b"abc"]), mac(&[2; 32], &[b"abc"]));
    }

    /// The first two constants of the handshake follow from its names (WireGuard's paper, section 5.4.2).
    #[test]
    fn a_derivation_is_deterministic_and_its_keys_differ() {
        let [one, two, three] = derive(&[7; KEY], b"input");
        assert_eq!(derive::<1>(&[7; KEY], b"input"), [one]);
        assert!(one != two && two != three && one != three);
    }

    #[test]
    fn a_changed_text_or_tag_is_refused() {
        let mut text = *b"a packet's bytes";
        let tag = seal(&[1; KEY], 5, b"known", &mut text);
        let sealed = text;
        assert!(!open(&[1; KEY], 6, b"known", &mut text, &tag));
        text = sealed;
        assert!(!open(&[1; KEY], 5, b"other", &mut text, &tag));
        text = sealed;
        assert!(open(&[1; KEY], 5, b"known", &mut text, &tag));
        assert_eq!(&text, b"a packet's bytes");
        assert!(same(b"ab", b"ab") && !same(b"ab", b"ac") && !same(b"ab", b"abc"));
    }
}
