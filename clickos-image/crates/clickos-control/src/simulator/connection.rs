// SPDX-License-Identifier: Apache-2.0
//! A domain's connection to the simulated store.
use super::Simulator;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use xenstore::Store;
use xenstore::{Error, Header, Request, WatchEvent};

/// A domain's connection; requests go through the real encoder.
pub struct Connection {
    store: Simulator,
    domid: u16,
    replies: VecDeque<Result<Vec<u8>, Error>>,
    /// How many pumps an answer takes, besides the one that sends the request.
    pub delay: u32,
    due: u32,
}

impl Connection {
    pub(super) fn new(store: Simulator, domid: u16) -> Self {
        Self {
            store,
            domid,
            replies: VecDeque::new(),
            delay: 0,
            due: 0,
        }
    }
}

impl Store for Connection {
    fn pump(&mut self) {
        self.due = self.due.saturating_sub(1);
    }

    fn submit(&mut self, request: &Request) -> Result<(), Error> {
        let mut state = self.store.state.borrow_mut();
        if state.faults.broken {
            return Err(broken());
        }
        let bytes = request.encode(1);
        let header = Header::from_bytes(bytes.first_chunk().expect("a request has a header"));
        let result = state.serve(self.domid, header.kind, &bytes[16..]);
        let failed = |code| Error::Store {
            code,
            path: request.path().to_string(),
        };
        self.replies.push_back(result.map_err(failed));
        self.due = self.delay + 1;
        Ok(())
    }

    fn poll_reply(&mut self) -> Option<Result<Vec<u8>, Error>> {
        if self.due > 0 {
            None
        } else {
            self.replies.pop_front()
        }
    }

    fn poll_event(&mut self) -> Result<Option<WatchEvent>, Error> {
        let mut state = self.store.state.borrow_mut();
        if core::mem::take(&mut state.faults.lose_events) {
            return Err(Error::EventsLost);
        }
        if state.faults.broken {
            return Err(broken());
        }
        if state.faults.holds_events {
            return Ok(None);
        }
        Ok(state.events.entry(self.domid).or_default().pop_front())
    }

    fn has_event(&self, path: &str) -> bool {
        let state = self.store.state.borrow();
        let queue = state.events.get(&self.domid);
        let waits = queue.is_some_and(|queue| queue.iter().any(|event| event.path == path));
        waits && !state.faults.holds_events
    }

    fn drop_event(&mut self, path: &str) -> bool {
        let waits = self.has_event(path);
        if waits {
            self.store.drop_event(path);
        }
        waits
    }
}

fn broken() -> Error {
    Error::Connection("broken by the simulator".into())
}
