// SPDX-License-Identifier: Apache-2.0
//! The messages that a client has not read yet.
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Unread messages of a client, each of at most 4,112 bytes. With one more its connection ends.
pub const MAX: usize = 4096;

#[derive(Default)]
struct State {
    messages: VecDeque<Vec<u8>>,
    has_ended: bool,
}

/// A bounded queue between the reader of the store and the writer to a client.
///
/// The store's own queue stays short, because its reader never waits for the client.
#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

impl Outbox {
    /// Adds an answer.
    ///
    /// # Errors
    /// The client has left [`MAX`] messages unread.
    pub fn push(&self, message: Vec<u8>) -> io::Result<()> {
        let mut state = self.state();
        if state.messages.len() == MAX {
            let text = format!("{MAX} messages are unread");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        state.messages.push_back(message);
        self.changed.notify_one();
        Ok(())
    }

    /// Adds an event, unless the client has the same one to read: a guest can cause events without end.
    ///
    /// # Errors
    /// As of [`Self::push`].
    pub fn push_event(&self, message: Vec<u8>) -> io::Result<()> {
        if self.state().messages.contains(&message) {
            return Ok(());
        }
        self.push(message)
    }

    /// Waits for the next message; `None` after [`Self::end`].
    pub fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        while !state.has_ended {
            if let Some(message) = state.messages.pop_front() {
                return Some(message);
            }
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        None
    }

    /// Lets the waiting thread go.
    pub fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_a_bound_and_keep_their_order() {
        let outbox = Outbox::default();
        for n in 0..MAX {
            outbox.push(n.to_be_bytes().into()).unwrap();
        }
        assert!(outbox.push(Vec::new()).is_err());
        assert_eq!(outbox.next(), Some(0usize.to_be_bytes().into()));
        outbox.push(Vec::new()).unwrap();
        outbox.end();
        assert_eq!(outbox.next(), None);
    }

    #[test]
    fn an_unread_event_is_there_once() {
        let outbox = Outbox::default();
        for _ in 0..=MAX {
            outbox.push_event(b"one".into()).unwrap();
            outbox.push_event(b"two".into()).unwrap();
        }
        assert_eq!(outbox.next(), Some(b"one".into()));
        outbox.push_event(b"one".into()).unwrap();
        assert_eq!(outbox.state().messages, [b"two", b"one"]);
    }
}
