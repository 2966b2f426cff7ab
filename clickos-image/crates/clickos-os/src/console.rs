// SPDX-License-Identifier: Apache-2.0
//! Lines for the console. The guest never waits for the console: it keeps lines that the ring does
//! not take, up to a limit.
use crate::clock::deadline_ns;
use alloc::collections::VecDeque;
use alloc::format;
use core::cell::RefCell;
use xen_sys::events::wait;

/// Bytes kept for when the ring has room again.
const BACKLOG: usize = 16 << 10;
/// The longest wait for the console.
const FLUSH_MS: u32 = 5000;

#[derive(Debug, Default)]
struct State {
    backlog: VecDeque<u8>,
    lost: u64,
}

/// The console.
#[derive(Debug, Default)]
pub struct Console {
    state: RefCell<State>,
}

impl Console {
    /// The guest's console.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a line, or counts it as lost.
    pub fn line(&self, text: &str) {
        let mut state = self.state.borrow_mut();
        if state.backlog.len() + text.len() + 2 > BACKLOG {
            state.lost += 1;
            return;
        }
        state.say(text);
        state.pump();
    }

    /// Waits until everything is in the ring, but not for ever.
    pub fn flush(&self) {
        for _ in 0..FLUSH_MS {
            self.pump();
            if self.state.borrow().backlog.is_empty() {
                return;
            }
            wait(&[], Some(deadline_ns(1_000_000)));
        }
    }

    /// Moves what is kept into the ring; to be called now and then.
    pub fn pump(&self) {
        self.state.borrow_mut().pump();
    }
}

impl State {
    fn say(&mut self, text: &str) {
        self.backlog.extend(text.bytes());
        self.backlog.extend(*b"\r\n");
    }

    fn pump(&mut self) {
        self.send();
        if self.lost > 0 && self.backlog.is_empty() {
            let lost = core::mem::take(&mut self.lost);
            self.say(&format!("console: {lost} lines were lost"));
            self.send();
        }
    }

    fn send(&mut self) {
        let (first, _) = self.backlog.as_slices();
        if !first.is_empty() {
            let sent = xen_sys::console::write(first);
            self.backlog.drain(..sent);
        }
    }
}
