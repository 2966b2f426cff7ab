// SPDX-License-Identifier: Apache-2.0
//! All interleavings, and reorderings of memory, of two threads at a ring and at its flag. A lost
//! wake-up is a deadlock of the model, and an unordered access to a slot is a race. loom reports
//! both.
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use vale_handoff::{Flag, Index, Memory, NeedWakeup, Receiver, Sender, ring_in};

const SLOTS: usize = 2;
const MESSAGES: usize = 3;

struct Model {
    indices: [AtomicUsize; 2],
    slots: [UnsafeCell<usize>; SLOTS],
    /// The ordering of stores.
    stores: Ordering,
}

impl Model {
    fn new(stores: Ordering) -> Self {
        Self {
            indices: Default::default(),
            slots: std::array::from_fn(|_| UnsafeCell::new(0)),
            stores,
        }
    }
}

impl Memory<usize> for Model {
    fn slots(&self) -> usize {
        SLOTS
    }

    fn load(&self, index: Index) -> usize {
        self.indices[index as usize].load(Ordering::Acquire)
    }

    fn store(&self, index: Index, value: usize) {
        self.indices[index as usize].store(value, self.stores);
    }

    unsafe fn slot<R>(&self, at: usize, work: impl FnOnce(&mut usize) -> R) -> R {
        // SAFETY: the caller promises exclusive access; loom checks the promise.
        self.slots[at].with_mut(|slot| work(unsafe { &mut *slot }))
    }
}

struct ModelFlag {
    flag: AtomicBool,
    fenced: bool,
}

impl Flag for ModelFlag {
    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    fn set(&self, value: bool) {
        self.flag.store(value, Ordering::Release);
    }

    fn fence(&self) {
        if self.fenced {
            fence(Ordering::SeqCst);
        }
    }
}

type End = (Sender<usize, Model>, Receiver<usize, Model>);

fn explore(stores: Ordering, test: impl Fn(End) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    // The model is `Send` only as a whole, as clippy sees it; loom checks each access.
    #[allow(clippy::arc_with_non_send_sync)]
    builder.check(move || test(ring_in(Arc::new(Model::new(stores)))));
}

/// One thread sends more messages than the ring has slots, the other takes them in order.
fn pass((mut sender, mut receiver): End) {
    let sending = loom::thread::spawn(move || {
        let mut sent = 0;
        while sent < MESSAGES {
            match sender.push(|slot| *slot = sent + 1) {
                true => sent += 1,
                false => loom::thread::yield_now(),
            }
            sender.publish();
        }
    });
    let mut taken = 0;
    while taken < MESSAGES {
        match receiver.pop(|slot| *slot) {
            Some(value) => {
                taken += 1;
                assert_eq!(value, taken);
            }
            None => loom::thread::yield_now(),
        }
        receiver.release();
    }
    sending.join().unwrap();
}

#[test]
fn messages_pass_in_order_and_no_slot_is_shared() {
    explore(Ordering::Release, pass);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_a_shared_slot_if_indices_order_nothing() {
    explore(Ordering::Relaxed, pass);
}

/// The receiver sleeps whenever its ring is empty.
fn sleep((mut sender, mut receiver): End, fenced: bool) {
    let flag = AtomicBool::new(false);
    let need_wakeup = Arc::new(NeedWakeup::new(ModelFlag { flag, fenced }));
    let wake = Arc::new(Notify::new());
    let (at_sender, waking) = (Arc::clone(&need_wakeup), Arc::clone(&wake));
    let sending = loom::thread::spawn(move || {
        for n in 0..SLOTS {
            assert!(sender.push(|slot| *slot = n));
            if sender.publish() && at_sender.is_due() {
                waking.notify();
            }
        }
    });
    let mut taken = 0;
    while taken < SLOTS {
        while receiver.pop(|_| ()).is_some() {
            taken += 1;
        }
        receiver.release();
        if taken < SLOTS {
            need_wakeup.prepare();
            if receiver.waiting() == 0 {
                wake.wait();
            }
            need_wakeup.done();
        }
    }
    sending.join().unwrap();
}

#[test]
fn no_wake_up_is_lost() {
    explore(Ordering::Release, |ends| sleep(ends, true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_the_lost_wake_up_if_there_is_no_fence() {
    explore(Ordering::Release, |ends| sleep(ends, false));
}
