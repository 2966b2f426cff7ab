// SPDX-License-Identifier: Apache-2.0
//! Encrypts or decrypts ESP packets with DES-CBC, which is not safe any more.
//!
//! # Synopsis
//! `IPsecDES(ENCRYPT)`: with 1 the data behind the ESP header is encrypted, with 0 decrypted, except for the 12 bytes of
//! the digest at its end (RFC 2405). The key is the first 8 bytes of that of the packet's association, which
//! `RadixIPsecLookup` chose.
//! # Ports
//! 1/1, agnostic. Packets without an association, and those whose length is wrong, are dropped, the first five with a
//! message.
//! # Handlers
//! None of its own.
//! # Example
//! `rt[1] -> IPsecESPEncap -> IPsecAuthHMACSHA1(0) -> IPsecDES(1) -> IPsecEncap(50) -> ...`
use des::Des;
use des::cipher::generic_array::GenericArray;
use des::cipher::{BlockDecrypt, BlockEncrypt};

use crate::ipsec::{User, first, payload, xor};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPsecDES",
    args: &[mandatory("ENCRYPT")],
    build: |a| {
        let encrypt = a.need("ENCRYPT")?;
        Some(Box::new(IPsecDES {
            encrypt,
            user: User::default(),
        }))
    },
    ..Class::DEFAULT
};

/// Bytes of a block.
const BLOCK: usize = 8;

struct IPsecDES {
    encrypt: bool,
    user: User,
}

fn encrypt(des: &Des, data: &mut [u8]) -> Option<()> {
    let (vector, data) = payload(data, BLOCK)?;
    let mut before = *vector;
    for block in data.chunks_exact_mut(BLOCK) {
        xor(block, &before);
        des.encrypt_block(GenericArray::from_mut_slice(block));
        before = first(block);
    }
    Some(())
}

fn decrypt(des: &Des, data: &mut [u8]) -> Option<()> {
    let (vector, data) = payload(data, BLOCK)?;
    let mut before = *vector;
    for block in data.chunks_exact_mut(BLOCK) {
        let next = first(block);
        des.decrypt_block(GenericArray::from_mut_slice(block));
        xor(block, &before);
        before = next;
    }
    Some(())
}

impl Element for IPsecDES {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.user.connect(ctx);
        Ok(())
    }

    fn process(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        let Some(association) = self.user.association(ctx, &packet) else {
            return Out::Drop;
        };
        let done = if self.encrypt {
            encrypt(&association.des, packet.data_mut())
        } else {
            decrypt(&association.des, packet.data_mut())
        };
        drop(association);
        if done.is_none() {
            self.user.complain(ctx, "wrong length for DES");
            return Out::Drop;
        }
        Out::Port(0, packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
