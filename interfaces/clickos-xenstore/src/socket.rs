// SPDX-License-Identifier: Apache-2.0
//! Blocking client over xenstored's UNIX socket, or over the kernel's device. Every client of the
//! socket acts as dom0. A client of the device acts as its own domain.
mod batch;
mod stream;
mod transaction;

use crate::error::{Code, Error};
use crate::events::Events;
use crate::framing::{Decoder, Message, WatchEvent};
use crate::perms::{self, Perm};
use crate::request::{Request, Tx, strings};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use stream::Stream;
pub use transaction::Transaction;

/// How long one answer may take; xenstored answers in well under a millisecond.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Most requests that are sent before their answers are read. The store reads and answers them one by
/// one, so that neither side's socket fills up while both write.
const WINDOW: usize = 32;
/// Watch events kept until somebody takes them.
const EVENTS_MAX: usize = 8192;

/// A connection to the store: requests, one at a time or several at once, and watch events.
///
/// Events that come before an awaited answer are kept for [`Client::wait_event`]. A program that
/// waits for events in one thread and sends requests in another opens two connections.
/// After an error with [`Error::is_fatal`] the connection has to be opened again.
pub struct Client {
    stream: Stream,
    decoder: Decoder,
    events: Events<EVENTS_MAX>,
    last_id: u32,
    broken: bool,
}

impl Client {
    /// Connects to xenstored's socket, or opens the kernel's device `/dev/xen/xenbus`.
    ///
    /// # Errors
    /// [`Error::Connection`] naming the socket.
    pub fn connect(path: &Path) -> Result<Self, Error> {
        let refused = |e: std::io::Error| Error::Connection(format!("{}: {e}", path.display()));
        Ok(Self {
            stream: Stream::open(path).map_err(refused)?,
            decoder: Decoder::of_socket(),
            events: Events::default(),
            last_id: 0,
            broken: false,
        })
    }

    /// Reads a value.
    ///
    /// # Errors
    /// `ENOENT`, `EACCES`, or a broken connection; so for every request below.
    pub fn read(&mut self, tx: Tx, path: &str) -> Result<Vec<u8>, Error> {
        self.call(&Request::read(tx, path)?)
    }

    /// Reads a value, `None` if there is no such node.
    pub fn read_opt(&mut self, tx: Tx, path: &str) -> Result<Option<Vec<u8>>, Error> {
        none_if_missing(self.read(tx, path))
    }

    /// Writes a value and makes missing nodes on the way.
    pub fn write(&mut self, tx: Tx, path: &str, value: &[u8]) -> Result<(), Error> {
        self.call(&Request::write(tx, path, value)?).map(drop)
    }

    /// Makes an empty node unless it exists.
    pub fn mkdir(&mut self, tx: Tx, path: &str) -> Result<(), Error> {
        self.call(&Request::mkdir(tx, path)?).map(drop)
    }

    /// Removes a node and all below it; a node that is not there is no error.
    pub fn rm(&mut self, tx: Tx, path: &str) -> Result<(), Error> {
        none_if_missing(self.call(&Request::rm(tx, path)?)).map(drop)
    }

    /// Lists the children's names, also when they do not fit into one message.
    pub fn directory(&mut self, tx: Tx, path: &str) -> Result<Vec<String>, Error> {
        match self.call(&Request::directory(tx, path)?) {
            Err(error) if error.is(Code::TooBig) => self.directory_in_parts(tx, path),
            result => strings(&result?),
        }
    }

    /// Lists the children's names, empty if there is no such node.
    pub fn directory_opt(&mut self, tx: Tx, path: &str) -> Result<Vec<String>, Error> {
        none_if_missing(self.directory(tx, path)).map(Option::unwrap_or_default)
    }

    /// Reads a node's permissions, the owner's entry first.
    pub fn get_perms(&mut self, tx: Tx, path: &str) -> Result<Vec<Perm>, Error> {
        perms::parse_list(&strings(&self.call(&Request::get_perms(tx, path)?)?)?)
    }

    /// Sets a node's permissions, the owner's entry first.
    pub fn set_perms(&mut self, tx: Tx, path: &str, perms: &[Perm]) -> Result<(), Error> {
        self.call(&Request::set_perms(tx, path, perms)?).map(drop)
    }

    /// Watches a node and all below it; one event comes at once. `@releaseDomain` and
    /// `@introduceDomain` are such paths too.
    pub fn watch(&mut self, path: &str, token: &str) -> Result<(), Error> {
        self.call(&Request::watch(path, token)?).map(drop)
    }

    /// Ends a watch; its events that were received already may still come.
    pub fn unwatch(&mut self, path: &str, token: &str) -> Result<(), Error> {
        self.call(&Request::unwatch(path, token)?).map(drop)
    }

    /// Connects a domain to the store; it must exist.
    pub fn introduce(&mut self, domid: u16, frame: u64, evtchn_port: u32) -> Result<(), Error> {
        self.call(&Request::introduce(domid, frame, evtchn_port))
            .map(drop)
    }

    /// Disconnects a domain from the store; fires `@releaseDomain`. One that is not connected is
    /// `ENOENT`.
    pub fn release(&mut self, domid: u16) -> Result<(), Error> {
        self.call(&Request::release(domid)).map(drop)
    }

    /// Waits for a watch event; `None` when `timeout` is over.
    ///
    /// # Errors
    /// [`Error::EventsLost`] once after more than 8192 different events were not taken;
    /// otherwise a broken connection.
    pub fn wait_event(&mut self, timeout: Duration) -> Result<Option<WatchEvent>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = self.events.take()? {
                return Ok(Some(event));
            }
            match self.receive(deadline)? {
                Some(Message::Event(event)) => self.events.keep(event),
                Some(Message::Reply { .. }) => return Err(self.fail("answer without a request")),
                None => return Ok(None),
            }
        }
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// The store's, or a broken connection.
    pub fn call(&mut self, request: &Request) -> Result<Vec<u8>, Error> {
        let req_id = self.send(std::slice::from_ref(request))?;
        self.answer(request, req_id)
    }

    /// Sends requests with consecutive numbers; returns the first one's.
    fn send(&mut self, requests: &[Request]) -> Result<u32, Error> {
        self.usable()?;
        if self.last_id > u32::MAX - WINDOW as u32 {
            self.last_id = 0;
        }
        let first = self.last_id + 1;
        let numbered = requests.iter().zip(first..);
        let messages: Vec<_> = numbered.map(|(r, id)| r.encode(id)).collect();
        self.last_id += requests.len() as u32; // At most a window.
        match self.stream.send(&messages) {
            Err(_) if self.stream.refuses(requests) => Err(Error::Store {
                code: Code::Io,
                path: requests[0].path.clone(),
            }),
            sent => sent.map(|()| first).map_err(|e| self.lost(&e)),
        }
    }

    fn answer(&mut self, request: &Request, expected_id: u32) -> Result<Vec<u8>, Error> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            match self.receive(deadline)? {
                None => return Err(self.lost(&ErrorKind::TimedOut.into())),
                Some(Message::Event(event)) => self.events.keep(event),
                Some(Message::Reply {
                    req_id,
                    kind,
                    result,
                }) => {
                    let wanted = result.is_err() || kind == request.kind as u32;
                    if req_id != expected_id || !wanted {
                        return Err(self.fail("answer to another request"));
                    }
                    let path = request.path.clone();
                    return result.map_err(|code| Error::Store { code, path });
                }
            }
        }
    }

    /// The next message, `None` at the deadline; a message that has begun is kept for next time.
    fn receive(&mut self, deadline: Instant) -> Result<Option<Message>, Error> {
        self.usable()?;
        loop {
            match self.decoder.take() {
                Ok(None) => {}
                Ok(message) => return Ok(message),
                Err(error) => {
                    self.broken = true;
                    return Err(error);
                }
            }
            if !self.readable_until(deadline)? {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), Error> {
        let mut buffer = [0; 4096 + 16];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(self.lost(&ErrorKind::UnexpectedEof.into())),
            Ok(n) => {
                self.decoder.push(&buffer[..n]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn readable_until(&mut self, deadline: Instant) -> Result<bool, Error> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or(Timespec {
                tv_sec: 3600,
                tv_nsec: 0,
            });
            match poll(
                &mut [PollFd::new(&self.stream, PollFlags::IN)],
                Some(&timeout),
            ) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(self.lost(&error.into())),
            }
        }
    }

    fn directory_in_parts(&mut self, tx: Tx, path: &str) -> Result<Vec<String>, Error> {
        const TRIES: usize = 1000;
        let (mut list, mut generation) = (Vec::new(), Vec::new());
        for _ in 0..TRIES {
            let part = self.call(&Request::directory_part(tx, path, list.len())?)?;
            let end = part.iter().position(|b| *b == 0).map(|at| at + 1);
            let (now, names) = part.split_at(end.ok_or(Error::Protocol("part without count"))?);
            if !list.is_empty() && now != generation {
                list.clear(); // The directory changed between two parts: from the start again.
                continue;
            }
            generation = now.to_vec();
            match names.strip_suffix(b"\0\0") {
                Some(last) => {
                    list.extend_from_slice(last);
                    list.push(0);
                    return strings(&list);
                }
                None if names == b"\0" => return strings(&list),
                None => list.extend_from_slice(names),
            }
        }
        Err(Error::Store {
            code: Code::Again,
            path: path.into(),
        })
    }

    fn usable(&self) -> Result<(), Error> {
        let gone = || Error::Connection("broken by an earlier error".into());
        if self.broken { Err(gone()) } else { Ok(()) }
    }

    fn fail(&mut self, what: &'static str) -> Error {
        self.broken = true;
        Error::Protocol(what)
    }

    fn lost(&mut self, error: &std::io::Error) -> Error {
        self.broken = true;
        Error::Connection(error.to_string())
    }
}

/// For poll(2): readable when a watch event may have come.
impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn none_if_missing<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(error) if error.is(Code::NoEntry) => Ok(None),
        result => result.map(Some),
    }
}
