// SPDX-License-Identifier: Apache-2.0
//! Threads that share one allocator: one asks it for room at a time, and what a thread was promised is not there for
//! the others.
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the threads that share an allocator were promised of it.
struct Claims {
    /// Threads besides the first one, each of which has a reserve.
    further: AtomicUsize,
    /// Bytes that threads were promised in their slices.
    promised: Mutex<usize>,
}

/// Those of the program's allocator.
static SHARED: Claims = Claims::new();

/// Bytes of those that a thread was promised last, and by which claims.
struct Promise(Cell<usize>, Cell<&'static Claims>);

impl Promise {
    fn give_up(&self) {
        if self.0.get() > 0 {
            *self.1.get().promised() -= self.0.replace(0);
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.give_up();
    }
}

std::thread_local! {
    static OWN: Promise = const { Promise(Cell::new(0), Cell::new(&SHARED)) };
    /// True while this thread asks.
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

impl Claims {
    const fn new() -> Self {
        Self {
            further: AtomicUsize::new(0),
            promised: Mutex::new(0),
        }
    }

    fn promised(&self) -> MutexGuard<'_, usize> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share_among(&self, threads: usize) {
        let further = threads.saturating_sub(1);
        self.further.fetch_max(further, Ordering::Relaxed);
    }

    fn ask(&'static self, bytes: usize, reserve: usize, probe: impl Fn(usize) -> bool) -> bool {
        let further = self.further.load(Ordering::Relaxed);
        if further == 0 {
            return probe(bytes);
        }
        settle();
        let mut promised = self.promised();
        let others = promised.saturating_add(further * reserve);
        ASKS.set(true);
        let found = probe(bytes.saturating_add(others));
        ASKS.set(false);
        if found {
            let own = bytes.saturating_sub(reserve);
            OWN.with(|promise| {
                promise.0.set(own);
                promise.1.set(self);
            });
            *promised += own;
        }
        found
    }

    fn undisturbed<R>(&self, work: impl FnOnce() -> R) -> R {
        let promised = self.promised();
        ASKS.set(true);
        let done = work();
        ASKS.set(false);
        drop(promised);
        done
    }

    fn wait(&self) -> bool {
        let may_wait = !ASKS.get() && self.further.load(Ordering::Relaxed) > 0;
        if may_wait {
            drop(self.promised());
        }
        may_wait
    }
}

/// As many threads share the allocator from now on, at least.
pub fn share_among(threads: usize) {
    SHARED.share_among(threads);
}

/// Asks by `probe` whether there is room for `bytes`, and for what other threads may take now: what they were promised,
/// and `reserve` bytes for each, which `bytes` has for this one.
pub fn ask(bytes: usize, reserve: usize, probe: impl Fn(usize) -> bool) -> bool {
    SHARED.ask(bytes, reserve, probe)
}

/// The thread has made what it asked for, or will not.
pub fn settle() {
    OWN.with(Promise::give_up);
}

/// Does something that needs memory which was kept for it, and which no other thread may take meanwhile: none finds room
/// until it is done. It must not ask for room itself.
pub fn undisturbed<R>(work: impl FnOnce() -> R) -> R {
    SHARED.undisturbed(work)
}

/// After an allocation failed: waits until no thread asks. True if it is worthwhile to try again.
pub fn wait() -> bool {
    SHARED.wait()
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::sync::mpsc::channel;
    use std::vec::Vec;

    use super::*;
    use crate::memory::RESERVE;

    /// Two threads share an allocator of which no other test knows.
    fn of_two() -> &'static Claims {
        let claims = Box::leak(Box::new(Claims::new()));
        claims.share_among(2);
        claims
    }

    #[test]
    fn what_one_thread_was_promised_is_not_there_for_another() {
        let claims = of_two();
        // an allocator of 10 reserves, one of which is the other thread's
        let has = |bytes| bytes <= 10 * RESERVE;
        assert!(claims.ask(7 * RESERVE, RESERVE, has));
        let other = |bytes| std::thread::spawn(move || claims.ask(bytes, RESERVE, has)).join();
        assert!(!other(4 * RESERVE).unwrap());
        assert!(other(3 * RESERVE).unwrap());
        assert!(
            claims.ask(9 * RESERVE, RESERVE, has),
            "its own promise is replaced"
        );
        settle();
        assert!(other(9 * RESERVE).unwrap());
        assert!(!other(10 * RESERVE).unwrap());
    }

    #[test]
    fn no_thread_asks_while_another_one_uses_memory_that_was_kept_for_it() {
        let claims = of_two();
        let may_ask = || std::thread::spawn(|| claims.promised.try_lock().is_ok()).join();
        claims.undisturbed(|| {
            assert!(!claims.wait(), "the thread itself keeps others waiting");
            assert!(!may_ask().unwrap());
        });
    }

    #[test]
    fn an_allocation_that_fails_while_another_thread_asks_waits_for_that() {
        let claims = of_two();
        let (asking, asks) = channel();
        let order = Mutex::new(Vec::new());
        std::thread::scope(|threads| {
            threads.spawn(|| {
                claims.ask(1, RESERVE, |_| {
                    assert!(!claims.wait(), "the thread that asks has taken all itself");
                    asking.send(()).unwrap();
                    std::thread::yield_now();
                    order.lock().unwrap().push("asked");
                    true
                });
                settle();
            });
            asks.recv().unwrap();
            assert!(claims.wait());
            order.lock().unwrap().push("waited");
        });
        assert_eq!(order.into_inner().unwrap(), ["asked", "waited"]);
    }
}
