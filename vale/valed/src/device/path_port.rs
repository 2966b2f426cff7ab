// SPDX-License-Identifier: Apache-2.0
//! The port that leads to the other hosts of a chain's path (docs/adr/0032-chains.md).
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use vale_proto::{Counters, Path};

use crate::device::vxlan::{Endpoint, Form, Tunnels, counter_of, lock};
use crate::device::{Buffers, Burst, Device};
use crate::frame::gso::TxOffload;
use crate::frame::headers::ETHERNET;
use crate::frame::nsh::{self, Content, HEADERS, Heard, Label, Link, NSH, State};
use crate::frame::rx_frame::RxFrame;
use crate::frame::tx_frame::{TxFrame, append};

/// The port of VXLAN-GPE.
const UDP_PORT: u16 = 4790;
/// Datagrams of this host's paths.
const FORM: Form = Form {
    parse: nsh::parse_gpe,
    longest: NSH + ring::LONGEST,
};

/// The sockets for paths, one for each address of this host.
pub struct Paths(Tunnels);

impl Default for Paths {
    fn default() -> Self {
        Self::at(UDP_PORT)
    }
}

impl Paths {
    pub fn at(port: u16) -> Self {
        Self(Tunnels::of(port, FORM))
    }

    /// Opens the port of a path, and the link by which its chain speaks with the other hosts.
    ///
    /// # Errors
    /// Another chain has the path's number, or the address is not this host's.
    pub fn open(&self, path: &Path) -> io::Result<(PathPort, Arc<Link>)> {
        let endpoint = self.0.endpoint(path.local)?;
        let hosts = path.hosts.iter().copied();
        let peers: Vec<_> = hosts.filter(|host| *host != path.local).collect();
        let socket = lock(&endpoint).join(path.number, &peers)?;
        let copy = rustix::io::fcntl_dupfd_cloexec(&*socket, 3);
        let event = copy.inspect_err(|_| lock(&endpoint).leave(path.number))?;
        let link = Link::new(path.number, path.local, self.0.port(), socket);
        let link = Arc::new(link);
        let port = PathPort {
            link: Arc::clone(&link),
            peers: peers.into_iter().map(Some).collect(),
            endpoint,
            event,
            datagram: Vec::new(),
            refused: 0,
            senders: Senders::default(),
        };
        Ok((port, link))
    }
}

/// The far end of a path's port.
pub struct PathPort {
    link: Arc<Link>,
    /// The place of each host that may send.
    peers: Vec<Option<IpAddr>>,
    endpoint: Arc<Mutex<Endpoint>>,
    /// A copy of the socket's descriptor: epoll takes each only once.
    event: OwnedFd,
    /// One datagram.
    datagram: Vec<u8>,
    /// Datagrams of peers that are no packets of the path.
    refused: u64,
    senders: Senders,
}

/// The peers, with versions of the chain, whose frames came since the last tick.
#[derive(Default)]
struct Senders {
    tick: u32,
    found: Vec<(usize, u64)>,
}

/// Peers with versions that are kept apart: each host has few versions at a time.
const MAX_SENDERS: usize = 64;

impl Senders {
    /// True for the first frame in a tick.
    fn are_new(&mut self, tick: u32, sender: (usize, u64)) -> bool {
        if self.tick != tick {
            self.tick = tick;
            self.found.clear();
        }
        let is_new = self.found.len() < MAX_SENDERS && !self.found.contains(&sender);
        if is_new {
            self.found.push(sender);
        }
        is_new
    }
}

impl PathPort {
    /// True for a packet of the path. A state goes to the link.
    fn sorts(&mut self, bytes: &[u8], peer: usize) -> bool {
        let label = nsh::parse_nsh(bytes).filter(|(label, _)| label.number == self.link.number);
        match label {
            Some((label, Content::Frame)) if bytes.len() >= NSH + ETHERNET => {
                let sender = (peer, label.version);
                if self.senders.are_new(self.link.tick(), sender) {
                    self.keep(peer, Some(Heard::Frame(label.version)));
                }
                return true;
            }
            Some((label, Content::State)) => {
                let state = State::parse(label.version, &bytes[NSH..]);
                self.keep(peer, state.map(Heard::State));
            }
            _ => self.refused += 1,
        }
        false
    }

    fn keep(&self, peer: usize, heard: Option<Heard>) {
        let from = self.peers.get(peer).copied().flatten();
        if let Some((from, heard)) = from.zip(heard) {
            self.link.keep(from, heard);
        }
    }
}

impl Drop for PathPort {
    fn drop(&mut self) {
        lock(&self.endpoint).leave(self.link.number);
    }
}

impl Device for PathPort {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_fd())
    }

    fn is_of_kernel(&self) -> bool {
        true
    }

    fn take_event(&mut self) {
        lock(&self.endpoint).ready = true;
    }

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        lock(&self.endpoint).fetch(self.link.number, &mut burst.frames);
        let frames = &mut burst.frames;
        frames.retain(|(bytes, peer)| self.sorts(bytes, *peer));
        frames.len()
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        Some(RxFrame {
            bytes: burst.frames.get_mut(n)?.0.get_mut(NSH..)?,
            rest: None,
            offload: TxOffload::default(),
        })
    }

    fn label(&self, burst: &Burst, n: usize) -> Option<Label> {
        let (bytes, _) = burst.frames.get(n)?;
        nsh::parse_nsh(bytes).map(|(label, _)| label)
    }

    /// Sends packets of the chain only: other frames have no label.
    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters) {
        let Some((host, label)) = out.label else {
            counters.dropped_unknown += 1;
            return;
        };
        let to = SocketAddr::new(host, self.link.port());
        let headers = nsh::headers(&label, Content::Frame);
        out.finish(&mut buffers.segment, |head, rest| {
            self.datagram.clear();
            self.datagram.extend_from_slice(&headers);
            append(&mut self.datagram, head, rest);
            match self.link.socket().send_to(&self.datagram, to) {
                Ok(_) => {
                    counters.tx_packets += 1;
                    counters.tx_bytes += (self.datagram.len() - HEADERS) as u64;
                }
                Err(error) => *counter_of(&error, counters) += 1,
            }
        });
    }

    fn flush(&mut self, _: &mut Counters) {}

    fn sleep_prepare(&mut self) -> bool {
        lock(&self.endpoint).is_busy(self.link.number)
    }

    fn set_peers(&mut self, peers: &[IpAddr]) {
        self.peers = peers.iter().copied().map(Some).collect();
        lock(&self.endpoint).set_peers(self.link.number, &self.peers);
    }

    fn malformed(&self) -> u64 {
        self.refused + lock(&self.endpoint).refused(self.link.number)
    }
}
