// SPDX-License-Identifier: Apache-2.0
//! Threads that share one allocator: one asks it for room at a time, and what a thread was promised is not there for
//! the others.
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads besides the first one, each of which has a reserve.
static FURTHER: AtomicUsize = AtomicUsize::new(0);
/// Bytes that threads were promised in their slices.
static PROMISED: Mutex<usize> = Mutex::new(0);

/// Bytes of those that a thread was promised last.
struct Promise(Cell<usize>);

impl Drop for Promise {
    fn drop(&mut self) {
        if self.0.get() > 0 {
            *promised() -= self.0.get();
        }
    }
}

std::thread_local! {
    static OWN: Promise = const { Promise(Cell::new(0)) };
    /// True while this thread asks.
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

fn promised() -> MutexGuard<'static, usize> {
    PROMISED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As many threads share the allocator from now on, at least.
pub fn share_among(threads: usize) {
    FURTHER.fetch_max(threads.saturating_sub(1), Ordering::Relaxed);
}

/// Asks by `probe` whether there is room for `bytes`, and for what other threads may take now: what they were promised,
/// and `reserve` bytes for each, which `bytes` has for this one.
pub fn ask(bytes: usize, reserve: usize, probe: impl Fn(usize) -> bool) -> bool {
    let further = FURTHER.load(Ordering::Relaxed);
    if further == 0 {
        return probe(bytes);
    }
    let mut promised = promised();
    *promised -= OWN.with(|own| own.0.replace(0));
    let others = promised.saturating_add(further * reserve);
    ASKS.set(true);
    let found = probe(bytes.saturating_add(others));
    ASKS.set(false);
    if found {
        let own = bytes.saturating_sub(reserve);
        OWN.with(|promise| promise.0.set(own));
        *promised += own;
    }
    found
}

/// The thread has made what it asked for, or will not.
pub fn settle() {
    OWN.with(|own| {
        if own.0.get() > 0 {
            *promised() -= own.0.replace(0);
        }
    });
}

/// Does something that needs memory which was kept for it, and which no other thread may take meanwhile: none finds room
/// until it is done. It must not ask for room itself.
pub fn undisturbed<R>(work: impl FnOnce() -> R) -> R {
    let promised = promised();
    ASKS.set(true);
    let done = work();
    ASKS.set(false);
    drop(promised);
    done
}

/// After an allocation failed: waits until no thread asks. True if it is worthwhile to try again.
pub fn wait() -> bool {
    let may_wait = !ASKS.get() && FURTHER.load(Ordering::Relaxed) > 0;
    if may_wait {
        drop(promised());
    }
    may_wait
}

/// Keeps away the other tests of this program that are promised memory.
#[cfg(test)]
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::vec::Vec;

    use super::*;
    use crate::memory::RESERVE;

    #[test]
    fn what_one_thread_was_promised_is_not_there_for_another() {
        let _alone = alone();
        share_among(2);
        // an allocator of 10 reserves, one of which is the other thread's
        let has = |bytes| bytes <= 10 * RESERVE;
        assert!(ask(7 * RESERVE, RESERVE, has));
        let other = |bytes| std::thread::spawn(move || ask(bytes, RESERVE, has)).join();
        assert!(!other(4 * RESERVE).unwrap());
        assert!(other(3 * RESERVE).unwrap());
        assert!(
            ask(9 * RESERVE, RESERVE, has),
            "its own promise is replaced"
        );
        settle();
        assert!(other(9 * RESERVE).unwrap());
        assert!(!other(10 * RESERVE).unwrap());
    }

    #[test]
    fn no_thread_asks_while_another_one_uses_memory_that_was_kept_for_it() {
        let _alone = alone();
        share_among(2);
        let may_ask = || std::thread::spawn(|| PROMISED.try_lock().is_ok()).join();
        undisturbed(|| {
            assert!(!wait(), "the thread itself keeps others waiting");
            assert!(!may_ask().unwrap());
        });
    }

    #[test]
    fn an_allocation_that_fails_while_another_thread_asks_waits_for_that() {
        let _alone = alone();
        share_among(2);
        let (asking, asks) = channel();
        let order = Mutex::new(Vec::new());
        std::thread::scope(|threads| {
            threads.spawn(|| {
                ask(1, RESERVE, |_| {
                    assert!(!wait(), "the thread that asks has taken all itself");
                    asking.send(()).unwrap();
                    std::thread::yield_now();
                    order.lock().unwrap().push("asked");
                    true
                });
                settle();
            });
            asks.recv().unwrap();
            assert!(wait());
            order.lock().unwrap().push("waited");
        });
        assert_eq!(order.into_inner().unwrap(), ["asked", "waited"]);
    }
}
