// SPDX-License-Identifier: Apache-2.0
//! Sockets that wait for connections. They outlive a hot swap: an element of the new router that
//! asks for the same socket gets it.
use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use click_core::{ServerAddress, ServerSocket};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// A connection.
pub trait Stream: Read + Write + AsFd {}
impl<T: Read + Write + AsFd> Stream for T {}

/// Ports that `PORT+` tries.
const MAX_TRIES: u16 = 100;

enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// A connection that is there already, until it is taken.
    Given(RefCell<Option<UnixStream>>),
}

impl Kind {
    /// A connection that has come in, which never waits.
    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(listener) => unblocked(listener.accept()?.0),
            Self::Unix(listener) => unblocked(listener.accept()?.0),
            Self::Given(stream) => {
                let there = stream.take();
                unblocked(there.ok_or(ErrorKind::WouldBlock)?)
            }
        }
    }
}

fn unblocked<T: Stream + 'static>(stream: T) -> io::Result<Box<dyn Stream>> {
    rustix::io::ioctl_fionbio(&stream, true)?;
    Ok(Box::new(stream))
}

struct Listener {
    socket: ServerSocket,
    kind: Kind,
    /// Port or path.
    at: String,
}

/// All sockets that wait.
#[derive(Default)]
pub struct Listeners {
    list: Vec<Listener>,
}

impl Listeners {
    /// Listens, or continues listening, on a socket; returns port or path.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn listen(&mut self, socket: &ServerSocket) -> Result<String, String> {
        if let Some(known) = self.list.iter().find(|l| l.socket == *socket) {
            return Ok(known.at.clone());
        }
        let (kind, at) = match &socket.address {
            ServerAddress::Tcp { port, local } => tcp(port, *local)?,
            ServerAddress::Unix(path) => {
                let listener = UnixListener::bind(path);
                let listener = listener.and_then(|l| l.set_nonblocking(true).map(|()| l));
                let listener = listener.map_err(|e| format!("{path}: {e}"))?;
                (Kind::Unix(listener), path.clone())
            }
            ServerAddress::Descriptor(number) => {
                let given = given(*number).map_err(|e| format!("descriptor {number}: {e}"))?;
                (Kind::Given(RefCell::new(Some(given))), number.to_string())
            }
        };
        let socket = socket.clone();
        self.list.push(Listener { socket, kind, at });
        Ok(self.list[self.list.len() - 1].at.clone())
    }

    /// Keeps the sockets of these elements only.
    pub fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.list.retain(|l| is_kept(&l.socket.element));
    }

    /// Descriptors on which a connection can come.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().filter_map(|l| match &l.kind {
            Kind::Tcp(listener) => Some(listener.as_fd()),
            Kind::Unix(listener) => Some(listener.as_fd()),
            Kind::Given(_) => None,
        })
    }

    /// The connections that have come in.
    pub fn accept(&self) -> Vec<(ServerSocket, Box<dyn Stream>)> {
        let mut new = Vec::new();
        for Listener { socket, kind, .. } in &self.list {
            match kind.accept() {
                Ok(stream) => new.push((socket.clone(), stream)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => eprintln!("{}: {e}", socket.element),
            }
        }
        new
    }
}

/// The program's own descriptor with this number, once more: it need not be a UNIX socket.
fn given(number: u16) -> io::Result<UnixStream> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let again = pidfd_getfd(own, i32::from(number), PidfdGetfdFlags::empty())?;
    let stream = UnixStream::from(again);
    rustix::net::getpeername(&stream)?;
    Ok(stream)
}

/// Listens on `PORT`, or with `PORT+` on the first free one from there.
fn tcp(spec: &str, local: bool) -> Result<(Kind, String), String> {
    let (digits, tries) = match spec.strip_suffix('+') {
        Some(digits) => (digits, MAX_TRIES),
        None => (spec, 1),
    };
    let first: u16 = digits
        .parse()
        .map_err(|_| format!("expected a port, got \"{spec}\""))?;
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    let address = if local {
        Ipv4Addr::LOCALHOST
    } else {
        Ipv4Addr::UNSPECIFIED
    };
    for port in (0..tries).filter_map(|n| first.checked_add(n)) {
        match bind((address, port)) {
            Ok((listener, port)) => return Ok((Kind::Tcp(listener), port.to_string())),
            Err(error) => last = error,
        }
    }
    Err(format!("port {spec}: {last}"))
}

fn bind(address: (Ipv4Addr, u16)) -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix(_) = self.kind {
            // it may have been removed by somebody else
            let _ = fs::remove_file(&self.at);
        }
    }
}
