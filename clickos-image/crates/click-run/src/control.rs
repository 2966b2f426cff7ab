// SPDX-License-Identifier: Apache-2.0
//! The ControlSocket protocol, version 1.3: handlers called over TCP or a UNIX socket.
//!
//! A line of a request is a command and its arguments; an answer is `CODE TEXT`, and for values
//! `DATA N` and N bytes. The server never waits: it is polled between slices of the router.
pub mod code;
pub mod command;
mod connection;
mod llrpc;

use std::os::fd::BorrowedFd;

use click_core::ControlOptions;

use crate::listener::Stream;
use connection::Connection;

/// The calls behind the commands. Errors are a code of the protocol and a text.
pub trait Service {
    /// Reads a handler.
    ///
    /// # Errors
    /// Code and text.
    fn read(&mut self, name: &str, param: &str) -> Result<Vec<u8>, (u16, String)>;
    /// Writes a handler.
    ///
    /// # Errors
    /// Code and text.
    fn write(&mut self, name: &str, value: &[u8]) -> Result<(), (u16, String)>;
    /// True if a handler can be read, or written.
    ///
    /// # Errors
    /// Code and text if it cannot.
    fn check(&mut self, name: &str, write: bool) -> Result<(), (u16, String)>;
    /// The name of the element with this number, from 1.
    fn element(&mut self, number: usize) -> Option<String>;
    /// Tells the user something.
    fn say(&mut self, text: &str);
}

/// Connections at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 32;

/// A server of any number of connections.
#[derive(Default)]
pub struct Control {
    connections: Vec<Connection>,
}

impl Control {
    /// Descriptors on which something can come.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.connections.iter().map(Connection::file)
    }

    /// Takes a new connection to an element's socket.
    pub fn add(
        &mut self,
        element: String,
        options: ControlOptions,
        stream: Box<dyn Stream>,
        service: &mut dyn Service,
    ) {
        if self.connections.len() < MAX_CONNECTIONS {
            if options.verbose {
                service.say(&format!("{element}: opened connection"));
            }
            let connection = Connection::new(stream, element, options);
            self.connections.push(connection);
        }
    }

    /// Answers what has come in; returns whether there was anything.
    pub fn poll(&mut self, service: &mut dyn Service) -> bool {
        let mut worked = false;
        for connection in &mut self.connections {
            worked |= connection.serve(service);
            if connection.is_over() && connection.options().verbose {
                service.say(&format!("{}: closed connection", connection.element()));
            }
        }
        self.connections.retain(|c| !c.is_over());
        worked
    }
}
