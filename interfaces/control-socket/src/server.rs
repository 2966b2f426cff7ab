// SPDX-License-Identifier: Apache-2.0
//! The daemon's end: binds the socket and accepts connections, one thread each.
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use log::warn;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use crate::connection::{Connection, Shared};
use crate::line::send_line;
use crate::message::answer;
use crate::threads::spawn;
use crate::{ApiError, Limits, Peer, Roles, Service};

/// A bound socket.
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    roles: Roles,
    limits: Limits,
    stop: Arc<OwnedFd>,
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
    /// Binds `path` with mode 0666: access is decided by peer credentials. It replaces a socket
    /// file without a listener; a live one or any other file is an error.
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
    pub fn serve<S: Service>(self, service: Arc<S>) -> io::Result<()> {
        let shared = Shared::new(service, self.limits, self.roles.uids());
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
            self.accept(&shared);
        }
    }

    fn accept<S: Service>(&self, shared: &Arc<Shared<S>>) {
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
                return thread::sleep(Duration::from_millis(100));
            }
        };
        if let Err(error) = self.admit(socket.as_fd(), shared) {
            let line = answer(None, Err(&error));
            let _ = send_line(&socket, line, &[], Duration::ZERO);
        }
    }

    fn admit<S: Service>(
        &self,
        socket: BorrowedFd<'_>,
        shared: &Arc<Shared<S>>,
    ) -> Result<(), ApiError> {
        let internal = |e: io::Error| ApiError::new("internal", e.to_string());
        let peer = Peer::of(socket, &self.roles).map_err(internal)?;
        if peer.roles.is_empty() {
            let message = format!(
                "uid {} has no role here; use root or a uid of [roles] in the daemon's file",
                peer.uid
            );
            return Err(ApiError::new("forbidden", message));
        }
        let socket = socket.try_clone_to_owned().map_err(internal)?;
        let connection = Connection::new(socket.into(), peer, shared)?;
        let thread = thread::Builder::new().name("control".into());
        spawn(thread, move || connection.run())
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
