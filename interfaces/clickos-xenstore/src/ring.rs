// SPDX-License-Identifier: Apache-2.0
//! Non-blocking client over a domain's store ring (`xenstore_domain_interface`).
//!
//! The store answers requests in their order; watch events come in between. Nothing here waits: the caller
//! calls [`RingClient::pump`] when the store's event came, so packets go on while the store works.
use crate::error::{Code, Error};
use crate::events::Events;
use crate::framing::{Decoder, Message, WatchEvent};
use crate::request::Request;
use crate::wire::Kind;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of each direction (`XENSTORE_RING_SIZE`).
pub const RING_SIZE: usize = 1024;
/// Watch events kept until somebody takes them.
const EVENTS_MAX: usize = 1024;

/// The shared page's indices, each written by one side only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    ReqCons,
    ReqProd,
    RspCons,
    RspProd,
}

/// A store ring page. Implementations copy; the other side may change the page at any time.
pub trait Page {
    /// Reads an index; data the other side wrote before it is visible afterwards.
    fn load(&self, index: Index) -> u32;
    /// Publishes an index after all earlier accesses to the page.
    fn store(&mut self, index: Index, value: u32);
    /// Copies into the request half; `offset + bytes.len()` is at most [`RING_SIZE`].
    fn write_request(&mut self, offset: usize, bytes: &[u8]);
    /// Copies from the response half; `offset + out.len()` is at most [`RING_SIZE`].
    fn read_response(&self, offset: usize, out: &mut [u8]);
}

/// Notifies the store that the ring changed (an event channel, or a byte in a FIFO).
pub trait Notify {
    /// Sends the event; it may be merged with earlier ones the store has not seen yet.
    fn notify(&mut self);
}

struct Pending {
    req_id: u32,
    kind: Kind,
    path: String,
}

/// A domain's connection to the store.
pub struct RingClient<P, N> {
    page: P,
    notify: N,
    /// Our two indices; what the page says of them is not believed.
    req_prod: u32,
    rsp_cons: u32,
    out: VecDeque<u8>,
    decoder: Decoder,
    last_id: u32,
    /// Requests without an answer.
    pending: VecDeque<Pending>,
    /// Answers that no user has taken.
    replies: VecDeque<Result<Vec<u8>, Error>>,
    events: Events<EVENTS_MAX>,
    broken: Option<Error>,
}

impl<P: Page, N: Notify> RingClient<P, N> {
    /// A connection over this page, which the toolstack must have introduced to the store.
    pub fn new(page: P, notify: N) -> Self {
        Self {
            req_prod: page.load(Index::ReqProd),
            rsp_cons: page.load(Index::RspCons),
            page,
            notify,
            out: VecDeque::new(),
            decoder: Decoder::default(),
            last_id: 0,
            pending: VecDeque::new(),
            replies: VecDeque::new(),
            events: Events::default(),
            broken: None,
        }
    }

    /// Takes a request, which [`RingClient::pump`] sends; its answer comes by
    /// [`RingClient::poll_reply`]. Others may be under way.
    ///
    /// # Errors The error that broke the connection.
    pub fn submit(&mut self, request: &Request) -> Result<(), Error> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        self.last_id = self.last_id.wrapping_add(1);
        self.out.extend(request.encode(self.last_id));
        self.pending.push_back(Pending {
            req_id: self.last_id,
            kind: request.kind,
            path: request.path.clone(),
        });
        Ok(())
    }

    /// The answer to the first request whose answer was not taken, once it is there.
    pub fn poll_reply(&mut self) -> Option<Result<Vec<u8>, Error>> {
        let reply = self.replies.pop_front();
        reply.or_else(|| {
            let error = self.broken.clone()?;
            self.pending.pop_front().map(|_| Err(error))
        })
    }

    /// The next watch event.
    ///
    /// # Errors
    /// [`Error::EventsLost`] once after more than 1024 different events were not taken, or what
    /// broke the connection.
    pub fn poll_event(&mut self) -> Result<Option<WatchEvent>, Error> {
        match (self.events.take()?, &self.broken) {
            (None, Some(error)) => Err(error.clone()),
            (event, _) => Ok(event),
        }
    }

    /// True if a watch event of this path waits.
    pub fn has_event(&self, path: &str) -> bool {
        self.events.has(path)
    }

    /// Drops the watch events of this path; true if one waited.
    pub fn drop_event(&mut self, path: &str) -> bool {
        self.events.drop_of(path)
    }

    /// Sends a last message when no answer will be looked at any more: for a guest that is about
    /// to end.
    pub fn submit_last(&mut self, request: &Request) {
        self.out
            .extend(request.encode(self.last_id.wrapping_add(1)));
        self.pump();
    }

    /// True if everything submitted is in the ring.
    pub fn is_sent(&self) -> bool {
        self.out.is_empty()
    }

    /// The error that broke the connection, if there is one.
    pub fn broken(&self) -> Option<&Error> {
        self.broken.as_ref()
    }

    /// Moves bytes between the ring and this side; to be called after each event of the store.
    pub fn pump(&mut self) {
        if self.broken.is_some() {
            return;
        }
        if let Err(error) = self.send().and_then(|()| self.receive()) {
            self.broken = Some(error);
            self.out.clear();
        }
    }

    fn send(&mut self) -> Result<(), Error> {
        if self.out.is_empty() {
            return Ok(());
        }
        let free = RING_SIZE - used(self.req_prod, self.page.load(Index::ReqCons))?;
        let count = free.min(self.out.len());
        if count == 0 {
            return Ok(());
        }
        let bytes: Vec<u8> = self.out.drain(..count).collect();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let offset = self.req_prod as usize % RING_SIZE;
            let (now, later) = rest.split_at(rest.len().min(RING_SIZE - offset));
            self.page.write_request(offset, now);
            self.req_prod = self.req_prod.wrapping_add(now.len() as u32);
            rest = later;
        }
        self.page.store(Index::ReqProd, self.req_prod);
        self.notify.notify();
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Error> {
        loop {
            let cons = self.rsp_cons;
            let ready = used(self.page.load(Index::RspProd), cons)?;
            if ready == 0 {
                return Ok(());
            }
            let offset = cons as usize % RING_SIZE;
            let mut buffer = [0; RING_SIZE];
            let part = &mut buffer[..ready.min(RING_SIZE - offset)];
            self.page.read_response(offset, part);
            self.decoder.push(part);
            self.rsp_cons = cons.wrapping_add(part.len() as u32);
            self.page.store(Index::RspCons, self.rsp_cons);
            // Read again: the store may have filled the ring meanwhile, and then waits for us.
            if used(self.page.load(Index::RspProd), cons).is_ok_and(|n| n == RING_SIZE) {
                self.notify.notify();
            }
            while let Some(message) = self.decoder.take()? {
                self.accept(message)?;
            }
        }
    }

    fn accept(&mut self, message: Message) -> Result<(), Error> {
        let (id, of, result) = match message {
            Message::Event(event) => {
                self.events.keep(event);
                return Ok(());
            }
            Message::Reply {
                req_id,
                kind,
                result,
            } => (req_id, kind, result),
        };
        let pending = self
            .pending
            .pop_front()
            .ok_or(Error::Protocol("answer without a request"))?;
        if id != pending.req_id || (result.is_ok() && of != pending.kind as u32) {
            return Err(Error::Protocol("answer to another request"));
        }
        let path = pending.path;
        let reply = result.map_err(|code: Code| Error::Store { code, path });
        self.replies.push_back(reply);
        Ok(())
    }
}

fn used(prod: u32, cons: u32) -> Result<usize, Error> {
    let used = prod.wrapping_sub(cons) as usize;
    if used > RING_SIZE {
        Err(Error::Protocol("ring index out of range"))
    } else {
        Ok(used)
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
