// SPDX-License-Identifier: Apache-2.0
//! The ControlSocket protocol, version 1.3: handlers called over TCP or a UNIX socket.
//!
//! A line of a request is a command and its arguments; an answer is `CODE TEXT`, and for values
//! `DATA N` and N bytes. The server never waits: it is polled between slices of the router.
mod connection;

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use connection::Connection;
pub use connection::Service;

/// Connections at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 32;
/// Ports that `PORT+` tries.
const MAX_TRIES: u16 = 100;

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// A server of any number of sockets.
#[derive(Default)]
pub struct Control {
    listeners: Vec<Listener>,
    connections: Vec<Connection>,
}

impl Control {
    /// Listens on `PORT` of the loopback address, or with `PORT+` on the first free one from there.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn listen_tcp(&mut self, spec: &str) -> Result<(), String> {
        let (digits, tries) = match spec.strip_suffix('+') {
            Some(digits) => (digits, MAX_TRIES),
            None => (spec, 1),
        };
        let first: u16 = digits
            .parse()
            .map_err(|_| format!("--port: expected a port, got \"{spec}\""))?;
        let mut last = None;
        for port in (0..tries).filter_map(|n| first.checked_add(n)) {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Ok(listener) => {
                    listener.set_nonblocking(true).map_err(|e| e.to_string())?;
                    self.listeners.push(Listener::Tcp(listener));
                    return Ok(());
                }
                Err(error) => last = Some(error),
            }
        }
        let reason = last.map_or("no port".to_string(), |e| e.to_string());
        Err(format!("--port {spec}: {reason}"))
    }

    /// Listens on a new UNIX socket, which is removed at the end.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn listen_unix(&mut self, path: &PathBuf) -> Result<(), String> {
        let failed = |e: io::Error| format!("--unix-socket {}: {e}", path.display());
        let listener = UnixListener::bind(path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        self.listeners.push(Listener::Unix(listener, path.clone()));
        Ok(())
    }

    /// Whether anybody can connect.
    pub fn is_used(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Takes new connections and answers what has come in; returns whether there was anything.
    pub fn poll(&mut self, service: &mut dyn Service) -> bool {
        let mut worked = self.accept();
        for connection in &mut self.connections {
            worked |= connection.serve(service);
        }
        self.connections.retain(|c| !c.is_over());
        worked
    }

    fn accept(&mut self) -> bool {
        let mut any = false;
        for listener in &self.listeners {
            let accepted = match listener {
                Listener::Tcp(l) => l.accept().and_then(|(s, _)| Connection::new_tcp(s)),
                Listener::Unix(l, _) => l.accept().and_then(|(s, _)| Connection::new_unix(s)),
            };
            match accepted {
                Ok(connection) if self.connections.len() < MAX_CONNECTIONS => {
                    self.connections.push(connection);
                    any = true;
                }
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => eprintln!("control socket: {e}"),
            }
        }
        any
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        for listener in &self.listeners {
            if let Listener::Unix(_, path) = listener {
                // it may have been removed by somebody else
                let _ = fs::remove_file(path);
            }
        }
    }
}
