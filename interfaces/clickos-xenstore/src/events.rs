// SPDX-License-Identifier: Apache-2.0
//! Watch events that came in while something else was awaited.
use crate::error::Error;
use crate::framing::WatchEvent;
use alloc::collections::VecDeque;

/// Events kept until somebody takes them, at most `MAX`; the same event twice counts once.
#[derive(Default)]
pub(crate) struct Events<const MAX: usize> {
    queue: VecDeque<WatchEvent>,
    lost: bool,
}

impl<const MAX: usize> Events<MAX> {
    /// Keeps an event. If there are too many, it loses all and reports that once.
    pub fn keep(&mut self, event: WatchEvent) {
        if self.queue.contains(&event) {
            return;
        }
        if self.queue.len() == MAX {
            self.lose();
        }
        self.queue.push_back(event);
    }

    /// Drops all events.
    pub fn lose(&mut self) {
        self.queue.clear();
        self.lost = true;
    }

    /// True if an event of this path waits.
    pub fn has(&self, path: &str) -> bool {
        self.queue.iter().any(|event| event.path == path)
    }

    /// Drops the event of this path; true if one waited.
    pub fn drop_of(&mut self, path: &str) -> bool {
        let before = self.queue.len();
        self.queue.retain(|event| event.path != path);
        self.queue.len() < before
    }

    /// True if there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && !self.lost
    }

    /// The next event.
    ///
    /// # Errors
    /// [`Error::EventsLost`], once.
    pub fn take(&mut self) -> Result<Option<WatchEvent>, Error> {
        if core::mem::take(&mut self.lost) {
            return Err(Error::EventsLost);
        }
        Ok(self.queue.pop_front())
    }
}
