// SPDX-License-Identifier: Apache-2.0
//! The beginnings of a batch's packets side by side, so that one field after the other is looked at in all of them
//! without a look at how long each is, and without waiting for the outcome of a decision before.
use alloc::vec::Vec;

use crate::prelude::Packet;

/// Packets that are looked at together.
pub const LANES: usize = 32;
/// Bytes of each: the longest common headers, IPv4 and TCP without options.
pub const WIDTH: usize = 40;

/// A bit for each packet, the first one the lowest.
pub type LaneSet = u32;

/// Packets side by side; the memory is used again for the next ones.
#[derive(Default)]
pub struct Lanes {
    begins: Vec<[u8; WIDTH]>,
    /// Those that have to be looked at by themselves; what is here of them means nothing.
    others: LaneSet,
}

impl Lanes {
    /// Puts in place of what there was what `begin` says of each of at most `LANES` packets.
    #[inline]
    pub fn fill<'a>(
        &mut self,
        packets: &'a [Packet],
        begin: impl Fn(&'a Packet) -> Option<&'a [u8; WIDTH]>,
    ) {
        let mut others = 0;
        self.begins.clear();
        self.begins
            .extend(packets.iter().enumerate().map(|(n, packet)| {
                *begin(packet).unwrap_or_else(|| {
                    others |= 1 << n;
                    &[0; WIDTH]
                })
            }));
        self.others = others;
    }

    /// One for each packet, in their order.
    #[inline]
    pub fn iter(&self) -> core::slice::Iter<'_, [u8; WIDTH]> {
        self.begins.iter()
    }

    /// The numbers of those packets that have to be looked at by themselves.
    #[inline]
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        members(self.others)
    }
}

/// The numbers of the members of a set.
#[inline]
pub fn members(mut set: LaneSet) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let member = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        member
    })
}

/// Bytes of a lane from `at` on, or the last ones.
#[inline]
pub fn bytes<const N: usize>(lane: &[u8; WIDTH], at: usize) -> [u8; N] {
    let at = at.min(WIDTH - N);
    let mut bytes = [0; N];
    bytes.copy_from_slice(&lane[at..at + N]);
    bytes
}
