// SPDX-License-Identifier: Apache-2.0
//! Overwrites bytes of packets.
//!
//! # Synopsis
//! `StoreData(OFFSET, DATA)`: DATA, such as `\<0800>`, is written OFFSET bytes into the packet; both
//! mandatory. The packet's length does not change: what lies after its end is not written.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> StoreData(0, \<020000000001>) -> ToDevice(1);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StoreData",
    args: &[mandatory("OFFSET"), mandatory("DATA")],
    build: |a| {
        let (offset, data) = (a.need("OFFSET"), a.need::<Bytes>("DATA"));
        Some(Box::new(StoreData {
            offset: offset?,
            word: data.as_ref().and_then(|data| Word::of(&data.0)),
            data: data?.0,
        }))
    },
    ..Class::DEFAULT
};

struct StoreData {
    offset: usize,
    data: Vec<u8>,
    /// The data, if it fits.
    word: Option<Word>,
}

/// Bytes that are written with those behind them, which stay as they are.
#[derive(Clone, Copy)]
struct Word {
    bytes: u64,
    kept: u64,
}

impl Word {
    /// Eight bytes or less.
    fn of(data: &[u8]) -> Option<Self> {
        let mut bytes = [0; 8];
        bytes.get_mut(..data.len())?.copy_from_slice(data);
        let kept = u64::MAX.checked_shl(8 * data.len() as u32).unwrap_or(0);
        Some(Self {
            bytes: u64::from_le_bytes(bytes),
            kept,
        })
    }
}

impl InPlace for StoreData {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let place = packet.data_mut().get_mut(self.offset..).unwrap_or_default();
        if let (Some(word), Some(place)) = (self.word, place.first_chunk_mut()) {
            let kept = u64::from_le_bytes(*place) & word.kept;
            *place = (kept | word.bytes).to_le_bytes();
            return 0;
        }
        for (byte, new) in place.iter_mut().zip(&self.data) {
            *byte = *new;
        }
        0
    }
}

impl Element for StoreData {
    in_place!(plain);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_eight_bytes_are_a_word() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        for length in 0..=8 {
            let word = Word::of(&data[..length]).unwrap();
            let stored = (word.kept | word.bytes).to_le_bytes();
            assert_eq!(stored[..length], data[..length]);
            assert!(stored[length..].iter().all(|byte| *byte == 0xff));
        }
        assert!(Word::of(&data).is_none());
    }
}
