// SPDX-License-Identifier: Apache-2.0
//! Tells peers of sockets what the console is: the protocol of ChatterSocket, version 1.0, which is a greeting and lines.
use std::io::{ErrorKind, Read, Write};
use std::os::fd::BorrowedFd;

use click_core::ChatterOptions;

use crate::listener::Stream;

const GREETING: &[u8] = b"Click::ChatterSocket/1.0\r\n";
/// Peers at a time; further ones are closed at once.
const MAX_PEERS: usize = 32;
/// Peers further behind get no more lines.
const MAX_BEHIND: usize = 500_000;

struct Peer {
    stream: Box<dyn Stream>,
    element: String,
    is_default: bool,
    waiting: Vec<u8>,
    over: bool,
}

impl Peer {
    fn tell(&mut self, text: &[u8]) {
        self.waiting.extend(text);
        self.send();
        self.over |= self.waiting.len() > MAX_BEHIND;
    }

    fn send(&mut self) {
        while !self.waiting.is_empty() && !self.over {
            match self.stream.write(&self.waiting) {
                Ok(sent) if sent > 0 => drop(self.waiting.drain(..sent)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                _ => self.over = true,
            }
        }
    }

    /// Looks whether the peer has gone; what it says does not matter.
    fn listen(&mut self) {
        match self.stream.read(&mut [0; 4096]) {
            Ok(read) => self.over |= read == 0,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.over = true,
        }
    }
}

/// All peers.
#[derive(Default)]
pub struct Chatter {
    peers: Vec<Peer>,
}

impl Chatter {
    /// Takes a new connection to an element's socket.
    pub fn add(&mut self, element: String, options: &ChatterOptions, stream: Box<dyn Stream>) {
        if self.peers.len() == MAX_PEERS {
            return;
        }
        let mut peer = Peer {
            stream,
            element,
            is_default: options.is_default,
            waiting: Vec::new(),
            over: false,
        };
        if options.greeting {
            peer.tell(GREETING);
        }
        self.peers.push(peer);
    }

    /// Keeps the peers of these elements only.
    pub fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.peers.retain(|peer| is_kept(&peer.element));
    }

    /// Descriptors that tell that a peer has gone.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.peers.iter().map(|peer| peer.stream.as_fd())
    }

    /// Tells everybody a line of the console.
    pub fn tell(&mut self, line: &[u8]) {
        let peers = self.peers.iter_mut().filter(|peer| peer.is_default);
        peers.for_each(|peer| peer.tell(line));
    }

    /// Sends what has not been sent, and forgets who has gone.
    pub fn poll(&mut self) {
        for peer in &mut self.peers {
            peer.listen();
            peer.send();
        }
        self.peers.retain(|peer| !peer.over);
    }
}
