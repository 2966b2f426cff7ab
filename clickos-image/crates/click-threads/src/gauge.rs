// SPDX-License-Identifier: Apache-2.0
//! What the ends of a queue count together.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use click_core::Context;

/// Room of each ring at least, so that a small queue can be made larger while it runs.
const LEAST: usize = 1024;

/// Slots of each ring of a queue.
pub fn slots(capacity: usize) -> usize {
    let places = capacity.max(LEAST);
    places.checked_next_power_of_two().unwrap_or(usize::MAX)
}

/// A counter on cache lines of its own. Processors prefetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

/// A number that several threads write. The tests have a model that runs under loom.
pub trait Number: Default {
    fn load(&self) -> usize;
    /// Stores a value, and orders that before all that this thread loads later.
    fn store(&self, value: usize);
    /// Adds, wrapping around, and orders that before all that this thread loads later.
    fn add(&self, n: usize);
    /// Stores `new` if the value is `old`; otherwise, or by chance, fails with the value.
    fn exchange(&self, old: usize, new: usize) -> Result<usize, usize>;
}

impl Number for AtomicUsize {
    fn load(&self) -> usize {
        self.load(Ordering::SeqCst)
    }

    fn store(&self, value: usize) {
        self.swap(value, Ordering::SeqCst);
    }

    fn add(&self, n: usize) {
        self.fetch_add(n, Ordering::SeqCst);
    }

    fn exchange(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.compare_exchange_weak(old, new, Ordering::SeqCst, Ordering::Relaxed)
    }
}

/// The counters of a queue. In the steady state a thread writes only lines that the others do not read for each burst.
pub struct Gauge<N: Number = AtomicUsize> {
    pub class: &'static str,
    /// Slots of each ring.
    pub slots: usize,
    /// How many threads push.
    pub pushers: usize,
    capacity: AtomicUsize,
    highwater: AtomicUsize,
    /// Inlets that wait for room.
    waiting: N,
    drops: Line<AtomicU64>,
    /// Packets that were ever pushed, with those that a thread is about to publish.
    entered: Line<N>,
    /// Packets that were ever pulled. The outlet writes it.
    left: Line<N>,
}

impl<N: Number> Gauge<N> {
    /// The gauge of a queue of this class, to which that many threads push.
    pub fn new(class: &'static str, capacity: usize, pushers: usize) -> Self {
        Self {
            class,
            slots: slots(capacity),
            pushers,
            capacity: AtomicUsize::new(capacity),
            highwater: AtomicUsize::new(0),
            waiting: N::default(),
            drops: Line::default(),
            entered: Line::default(),
            left: Line::default(),
        }
    }

    /// True if those that push rest while it is full.
    pub fn is_told(&self) -> bool {
        !matches!(self.class, "CPUQueue" | "SimpleQueue")
    }

    /// Packets that are in it, and those that a thread is about to publish.
    pub fn length(&self) -> usize {
        // in this order, so that it is not negative
        let left = self.left.0.load();
        self.entered.0.load().wrapping_sub(left)
    }

    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    pub fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::SeqCst);
    }

    pub fn has_room(&self) -> bool {
        self.length() < self.capacity()
    }

    /// True if it is worth the while of a thread that found the queue full to push again.
    pub fn is_half_empty(&self) -> bool {
        let (length, capacity) = (self.length(), self.capacity());
        length < capacity && length <= capacity / 2
    }

    /// How many of `n` packets a thread may push that has `stored` in the queue. While others wait for room, those that
    /// do not wait share half of the queue: otherwise one that fills it again immediately would leave no room. Each that
    /// waits has an equal part of all, so that those that all wait fill the queue.
    pub fn fair(&self, n: usize, waits: bool, stored: impl FnOnce() -> usize) -> usize {
        if self.pushers < 2 || self.waiting.load() <= usize::from(waits) {
            return n;
        }
        let parts = if waits {
            self.pushers
        } else {
            2 * (self.pushers - 1)
        };
        let share = self.capacity() / parts;
        n.min(share.max(1).saturating_sub(stored()))
    }

    /// Reserves places for at most `n` packets; returns their number. `left` is a number of packets that were pulled, as
    /// the caller last read it: it is read again only if places seem to lack, or the length to be a new maximum.
    pub fn reserve(&self, n: usize, left: &mut usize) -> usize {
        let capacity = self.capacity();
        let mut entered = self.entered.0.load();
        loop {
            let highwater = self.highwater.load(Ordering::Relaxed);
            let mut length = entered.wrapping_sub(*left);
            if length.saturating_add(n) > capacity.min(highwater) {
                *left = self.left.0.load();
                // negative if others pushed meanwhile; then the exchange fails
                length = entered.wrapping_sub(*left).min(capacity);
            }
            let fits = n.min(capacity.saturating_sub(length));
            match self.entered.0.exchange(entered, entered.wrapping_add(fits)) {
                Ok(_) => {
                    if length + fits > highwater {
                        self.highwater.fetch_max(length + fits, Ordering::Relaxed);
                    }
                    return fits;
                }
                Err(other) => entered = other,
            }
        }
    }

    /// True if there is no room; `left` as in `reserve`.
    pub fn is_full(&self, left: &mut usize) -> bool {
        let (entered, capacity) = (self.entered.0.load(), self.capacity());
        if entered.wrapping_sub(*left) >= capacity {
            *left = self.left.0.load();
        }
        entered.wrapping_sub(*left) >= capacity
    }

    /// Gives reserved places back.
    pub fn cancel(&self, n: usize) {
        self.entered.0.add(n.wrapping_neg());
    }

    /// Counts packets that left, at the outlet; true if inlets wait for room and there is enough for them to continue.
    pub fn leave(&self, n: usize) -> bool {
        let left = self.left.0.load().wrapping_add(n);
        // before the look at those that wait; they count themselves before they look for room
        self.left.0.store(left);
        self.waiting.load() > 0 && self.is_half_empty()
    }

    /// True if an inlet waits for room.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load() > 0
    }

    /// Counts an inlet that waits for room.
    pub fn begin_wait(&self) {
        self.waiting.add(1);
    }

    /// An inlet does not wait any more.
    pub fn end_wait(&self) {
        self.waiting.add(1usize.wrapping_neg());
    }

    pub fn highwater(&self) -> usize {
        self.highwater.load(Ordering::Relaxed)
    }

    pub fn drops(&self) -> u64 {
        self.drops.0.load(Ordering::Relaxed)
    }

    /// Adds the drops of the queue that this one follows.
    pub fn add_drops(&self, packets: u64) {
        self.drops.0.fetch_add(packets, Ordering::Relaxed);
    }

    /// Forgets drops, and the lengths there were.
    pub fn reset_counts(&self) {
        self.drops.0.store(0, Ordering::Relaxed);
        self.highwater.store(self.length(), Ordering::Relaxed);
    }

    /// Counts what had no room; the first time with a message.
    #[cold]
    pub fn count_drops(&self, ctx: &mut Context<'_>, packets: usize) {
        let before = self.drops.0.fetch_add(packets as u64, Ordering::Relaxed);
        if before == 0 && self.capacity() > 0 {
            let line = format!("{} :: {}: overflow", ctx.name(), self.class);
            ctx.print(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::atomic::{AtomicUsize as Modelled, fence};
    use vale_handoff::{Flag, NeedWakeup};

    use super::*;

    #[derive(Default)]
    struct Model(Modelled);

    impl Number for Model {
        fn load(&self) -> usize {
            self.0.load(Ordering::Acquire)
        }

        fn store(&self, value: usize) {
            self.0.store(value, Ordering::Release);
            fence(Ordering::SeqCst);
        }

        fn add(&self, n: usize) {
            self.0.fetch_add(n, Ordering::AcqRel);
            fence(Ordering::SeqCst);
        }

        fn exchange(&self, old: usize, new: usize) -> Result<usize, usize> {
            self.0
                .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
        }
    }

    #[derive(Default)]
    struct Asleep(loom::sync::atomic::AtomicBool);

    impl Flag for Asleep {
        fn is_set(&self) -> bool {
            self.0.load(Ordering::Acquire)
        }

        fn set(&self, value: bool) {
            self.0.store(value, Ordering::Release);
        }

        fn fence(&self) {
            fence(Ordering::SeqCst);
        }
    }

    /// All interleavings of a thread that fills a queue and sleeps while it is full, and one that empties it. A lost
    /// wake-up is a deadlock of the model.
    fn explore(counts_itself: bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let gauge = std::sync::Arc::new(Gauge::<Model>::new("Queue", 1, 1));
            let asleep = std::sync::Arc::new(NeedWakeup::<Asleep>::default());
            let wake = std::sync::Arc::new(loom::sync::Notify::new());
            let (full, sleeper, waking) = (gauge.clone(), asleep.clone(), wake.clone());
            let pushing = loom::thread::spawn(move || {
                let mut left = 0;
                assert_eq!(full.reserve(1, &mut left), 1);
                if full.reserve(1, &mut left) == 1 {
                    return;
                }
                if counts_itself {
                    full.begin_wait();
                }
                // a wait may end without a reason
                while !full.has_room() {
                    sleeper.prepare();
                    if !full.has_room() {
                        waking.wait();
                    }
                    sleeper.done();
                }
                assert_eq!(full.reserve(1, &mut left), 1);
            });
            while gauge.length() == 0 {
                loom::thread::yield_now();
            }
            if gauge.leave(1) && asleep.is_due() {
                wake.notify();
            }
            pushing.join().unwrap();
        });
    }

    #[test]
    fn a_thread_that_waits_for_room_is_woken() {
        explore(true);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn the_model_finds_the_lost_wake_up_of_a_thread_that_does_not_count_itself() {
        explore(false);
    }

    #[test]
    fn places_are_reserved_until_the_queue_is_full() {
        let (gauge, mut left) = (Gauge::<AtomicUsize>::new("Queue", 10, 1), 0);
        assert_eq!(gauge.reserve(4, &mut left), 4);
        assert_eq!(gauge.reserve(9, &mut left), 6);
        assert_eq!((gauge.length(), gauge.highwater()), (10, 10));
        gauge.begin_wait();
        assert!(!gauge.leave(4) && gauge.has_room() && !gauge.is_half_empty());
        assert!(gauge.leave(1));
        gauge.end_wait();
        assert!(!gauge.leave(1));
        assert_eq!(gauge.reserve(9, &mut left), 6);
        gauge.cancel(2);
        assert_eq!((gauge.length(), left), (8, 6));
        gauge.reset_counts();
        assert_eq!(gauge.highwater(), 8);
    }

    #[test]
    fn who_fills_the_queue_leaves_room_for_those_that_wait() {
        let gauge = Gauge::<AtomicUsize>::new("Queue", 100, 3);
        assert_eq!(gauge.fair(90, false, || 50), 90);
        gauge.begin_wait();
        assert_eq!(gauge.fair(90, true, || 0), 90, "no other waits");
        assert_eq!(gauge.fair(90, false, || 5), 20);
        assert_eq!(gauge.fair(90, false, || 50), 0);
        gauge.set_capacity(1);
        assert_eq!(gauge.fair(9, false, || 0), 1, "all waited for each other");
    }

    #[test]
    fn threads_that_all_wait_fill_the_queue() {
        for pushers in [2, 3, 4, 10] {
            let gauge = Gauge::<AtomicUsize>::new("Queue", 120, pushers);
            (0..pushers).for_each(|_| gauge.begin_wait());
            assert_eq!(gauge.fair(120, true, || 0) * pushers, 120, "{pushers}");
        }
    }

    #[test]
    fn the_highest_length_is_one_that_there_was() {
        let (gauge, mut left) = (Gauge::<AtomicUsize>::new("Queue", 100, 1), 0);
        for _ in 0..50 {
            assert_eq!(gauge.reserve(3, &mut left), 3);
            gauge.leave(3);
        }
        assert_eq!(gauge.highwater(), 3);
    }
}
