// SPDX-License-Identifier: Apache-2.0
//! Encrypts or decrypts ESP packets with AES-128.
//!
//! # Synopsis
//! `IPsecAES(ENCRYPT)`: with 1 the data after the ESP header is encrypted, with 0 decrypted, except for the 12 bytes of
//! the digest at its end; of these the first 8 are included where the data is no multiple of 16 bytes. The key is that
//! of the packet's association, which `RadixIPsecLookup` chose. As in Click, 8 bytes of each block are chained to the next:
//! it understands Click's packets, and not those of RFC 3602.
//! # Ports
//! 1/1, agnostic. Packets without an association, and those whose length is wrong, are dropped, the first five with a
//! message.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Packets of a wrong length are dropped.
//! # Example
//! `rt[1] -> IPsecESPEncap -> IPsecAuthHMACSHA1(0) -> IPsecAES(1) -> IPsecEncap(50) -> ...`
use crate::ipsec::chained::Chained;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPsecAES",
    args: &[mandatory("ENCRYPT")],
    build: |a| {
        let encrypt = a.need("ENCRYPT")?;
        let complaint = "wrong length for AES";
        Some(Box::new(Chained::new(encrypt, complaint, |a| &a.aes)))
    },
    ..Class::DEFAULT
};

#[cfg(test)]
mod tests {
    use crate::ipsec::chained::{decrypt, encrypt};
    use crate::prelude::*;
    use aes::Aes128;
    use aes::cipher::KeyInit;

    fn cipher() -> Aes128 {
        Aes128::new(&core::array::from_fn::<u8, 16, _>(|n| n as u8).into())
    }

    /// FIPS 197, appendix C.1, for the first block with a vector of zeros.
    #[test]
    fn the_first_block_is_that_of_the_standard() {
        let mut packet = [0; 16 + 16 + 12];
        for (n, byte) in packet[16..32].iter_mut().enumerate() {
            *byte = 0x11 * n as u8;
        }
        let plain = packet;
        encrypt(&cipher(), &mut packet).unwrap();
        let want = [
            0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4,
            0xc5, 0x5a,
        ];
        assert_eq!(packet[16..32], want);
        assert_eq!(packet[32..], [0; 12], "the digest is left alone");
        decrypt(&cipher(), &mut packet).unwrap();
        assert_eq!(packet, plain);
    }

    #[test]
    fn half_a_block_takes_8_bytes_of_the_digest_with_it() {
        let plain: Vec<u8> = (0..16 + 40 + 12).collect();
        let mut packet = plain.clone();
        encrypt(&cipher(), &mut packet).unwrap();
        assert_eq!(packet[..16], plain[..16]);
        assert_ne!(packet[56..64], plain[56..64]);
        assert_eq!(packet[64..], plain[64..]);
        decrypt(&cipher(), &mut packet).unwrap();
        assert_eq!(packet, plain);
        for short in [0, 15, 27, 16 + 12 + 1] {
            assert_eq!(
                decrypt(&cipher(), &mut plain.clone()[..short]),
                None,
                "{short}"
            );
        }
    }
}
