// SPDX-License-Identifier: Apache-2.0
//! Packets copied as they are, and short runs of bytes.
use core::ptr;

use crate::packet::Packet;

/// Half a packet, as it is written and read: what was just written in halves is not read as a whole without waiting.
type Half = [u64; 2];
const _: () = assert!(size_of::<Packet>() == 2 * size_of::<Half>());

/// Copies `n` packets, of which one alone is not worth a call.
///
/// # Safety
/// That many can be read and written, at places that do not overlap; from then on one copy of each is used.
#[inline]
pub unsafe fn copy_packets(from: *const Packet, to: *mut Packet, n: usize) {
    // SAFETY: as the caller says.
    unsafe {
        if n == 1 {
            let (from, to) = (from.cast::<Half>(), to.cast::<Half>());
            ptr::copy_nonoverlapping(from, to, 1);
            ptr::copy_nonoverlapping(from.add(1), to.add(1), 1);
        } else {
            ptr::copy_nonoverlapping(from, to, n);
        }
    }
}

/// Copies `from` over `to`, which is as long. Short ones without a call: first and last part, which may overlap.
#[inline]
pub fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        16..=32 => copy_ends::<16>(to, from),
        33..=64 => copy_ends::<32>(to, from),
        65..=128 => copy_ends::<64>(to, from),
        _ => to.copy_from_slice(from),
    }
}

#[inline]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
    }
}
