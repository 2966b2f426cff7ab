// SPDX-License-Identifier: Apache-2.0
//! The caller's end.
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::line::{LineError, LineReader, hung_up, send_line};
use crate::message::{Incoming, Request, check_values};
use crate::{ApiError, Event, MAX_LINE, Signature, VERSION};

/// Longest wait for an answer unless [`Client::set_timeout`] says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why a call failed.
#[derive(Debug)]
pub enum ClientError {
    /// The daemon could not be reached, or the connection broke: nothing is known about the call.
    Connection(String),
    /// The daemon refused the call.
    Api(ApiError),
}

impl ClientError {
    /// The daemon's error code, if the daemon answered.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Connection(_) => None,
            Self::Api(error) => Some(&error.code),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(text) => f.write_str(text),
            Self::Api(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClientError {}

/// A connection to a daemon; one call at a time.
pub struct Client {
    socket: UnixStream,
    name: String,
    reader: LineReader,
    timeout: Duration,
    last_id: u64,
}

impl Client {
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, ClientError> {
        let name = path.as_ref().display().to_string();
        let socket = UnixStream::connect(&path)
            .map_err(|e| ClientError::Connection(format!("{name}: {e}; does the daemon run?")))?;
        Ok(Self {
            socket,
            name,
            reader: LineReader::default(),
            timeout: TIMEOUT,
            last_id: 0,
        })
    }

    /// Longest wait for one answer.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Calls a verb with its types.
    pub fn ask<V: Signature>(&mut self, args: &V::Args) -> Result<V::Answer, ClientError> {
        let broken = |e: serde_json::Error| ClientError::Connection(format!("{}: {e}", V::NAME));
        let args = serde_json::to_value(args).map_err(broken)?;
        serde_json::from_value(self.call(V::NAME, args)?).map_err(broken)
    }

    pub fn call(&mut self, verb: &str, args: Value) -> Result<Value, ClientError> {
        self.call_with_fds(verb, args, &[]).map(|(value, _)| value)
    }

    /// Sends `fds` along and returns those that came with the answer.
    pub fn call_with_fds(
        &mut self,
        verb: &str,
        args: Value,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Value, Vec<OwnedFd>), ClientError> {
        self.last_id += 1;
        let request = Request {
            v: VERSION,
            id: self.last_id,
            verb,
            args,
        };
        let line = serde_json::to_vec(&request).map_err(|e| self.broken(&e.to_string()))?;
        // A refused connection has its reason waiting to be read even if writing fails.
        let sent = send_line(&self.socket, line, fds, self.timeout);
        let (answer, fds) = match (self.incoming(self.timeout), sent) {
            (Err(_), Err(e)) => return Err(self.line_error(e)),
            (read, _) => read?,
        };
        match (answer.id, answer.ok, answer.error) {
            (Some(id), Some(ok), None) if id == self.last_id => Ok((ok, fds)),
            (None, None, Some(error)) => Err(ClientError::Api(error)),
            (Some(id), None, Some(error)) if id == self.last_id => Err(ClientError::Api(error)),
            _ => Err(self.broken("an answer does not belong to the request")),
        }
    }

    /// True if the daemon closes the connection within `timeout`.
    pub fn closes_within(&self, timeout: Duration) -> bool {
        hung_up(&self.socket, timeout)
    }

    /// Subscribes; from then on the connection carries only events.
    pub fn events(mut self) -> Result<EventReader, ClientError> {
        self.call("events", Value::Object(serde_json::Map::new()))?;
        Ok(EventReader(self))
    }

    fn incoming(&mut self, timeout: Duration) -> Result<(Incoming, Vec<OwnedFd>), ClientError> {
        let read = self.reader.read(&self.socket, MAX_LINE, timeout, timeout);
        let (line, fds) = read.map_err(|e| self.line_error(e))?;
        check_values(&line).map_err(|e| self.broken(&e))?;
        let incoming = serde_json::from_slice(&line).map_err(|e| self.broken(&e.to_string()))?;
        Ok((incoming, fds))
    }

    fn line_error(&self, error: LineError) -> ClientError {
        self.broken(&match error {
            LineError::Closed => "the daemon closed the connection".to_owned(),
            LineError::TooLong => format!("a line is longer than {} bytes", MAX_LINE),
            LineError::TooManyFds => {
                format!("more than {} descriptors with a line", crate::MAX_FDS)
            }
            LineError::TimedOut => format!("no answer within {} s", self.timeout.as_secs()),
            LineError::NoRoom => "no room for the answer".to_owned(),
            LineError::Io(e) => e.to_string(),
        })
    }

    fn broken(&self, why: &str) -> ClientError {
        ClientError::Connection(format!("{}: {why}", self.name))
    }
}

/// Events of a daemon, in order; ends with an error when the connection does.
pub struct EventReader(Client);

impl EventReader {
    /// Waits for the next event.
    pub fn next_event(&mut self) -> Result<Event, ClientError> {
        let (incoming, _) = self.0.incoming(FOREVER)?;
        match incoming.event {
            Some(event) => Ok(Event {
                event,
                data: incoming.data,
            }),
            None => Err(self.0.broken("a line is not an event")),
        }
    }
}
