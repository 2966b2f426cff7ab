// SPDX-License-Identifier: Apache-2.0
//! The flag by which a thread that sleeps, since its rings are empty, asks for a wake-up.
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// The word of the flag. The tests have a model that runs under loom.
pub trait Flag {
    fn is_set(&self) -> bool;
    fn set(&self, value: bool);
    /// A sequentially consistent fence.
    fn fence(&self);
}

impl Flag for AtomicBool {
    fn is_set(&self) -> bool {
        self.load(Ordering::Acquire)
    }

    fn set(&self, value: bool) {
        self.store(value, Ordering::Release);
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

/// Notifies senders whether the receiver sleeps. One of them has to wake it.
#[derive(Debug, Default)]
pub struct NeedWakeup<F: Flag = AtomicBool>(F);

impl<F: Flag> NeedWakeup<F> {
    pub fn new(flag: F) -> Self {
        Self(flag)
    }

    /// To be called before the receiver sleeps. It then looks at its rings once more, and sleeps
    /// only if all are empty.
    pub fn prepare(&self) {
        self.0.set(true);
        // Pairs with the fence in `is_due`: the sender sees the flag, or the receiver the message.
        self.0.fence();
    }

    /// To be called when the receiver is awake.
    pub fn done(&self) {
        self.0.set(false);
    }

    /// To be called after a sender has published. True if this sender has to wake the receiver.
    #[must_use = "the receiver sleeps until it is woken"]
    pub fn is_due(&self) -> bool {
        self.0.fence();
        let is_due = self.0.is_set();
        if is_due {
            // A second sender that saw the flag wakes an awake thread, which only costs time.
            self.0.set(false);
        }
        is_due
    }
}
