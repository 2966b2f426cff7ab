// SPDX-License-Identifier: Apache-2.0
//! A VXLAN network as the far end of a port (docs/adr/0054-networks.md).
mod endpoint;
#[cfg(test)]
pub(crate) mod free_port;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use vale_proto::{Counters, Mac, Vxlan};

use crate::clock::Nanoseconds;
use crate::device::{Buffers, Burst, Device};
use crate::frame::gso::TxOffload;
use crate::frame::headers::octets;
use crate::frame::rx_frame::RxFrame;
use crate::frame::tx_frame::{TxFrame, append};
use crate::stations::mac_learning::MacLearning;
pub use endpoint::{Endpoint, Form, Tunnels};

/// VXLAN header, in bytes (RFC 7348).
const HEADER: usize = 8;
/// The flag of a header with a network number.
const HAS_VNI: u8 = 0x08;

/// One network of an endpoint.
pub struct VxlanPort {
    vni: u32,
    /// UDP port of all hosts.
    port: u16,
    /// Each keeps its place while it is a peer: `stations` and frames that wait name it.
    peers: Vec<Option<IpAddr>>,
    socket: Arc<UdpSocket>,
    endpoint: Arc<Mutex<Endpoint>>,
    /// A copy of the socket's descriptor: epoll takes each only once.
    event: OwnedFd,
    /// The peer of each station, by its index.
    stations: MacLearning,
    /// One datagram.
    datagram: Vec<u8>,
}

impl VxlanPort {
    fn open(of: &Vxlan, port: u16, endpoint: Arc<Mutex<Endpoint>>) -> io::Result<Self> {
        let socket = lock(&endpoint).join(of.vni, &of.peers)?;
        let copy = rustix::io::fcntl_dupfd_cloexec(&*socket, 3);
        let event = copy.inspect_err(|_| lock(&endpoint).leave(of.vni))?;
        Ok(Self {
            vni: of.vni,
            port,
            peers: of.peers.iter().copied().map(Some).collect(),
            socket,
            endpoint,
            event,
            stations: MacLearning::default(),
            datagram: Vec::new(),
        })
    }

    /// Sends one frame to the peer that has its destination, or to all peers.
    fn send(&self, destination: Mac, now: Nanoseconds, counters: &mut Counters) {
        let known = match destination.is_multicast() {
            true => None,
            false => self.stations.find(0, destination, now),
        };
        let known = known.and_then(|peer| self.peers.get(peer)?.as_ref());
        let all = known.is_none().then_some(self.peers.iter().flatten());
        for peer in known.into_iter().chain(all.into_iter().flatten()) {
            let to = SocketAddr::new(*peer, self.port);
            match self.socket.send_to(&self.datagram, to) {
                Ok(_) => {
                    counters.tx_packets += 1;
                    counters.tx_bytes += (self.datagram.len() - HEADER) as u64;
                }
                Err(error) => *counter_of(&error, counters) += 1,
            }
        }
    }
}

impl Drop for VxlanPort {
    fn drop(&mut self) {
        lock(&self.endpoint).leave(self.vni);
    }
}

impl Device for VxlanPort {
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
        let mut endpoint = lock(&self.endpoint);
        endpoint.fetch(self.vni, &mut burst.frames);
        drop(endpoint);
        for (frame, peer) in &burst.frames {
            if let Some(source) = octets(frame, 6).map(Mac).filter(|m| !m.is_multicast()) {
                self.stations.learn(0, source, *peer, burst.now);
            }
        }
        burst.frames.len()
    }

    fn peek<'a>(&self, burst: &'a Burst, n: usize) -> Option<&'a [u8]> {
        burst.frames.get(n).map(|(bytes, _)| &bytes[..])
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        Some(RxFrame {
            bytes: &mut burst.frames.get_mut(n)?.0,
            rest: None,
            offload: TxOffload::default(),
        })
    }

    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters) {
        let (now, vni) = (out.now, self.vni);
        out.finish(&mut buffers.segment, |head, rest| {
            self.datagram.clear();
            self.datagram.extend_from_slice(&header(vni));
            append(&mut self.datagram, head, rest);
            if let Some(destination) = octets(head, 0) {
                self.send(Mac(destination), now, counters);
            }
        });
    }

    fn flush(&mut self, _: &mut Counters) {}

    fn sleep_prepare(&mut self) -> bool {
        lock(&self.endpoint).is_busy(self.vni)
    }

    fn set_peers(&mut self, peers: &[IpAddr]) {
        for (place, of) in self.peers.iter_mut().enumerate() {
            if of.take_if(|peer| !peers.contains(peer)).is_some() {
                self.stations.forget(place);
            }
        }
        for peer in peers.iter().copied().map(Some) {
            if !self.peers.contains(&peer) {
                let free = self.peers.iter_mut().find(|place| place.is_none());
                match free {
                    Some(place) => *place = peer,
                    None => self.peers.push(peer),
                }
            }
        }
        lock(&self.endpoint).set_peers(self.vni, &self.peers);
    }

    fn malformed(&self) -> u64 {
        lock(&self.endpoint).refused(self.vni)
    }
}

fn header(vni: u32) -> [u8; HEADER] {
    let [_, a, b, c] = vni.to_be_bytes();
    [HAS_VNI, 0, 0, 0, a, b, c, 0]
}

/// The network number and the frame of a datagram.
pub fn parse(datagram: &[u8]) -> Option<(u32, &[u8])> {
    let [flags, _, _, _, a, b, c, _] = octets(datagram, 0)?;
    let vni = u32::from_be_bytes([0, a, b, c]);
    (flags & HAS_VNI != 0).then_some((vni, &datagram[HEADER..]))
}

/// A panic of another thread leaves no invalid endpoint.
pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn counter_of<'a>(error: &io::Error, counters: &'a mut Counters) -> &'a mut u64 {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        _ if error.kind() == ErrorKind::WouldBlock => &mut counters.dropped_full,
        Some(Errno::NOBUFS | Errno::NOMEM) => &mut counters.dropped_full,
        Some(Errno::MSGSIZE) => &mut counters.dropped_too_long,
        _ => &mut counters.dropped_link_down,
    }
}

#[cfg(test)]
mod tests;
