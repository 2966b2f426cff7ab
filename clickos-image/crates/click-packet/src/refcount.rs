// SPDX-License-Identifier: Apache-2.0
//! Reference counts of buffers, when packets are to be changed and when they are dropped.
use core::ptr::NonNull;

use crate::arena::FreeList;
use crate::buffer::{Header, extra_refs};
use crate::packet::Packet;

impl FreeList {
    /// Unshares the first packets that are shared and of one arena and class: those whose buffer others still have get
    /// a copy of it. Returns how many packets those are.
    ///
    /// # Safety
    /// The first one is shared, its buffer of this free list.
    pub unsafe fn unshare(&mut self, packets: &mut [Packet]) -> usize {
        let arena_ref = packets[0].arena_ref();
        let (mut done, mut free) = (0, self.free.len());
        for packet in packets {
            if !packet.is_shared() || packet.arena_ref() != arena_ref {
                break;
            }
            done += 1;
            // SAFETY: the buffer is alive, and this packet gives its reference up.
            if unsafe { !drop_refs(packet.header, 1) } {
                packet.clear_shared();
                continue;
            }
            free -= 1;
            // SAFETY: free, and as large as the one that the others keep.
            unsafe { packet.move_to(self.free[free]) };
        }
        self.reserved -= self.free.len() - free;
        self.free.truncate(free);
        done
    }

    /// Releases the references of the first packets that are shared; a buffer without any is free. Returns how many
    /// those are.
    ///
    /// # Safety
    /// The first one's buffer is of this free list, and they are not used any more.
    #[inline]
    pub unsafe fn release_refs(&mut self, packets: &[Packet]) -> usize {
        let (arena_ref, mut done, mut freed) = (packets[0].arena_ref(), 0, 0);
        while let Some(first) = packets.get(done) {
            if !first.is_shared() || first.arena_ref() != arena_ref {
                break;
            }
            // those of one buffer together, so that its number need not be written and read again for each
            let others = packets[done + 1..].iter();
            let same = others.take_while(|packet| packet.header == first.header);
            let count = 1 + same.count();
            // SAFETY: the buffer is alive, and that many of its packets are gone.
            if unsafe { !drop_refs(first.header, count) } {
                freed += 1;
                self.free.push(first.header);
            }
            done += count;
        }
        self.reserved -= done - freed;
        done
    }
}

/// Drops `count` references to a buffer; returns whether others remain.
///
/// # Safety
/// The buffer is alive, and that many packets have it.
#[inline]
pub unsafe fn drop_refs(buffer: NonNull<Header>, count: usize) -> bool {
    // SAFETY: the buffer is alive; this is the only reference.
    let others = unsafe { &mut *extra_refs(buffer) };
    let left = (*others as usize).checked_sub(count);
    *others = left.unwrap_or(0) as u32;
    left.is_some()
}
