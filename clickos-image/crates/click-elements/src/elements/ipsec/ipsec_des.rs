// SPDX-License-Identifier: Apache-2.0
//! Encrypts or decrypts ESP packets with DES-CBC, which is not safe any more.
//!
//! # Synopsis
//! `IPsecDES(ENCRYPT)`: with 1 the data after the ESP header is encrypted, with 0 decrypted, except for the 12 bytes of
//! the digest at its end (RFC 2405). The key is the first 8 bytes of that of the packet's association, which
//! `RadixIPsecLookup` chose.
//! # Ports
//! 1/1, agnostic. Packets without an association, and those whose length is wrong, are dropped, the first five with a
//! message.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Packets of a wrong length are dropped.
//! # Example
//! `rt[1] -> IPsecESPEncap -> IPsecAuthHMACSHA1(0) -> IPsecDES(1) -> IPsecEncap(50) -> ...`
use crate::ipsec::chained::Chained;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPsecDES",
    args: &[mandatory("ENCRYPT")],
    build: |a| {
        let encrypt = a.need("ENCRYPT")?;
        let complaint = "wrong length for DES";
        Some(Box::new(Chained::new(encrypt, complaint, |a| &a.des)))
    },
    ..Class::DEFAULT
};

#[cfg(test)]
mod tests {
    use crate::ipsec::chained::{decrypt, encrypt};
    use des::Des;
    use des::cipher::KeyInit;

    /// The example of FIPS 81, table C1.
    #[test]
    fn chained_as_in_the_standard() {
        let des = Des::new(&0x0123_4567_89ab_cdef_u64.to_be_bytes().into());
        let vector = 0x1234_5678_90ab_cdef_u64.to_be_bytes();
        let text = b"Now is the time for all ";
        let plain = [&[0; 8], &vector[..], text, &[7; 12]].concat();
        let mut packet = plain.clone();
        encrypt(&des, &mut packet).unwrap();
        let want = [
            0xe5c7_cdde_872b_f27c_u64,
            0x43e9_3400_8c38_9c0f,
            0x6837_8849_9a7c_05f6,
        ];
        assert_eq!(packet[16..40], want.map(u64::to_be_bytes).concat());
        decrypt(&des, &mut packet).unwrap();
        assert_eq!(packet, plain);
        assert_eq!(decrypt(&des, &mut [0; 27]), None);
    }
}
