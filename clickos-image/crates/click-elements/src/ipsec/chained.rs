// SPDX-License-Identifier: Apache-2.0
//! Block ciphers over the payload of ESP packets, each block chained to the next by its first 8 bytes, as Click does.
use aes::cipher::generic_array::GenericArray;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{BlockDecrypt, BlockEncrypt, BlockSizeUser};

use super::{Association, User, first, payload, xor};
use crate::prelude::*;

/// The element of one cipher.
pub struct Chained<C> {
    encrypt: bool,
    /// The message about a packet of wrong length.
    complaint: &'static str,
    cipher: fn(&Association) -> &C,
    user: User,
}

impl<C> Chained<C> {
    /// Encrypts or decrypts with an association's cipher.
    pub fn new(encrypt: bool, complaint: &'static str, cipher: fn(&Association) -> &C) -> Self {
        Self {
            encrypt,
            complaint,
            cipher,
            user: User::default(),
        }
    }
}

/// Encrypts an ESP packet's payload in place; nothing if its length is wrong.
pub fn encrypt<C: BlockEncrypt>(cipher: &C, data: &mut [u8]) -> Option<()> {
    let size = <C as BlockSizeUser>::BlockSize::USIZE;
    let (vector, data) = payload(data, size)?;
    let mut before = *vector;
    for block in data.chunks_exact_mut(size) {
        xor(block, &before);
        cipher.encrypt_block(GenericArray::from_mut_slice(block));
        before = first(block);
    }
    Some(())
}

/// Decrypts an ESP packet's payload in place; nothing if its length is wrong.
pub fn decrypt<C: BlockDecrypt>(cipher: &C, data: &mut [u8]) -> Option<()> {
    let size = <C as BlockSizeUser>::BlockSize::USIZE;
    let (vector, data) = payload(data, size)?;
    let mut before = *vector;
    for block in data.chunks_exact_mut(size) {
        let next = first(block);
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
        xor(block, &before);
        before = next;
    }
    Some(())
}

impl<C: BlockEncrypt + BlockDecrypt + 'static> InPlace for Chained<C> {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(association) = self.user.association(ctx, packet) else {
            return DROPPED;
        };
        let cipher = (self.cipher)(&association);
        let done = if self.encrypt {
            encrypt(cipher, packet.data_mut())
        } else {
            decrypt(cipher, packet.data_mut())
        };
        drop(association);
        if done.is_none() {
            self.user.complain(ctx, self.complaint);
            return DROPPED;
        }
        0
    }
}

impl<C: BlockEncrypt + BlockDecrypt + 'static> Element for Chained<C> {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.user.connect(ctx);
        Ok(())
    }
}
