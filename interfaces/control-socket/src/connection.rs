// SPDX-License-Identifier: Apache-2.0
//! One connection of a daemon: reads requests, checks roles, calls the service, answers.
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use log::debug;
use serde_json::json;

use crate::budget::{Budget, Charge};
use crate::connections::{ConnectionSlot, Connections, LINE_COST};
use crate::line::{LineError, LineReader, hung_up, send_line};
use crate::message::{answer, event_line};
use crate::verb::{prepare, too_long};
use crate::{
    ApiError, Limits, MAX_FDS, MAX_LINE, Peer, Reply, SMALL_LINE, Service, Subscription, Work,
};

/// How often a connection that carries events is looked at for its end.
const HANG_UP_CHECK: Duration = Duration::from_secs(1);

/// The state that all connections of a server share.
pub(crate) struct Shared<S> {
    service: Arc<S>,
    limits: Limits,
    connections: Arc<Connections>,
    budget: Arc<Budget>,
    /// Held while a long line is parsed: a parser's error can quote the whole line, escaped.
    parsing: Mutex<()>,
}

impl<S: Service> Shared<S> {
    pub fn new(service: Arc<S>, limits: Limits, uids: Vec<u32>) -> Arc<Self> {
        Arc::new(Self {
            service,
            limits,
            budget: Budget::new(limits.share(uids.len())),
            connections: Connections::new(limits, uids),
            parsing: Mutex::new(()),
        })
    }
}

/// A line, and what it costs.
struct Request {
    line: Vec<u8>,
    /// None for a line of at most [`SMALL_LINE`] bytes: their number is the connections'.
    charge: Option<Charge>,
    fds: Vec<OwnedFd>,
}

pub(crate) struct Connection<S> {
    socket: UnixStream,
    peer: Peer,
    shared: Arc<Shared<S>>,
    _slot: ConnectionSlot,
}

impl<S: Service> Connection<S> {
    pub fn new(socket: UnixStream, peer: Peer, shared: &Arc<Shared<S>>) -> Result<Self, ApiError> {
        Ok(Self {
            socket,
            _slot: shared.connections.enter(peer.uid)?,
            peer,
            shared: Arc::clone(shared),
        })
    }

    pub fn run(self) {
        if let Err(e) = self.requests() {
            debug!(
                "connection of uid {} pid {}: {e:?}",
                self.peer.uid, self.peer.pid
            );
        }
        self.shared.service.closed(&self.peer);
    }

    fn requests(&self) -> Result<(), LineError> {
        let mut reader = LineReader::default();
        loop {
            let request = self
                .next(&mut reader)
                .inspect_err(|e| self.say_farewell(e))?;
            if let Some(subscription) = self.answer(request)? {
                return self.events(&subscription);
            }
        }
    }

    /// Waits for a request; a long one waits until its bytes are free.
    fn next(&self, reader: &mut LineReader) -> Result<Request, LineError> {
        let Limits { idle, line, .. } = self.shared.limits;
        let mut charge = None;
        let mut read = reader.read(&self.socket, SMALL_LINE, idle, line);
        if matches!(read, Err(LineError::TooLong)) && self.longest() > SMALL_LINE {
            let budget = &self.shared.budget;
            charge = budget.take(self.peer.uid, LINE_COST * MAX_LINE, line);
            if charge.is_none() {
                return Err(LineError::NoRoom);
            }
            read = reader.read(&self.socket, self.longest(), line, line);
        }
        read.map(|(line, fds)| Request { line, charge, fds })
    }

    /// The longest line this peer may send.
    fn longest(&self) -> usize {
        let allowed = S::verbs().iter().filter(|v| v.access.admits(&self.peer));
        allowed
            .map(|verb| verb.max_line())
            .max()
            .unwrap_or(SMALL_LINE)
    }

    /// Tells the peer why it is disconnected, if that is news to it.
    fn say_farewell(&self, error: &LineError) {
        let error = match error {
            LineError::TooLong => too_long("a line", self.longest()),
            LineError::TooManyFds => {
                ApiError::bad_request(format!("more than {MAX_FDS} descriptors came with a line"))
            }
            LineError::TimedOut => ApiError::new("timeout", "no complete request came in time"),
            LineError::NoRoom => self.no_room(),
            LineError::Closed | LineError::Io(_) => return,
        };
        let _ = self.send(answer(None, Err(&error)), &[]);
    }

    /// Answers one line; a subscription if the connection now belongs to events.
    fn answer(&self, mut request: Request) -> Result<Option<Subscription>, LineError> {
        let (id, work) = self.parse(&request.line);
        if let Some(charge) = &mut request.charge {
            charge.shrink(LINE_COST * request.line.len());
        }
        // The work has its arguments: the line only costs memory from here on.
        request.line = Vec::new();
        let fds = std::mem::take(&mut request.fds);
        let answered = work.and_then(|work| self.work(work, fds, &mut request.charge));
        let (line, fds, events) = match answered {
            Ok(Reply::Value(value)) => (answer(id, Ok(&value)), Vec::new(), None),
            Ok(Reply::WithFds(value, fds)) => (answer(id, Ok(&value)), fds, None),
            Ok(Reply::Events(events)) => (answer(id, Ok(&json!({}))), Vec::new(), Some(events)),
            Err(error) => (answer(id, Err(&error)), Vec::new(), None),
        };
        if let Some(charge) = &mut request.charge {
            charge.shrink(line.len());
        }
        self.send(line, &fds)?;
        Ok(events)
    }

    /// Carries a request out; the answer of a listing is charged until it is sent.
    fn work(
        &self,
        work: Work<S>,
        fds: Vec<OwnedFd>,
        charge: &mut Option<Charge>,
    ) -> Result<Reply, ApiError> {
        if work.is_listing {
            let (budget, line) = (&self.shared.budget, self.shared.limits.line);
            *charge = budget.take(self.peer.uid, LINE_COST * MAX_LINE, line);
            if charge.is_none() {
                return Err(self.no_room());
            }
        }
        work.run(&self.shared.service, &self.peer, fds)
    }

    fn no_room(&self) -> ApiError {
        let message = format!(
            "uid {} has too many bytes in requests and answers; wait for the earlier ones",
            self.peer.uid
        );
        ApiError::new("too-many", message)
    }

    /// The number of a call, if it can be read, and what it asks.
    fn parse(&self, line: &[u8]) -> (Option<u64>, Result<Work<S>, ApiError>) {
        let _one = (line.len() > SMALL_LINE).then(|| {
            self.shared
                .parsing
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        });
        prepare(&self.peer, line)
    }

    fn events(&self, subscription: &Subscription) -> Result<(), LineError> {
        loop {
            match subscription.wait(HANG_UP_CHECK) {
                Ok(event) => self.send(event_line(&event), &[])?,
                Err(RecvTimeoutError::Timeout) if !hung_up(&self.socket, Duration::ZERO) => (),
                Err(_) => return Err(LineError::Closed),
            }
        }
    }

    fn send(&self, line: Vec<u8>, fds: &[OwnedFd]) -> Result<(), LineError> {
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        send_line(&self.socket, line, &fds, self.shared.limits.line)
    }
}
