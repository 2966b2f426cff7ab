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

/// Free buffers by class.
struct Depot([Vec<NonNull<u8>>; CLASSES]);

// SAFETY: a free buffer has no packet, so no thread uses it but the one that takes it out of the depot.
unsafe impl Send for Depot {}

static DEPOT: Mutex<Depot> = Mutex::new(Depot([const { Vec::new() }; CLASSES]));

fn depot() -> MutexGuard<'static, Depot> {
    DEPOT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes free buffers out of the depot; false if it has none.
pub fn refill<T>(free: &mut Vec<NonNull<T>>, class: usize) -> bool {
    let stored = &mut depot().0[class];
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
    depot().0[class].extend(buffers.map(NonNull::cast));
}
