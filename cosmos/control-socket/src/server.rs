// SPDX-License-Identifier: Apache-2.0
//! The daemon's end: accepts, checks roles, calls the service, one thread a connection.
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use log::{debug, warn};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::line::{LineError, LineReader, hung_up, send_line};
use crate::message::{Request, answer, event_line};
use crate::{ApiError, MAX_FDS, MAX_LINE, OPERATOR, Peer, Roles, Subscription};

/// Who may call a verb. [`OPERATOR`] always may.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Every peer that has a role.
    Any,
    /// Peers with one of these roles.
    Only(&'static [&'static str]),
}

/// What a verb answers.
pub enum Reply {
    Value(Value),
    /// An answer with at most [`MAX_FDS`] descriptors.
    WithFds(Value, Vec<OwnedFd>),
    /// An empty answer; from then on the connection carries only events.
    Events(Subscription),
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

/// What a daemon does behind its socket. Called from one thread per connection.
pub trait Service: Send + Sync {
    /// Every verb and who may call it; a verb not listed is a bad request.
    fn verbs(&self) -> &'static [(&'static str, Access)];

    /// Does what `verb` asks. The peer's role and the verb's existence are checked already;
    /// descriptors not taken are closed.
    fn call(
        &self,
        peer: &Peer,
        verb: &str,
        args: Value,
        fds: Vec<OwnedFd>,
    ) -> Result<Reply, ApiError>;

    /// The peer's connection has ended, and no call of it is under way.
    fn closed(&self, _peer: &Peer) {}
}

/// Bounds on what peers may make a server hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    pub connections_per_uid: usize,
    /// Longest silence between two requests.
    pub idle: Duration,
    /// Longest time from the first byte of a line to its last, in either direction.
    pub line: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_per_uid: 128,
            idle: Duration::from_secs(600),
            line: Duration::from_secs(10),
        }
    }
}

/// A bound socket.
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    roles: Roles,
    limits: Limits,
    stop: Arc<OwnedFd>,
    connections: Arc<Connections>,
}

/// Ends [`Server::serve`] from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<OwnedFd>);

impl Stopper {
    pub fn stop(&self) {
        // The counter cannot overflow from single steps; any other failure means it is set.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

impl Server {
    /// Binds `path` with mode 0666: access is decided by peer credentials. A socket file that
    /// nobody listens on is replaced; a live one or any other file is an error.
    pub fn bind(path: &Path, roles: Roles) -> io::Result<Self> {
        remove_stale(path)?;
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let listener = UnixListener::bind(path).map_err(named)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(named)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            roles,
            limits: Limits::default(),
            stop: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
            connections: Arc::default(),
        })
    }

    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Answers peers until [`Stopper::stop`]; then removes the socket file.
    pub fn serve(self, service: Arc<dyn Service>) -> io::Result<()> {
        loop {
            let mut fds = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => (),
                Err(e) => return Err(e.into()),
            }
            if !fds[1].revents().is_empty() {
                return Ok(());
            }
            self.accept(&service);
        }
    }

    fn accept(&self, service: &Arc<dyn Service>) {
        let socket = match self.listener.accept() {
            Ok((socket, _)) => socket,
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::ConnectionAborted
                ) =>
            {
                return;
            }
            Err(e) => {
                // Out of descriptors: the waiting peer stays readable, so do not spin on it.
                warn!("{}: accept: {e}", self.path.display());
                return std::thread::sleep(Duration::from_millis(100));
            }
        };
        if let Err(error) = self.admit(&socket, service) {
            let line = answer(None, Err(&error)).to_string().into_bytes();
            let _ = send_line(&socket, line, &[], Duration::ZERO);
        }
    }

    fn admit(&self, socket: &UnixStream, service: &Arc<dyn Service>) -> Result<(), ApiError> {
        let internal = |e: io::Error| ApiError::new("internal", e.to_string());
        let peer = Peer::of(socket, &self.roles).map_err(internal)?;
        if peer.roles.is_empty() {
            return Err(ApiError::new(
                "forbidden",
                format!("uid {} has no role here", peer.uid),
            ));
        }
        let place = Connections::enter(&self.connections, peer.uid, &self.limits)?;
        let connection = Connection {
            socket: socket.try_clone().map_err(internal)?,
            peer,
            limits: self.limits,
            service: Arc::clone(service),
            _place: place,
        };
        let thread = std::thread::Builder::new().name("control".into());
        thread
            .spawn(move || connection.run())
            .map(drop)
            .map_err(internal)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A daemon that was killed a moment ago still listens until its last thread has ended.
const PREDECESSOR_END: Duration = Duration::from_secs(2);

fn remove_stale(path: &Path) -> io::Result<()> {
    let named = |kind, text: &str| io::Error::new(kind, format!("{}: {text}", path.display()));
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(named(e.kind(), &e.to_string())),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(named(
                ErrorKind::AlreadyExists,
                "is not a socket; remove it or choose another path",
            ));
        }
        Ok(_) => (),
    }
    let deadline = Instant::now() + PREDECESSOR_END;
    loop {
        match UnixStream::connect(path) {
            Ok(_) if Instant::now() < deadline => thread::sleep(PREDECESSOR_END / 40),
            Ok(_) => {
                return Err(named(
                    ErrorKind::AddrInUse,
                    "another daemon listens here; stop it or choose another path",
                ));
            }
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => return fs::remove_file(path),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(named(e.kind(), &e.to_string())),
        }
    }
}

/// How many connections each uid has.
#[derive(Default)]
struct Connections(Mutex<BTreeMap<u32, usize>>);

/// One counted connection; leaving is dropping it.
struct Place(Arc<Connections>, u32);

impl Connections {
    fn enter(this: &Arc<Self>, uid: u32, limits: &Limits) -> Result<Place, ApiError> {
        let mut counts = this.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let own = counts.entry(uid).or_default();
        if all >= limits.connections || *own >= limits.connections_per_uid {
            let message = format!(
                "too many connections: {all} of {} in all, {own} of {} by uid {uid}",
                limits.connections, limits.connections_per_uid
            );
            return Err(ApiError::new("too-many", message));
        }
        *own += 1;
        Ok(Place(Arc::clone(this), uid))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = counts.get_mut(&self.1) {
            *own -= 1;
            if *own == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

struct Connection {
    socket: UnixStream,
    peer: Peer,
    limits: Limits,
    service: Arc<dyn Service>,
    _place: Place,
}

impl Connection {
    fn run(self) {
        if let Err(e) = self.requests() {
            debug!(
                "connection of uid {} pid {}: {e:?}",
                self.peer.uid, self.peer.pid
            );
        }
        self.service.closed(&self.peer);
    }

    fn requests(&self) -> Result<(), LineError> {
        let mut reader = LineReader::default();
        loop {
            let (line, fds) = match reader.read(&self.socket, self.limits.idle, self.limits.line) {
                Ok(read) => read,
                Err(error) => {
                    self.say_farewell(&error);
                    return Err(error);
                }
            };
            if let Some(subscription) = self.request(&line, fds)? {
                return self.events(&subscription);
            }
        }
    }

    /// Tells the peer why it is disconnected, if that is news to it.
    fn say_farewell(&self, error: &LineError) {
        let error = match error {
            LineError::TooLong => ApiError::new(
                "too-long",
                format!("a line is longer than {MAX_LINE} bytes"),
            ),
            LineError::TooManyFds => {
                ApiError::bad_request(format!("more than {MAX_FDS} descriptors came with a line"))
            }
            LineError::TimedOut => ApiError::new("timeout", "no complete request came in time"),
            LineError::Closed | LineError::Io(_) => return,
        };
        let _ = self.send(&answer(None, Err(&error)), &[]);
    }

    /// Answers one line; a subscription if the connection now belongs to events.
    fn request(&self, line: &[u8], fds: Vec<OwnedFd>) -> Result<Option<Subscription>, LineError> {
        let (id, result) = match Request::parse(line) {
            Ok(request) => (Some(request.id), self.dispatch(request, fds)),
            Err(error) => (None, Err(error)),
        };
        match result {
            Ok(Reply::Value(value)) => self.send(&answer(id, Ok(&value)), &[])?,
            Ok(Reply::WithFds(value, fds)) => self.send(&answer(id, Ok(&value)), &fds)?,
            Ok(Reply::Events(subscription)) => {
                self.send(&answer(id, Ok(&json!({}))), &[])?;
                return Ok(Some(subscription));
            }
            Err(error) => self.send(&answer(id, Err(&error)), &[])?,
        }
        Ok(None)
    }

    fn dispatch(&self, request: Request, fds: Vec<OwnedFd>) -> Result<Reply, ApiError> {
        let Request { verb, args, .. } = request;
        let Some((_, access)) = self.service.verbs().iter().find(|(name, _)| *name == verb) else {
            return Err(ApiError::bad_request(format!("unknown verb {:.64?}", verb)));
        };
        let allowed = match access {
            Access::Any => true,
            Access::Only(roles) => {
                self.peer.has(OPERATOR) || roles.iter().any(|role| self.peer.has(role))
            }
        };
        if !allowed {
            let message = format!(
                "{verb}: uid {} has the roles {:?} only",
                self.peer.uid, self.peer.roles
            );
            return Err(ApiError::new("forbidden", message));
        }
        self.service.call(&self.peer, &verb, args, fds)
    }

    fn events(&self, subscription: &Subscription) -> Result<(), LineError> {
        loop {
            match subscription.0.recv_timeout(Duration::from_secs(1)) {
                Ok(event) => self.send(&event_line(&event), &[])?,
                Err(RecvTimeoutError::Timeout) if !hung_up(&self.socket) => (),
                Err(_) => return Err(LineError::Closed),
            }
        }
    }

    fn send(&self, value: &Value, fds: &[OwnedFd]) -> Result<(), LineError> {
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        send_line(
            &self.socket,
            value.to_string().into_bytes(),
            &fds,
            self.limits.line,
        )
    }
}
