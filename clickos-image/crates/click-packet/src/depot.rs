// SPDX-License-Identifier: Apache-2.0
//! Free buffers on their way between threads, in bulk: a lock is taken once for many packets.
use alloc::vec::Vec;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Free buffers that move between a thread and the depot at a time.
const BULK: usize = 256;
/// A thread keeps no more free buffers than this.
pub const MOST: usize = 2 * BULK;
/// Classes of buffers that are kept.
pub const CLASSES: usize = 2;

/// Free buffers by class, and how many buffers there are.
struct Depot {
    stored: [Vec<NonNull<u8>>; CLASSES],
    made: [usize; CLASSES],
}

// SAFETY: a free buffer has no packet, so no thread uses it but the one that takes it out of the depot.
unsafe impl Send for Depot {}

static DEPOT: Mutex<Depot> = Mutex::new(Depot {
    stored: [const { Vec::new() }; CLASSES],
    made: [0; CLASSES],
});

fn depot() -> MutexGuard<'static, Depot> {
    DEPOT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for buffers that are about to be made: a thread that drops packets must not need memory. False if there
/// is no memory for it.
pub fn make_room(made: usize, class: usize) -> bool {
    let mut depot = depot();
    let Depot {
        stored,
        made: before,
    } = &mut *depot;
    let (stored, before) = (&mut stored[class], &mut before[class]);
    let room = *before + made - stored.len();
    let has_room = stored.try_reserve(room).is_ok() || stored.try_reserve_exact(room).is_ok();
    *before += if has_room { made } else { 0 };
    has_room
}

/// Takes free buffers out of the depot; false if it has none.
pub fn refill<T>(free: &mut Vec<NonNull<T>>, class: usize) -> bool {
    let stored = &mut depot().stored[class];
    let keep = stored.len().saturating_sub(BULK);
    let before = free.len();
    free.extend(stored.drain(keep..).map(NonNull::cast));
    free.len() > before
}

/// Puts free buffers into the depot if a thread has more than `most` besides those that are reserved.
pub fn give_surplus<T>(free: &mut Vec<NonNull<T>>, reserved: usize, most: usize, class: usize) {
    if free.len() - reserved > most {
        give(free.drain(reserved + most / 2..), class);
    }
}

/// Puts buffers into the depot.
pub fn give<T>(buffers: impl Iterator<Item = NonNull<T>>, class: usize) {
    depot().stored[class].extend(buffers.map(NonNull::cast));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketPool;

    #[test]
    fn the_depot_takes_all_buffers_that_were_made_without_memory() {
        let made = std::thread::spawn(|| {
            let mut pool = PacketPool::migrating(3000);
            let packets: Vec<_> = (0..3000).map_while(|_| pool.alloc(60)).collect();
            assert_eq!(packets.len(), 3000);
            let depot = depot();
            assert!(depot.made[0] >= 3000);
            depot.stored[0].capacity() >= depot.made[0]
        });
        assert!(made.join().unwrap());
    }
}
