// SPDX-License-Identifier: Apache-2.0
//! Events of the host.

use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::error::{Code, Result, call};
use crate::ffi;

/// The event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A domain has shut down or is gone: look.
    Domains,
    /// Nothing, in the time that was waited.
    Nothing,
}

/// Events from its opening on, for one thread.
pub struct Events {
    events: NonNull<ffi::Events>,
}

// SAFETY: it may be used by any thread, one at a time: its methods take `&mut self`.
unsafe impl Send for Events {}

impl Events {
    /// Begins to listen.
    pub fn open() -> Result<Self> {
        let mut events = ptr::null_mut();
        // SAFETY: both pointers are to variables of this call.
        call(|e| unsafe { ffi::cosmos_events_open(&raw mut events, e) })?;
        let events = NonNull::new(events).expect("cosmos_events_open gave what it promises");
        Ok(Self { events })
    }

    /// Waits for an event.
    pub fn next(&mut self, timeout: Duration) -> Result<Event> {
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let events = self.events.as_ptr();
        // SAFETY: the pointers are to variables of this call, and `self` is not shared.
        let got = call(|e| unsafe { ffi::cosmos_events_next(events, timeout_ms, e) });
        match got {
            Ok(()) => Ok(Event::Domains),
            Err(e) if e.code == Code::Timeout => Ok(Event::Nothing),
            Err(e) => Err(e),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once.
        unsafe { ffi::cosmos_events_close(self.events.as_ptr()) };
    }
}
