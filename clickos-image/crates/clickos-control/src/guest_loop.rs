// SPDX-License-Identifier: Apache-2.0
//! A guest's one loop: poll while there is work, sleep when there is none.
use crate::guest::Guest;
use alloc::format;
use click_core::Progress;
use xenstore::Store;

/// How long an idle guest continues polling: waking a sleeper costs the switch about 12 us.
const LINGER_NS: u64 = 50_000;

/// The part below the loop: a process and its vifs, or a domain of Xen.
pub trait Platform {
    /// Nanoseconds since the epoch; never goes back.
    fn now_ns(&mut self) -> u64;
    /// The routers ran: gives back what they received, sends what they sent.
    fn publish(&mut self);
    /// Asks for a wake-up by the devices; true if one of them got something since the last time.
    fn sleep_prepare(&mut self) -> bool;
    /// Sleeps until a device or the store has something, or for that long.
    fn wait(&mut self, timeout_ns: Option<u64>);
    /// Ends what [`Platform::sleep_prepare`] began.
    fn wake_done(&mut self);
    /// Writes a line to the console.
    fn say(&mut self, line: &str);
    /// The guest has nothing to do any more: ends it, with this reason as its last words.
    fn end(&mut self, why: &str);
}

/// The loop's state.
pub struct GuestLoop<S, P> {
    guest: Guest<S>,
    platform: P,
    worked_ns: u64,
    /// The loop has logged the loss of the store.
    told: bool,
}

impl<S: Store + 'static, P: Platform> GuestLoop<S, P> {
    /// A loop that has not run yet.
    pub fn new(guest: Guest<S>, platform: P) -> Self {
        Self {
            guest,
            platform,
            worked_ns: 0,
            told: false,
        }
    }

    /// The part below the loop.
    pub fn platform(&mut self) -> &mut P {
        &mut self.platform
    }

    /// The guest that it runs.
    pub fn guest(&mut self) -> &mut Guest<S> {
        &mut self.guest
    }

    /// One round; to be called for ever.
    pub fn step(&mut self) {
        let now_ns = self.platform.now_ns();
        let progress = self.guest.run(now_ns);
        self.platform.publish();
        self.tell_loss();
        if let Some(why) = self.guest.ended(now_ns) {
            self.platform.end(why);
        }
        match progress {
            Progress::Worked => self.worked_ns = now_ns,
            Progress::Idle { .. } if now_ns < self.worked_ns.saturating_add(LINGER_NS) => {
                core::hint::spin_loop();
            }
            Progress::Idle { until_ns } => self.sleep(now_ns, until_ns),
        }
    }

    fn tell_loss(&mut self) {
        if let (Some(error), false) = (self.guest.lost(), self.told) {
            self.platform
                .say(&format!("control: the store is lost: {error}"));
            self.told = true;
        }
    }

    fn sleep(&mut self, now_ns: u64, until_ns: Option<u64>) {
        if !self.platform.sleep_prepare() {
            let left_ns = until_ns.map(|until| until.saturating_sub(now_ns));
            self.platform.wait(left_ns);
        }
        self.platform.wake_done();
    }
}
