// SPDX-License-Identifier: Apache-2.0
//! The socket of all VXLAN networks at one address of this host.
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex, Weak};

use ring::LONGEST;
use rustix::net::sockopt;
use vale_proto::Vxlan;

use super::{HEADER, VxlanPort, lock, parse};
use crate::device::BURST;
use crate::frame::headers::ETHERNET;

/// The port of VXLAN (RFC 7348).
const UDP_PORT: u16 = 4789;
/// Frames of one network that wait for its port.
const INBOX: usize = 256;

/// Bytes of datagrams that the kernel keeps while the switch does something else. Its usual 208 KiB
/// hold some 250 frames: 50 us of a 64 B stream at 5 million frames/s.
const KERNEL_BUFFER: usize = 8 << 20;

/// A frame, and the index of the peer that sent it.
pub type Arrived = (Vec<u8>, usize);

/// Reads a datagram.
type Parse = fn(&[u8]) -> Option<(u32, &[u8])>;

/// The form of an endpoint's datagrams.
#[derive(Clone, Copy)]
pub struct Form {
    /// The network's number, and what the port of the network gets.
    pub parse: Parse,
    /// Most bytes that the port gets.
    pub longest: usize,
}

/// Datagrams of VXLAN.
const FORM: Form = Form {
    parse,
    longest: LONGEST,
};

/// The endpoints of this host by their addresses.
pub struct Tunnels {
    port: u16,
    form: Form,
    endpoints: Mutex<BTreeMap<IpAddr, Weak<Mutex<Endpoint>>>>,
}

impl Default for Tunnels {
    fn default() -> Self {
        Self::at(UDP_PORT)
    }
}

impl Tunnels {
    pub fn at(port: u16) -> Self {
        Self::of(port, FORM)
    }

    /// Endpoints at a UDP port, for datagrams of one form.
    pub fn of(port: u16, form: Form) -> Self {
        Self {
            port,
            form,
            endpoints: Mutex::default(),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Opens a network. The last one to leave an address closes its socket.
    ///
    /// # Errors
    /// Another port has the network, or the address is not this host's.
    pub fn open(&self, of: &Vxlan) -> io::Result<VxlanPort> {
        VxlanPort::open(of, self.port, self.endpoint(of.local)?)
    }

    /// The endpoint at an address of this host, opened if need be.
    pub fn endpoint(&self, local: IpAddr) -> io::Result<Arc<Mutex<Endpoint>>> {
        let mut endpoints = lock(&self.endpoints);
        endpoints.retain(|_, endpoint| endpoint.strong_count() > 0);
        let found = endpoints.get(&local).and_then(Weak::upgrade);
        let endpoint = match found {
            Some(endpoint) => endpoint,
            None => Arc::new(Mutex::new(Endpoint::bind(local, self.port, self.form)?)),
        };
        endpoints.insert(local, Arc::downgrade(&endpoint));
        Ok(endpoint)
    }
}

struct Network {
    peers: Vec<Option<IpAddr>>,
    inbox: VecDeque<Arrived>,
    /// Datagrams from strangers, without a frame, or beyond the inbox.
    refused: u64,
}

pub struct Endpoint {
    form: Form,
    socket: Arc<UdpSocket>,
    /// There may be datagrams to read.
    pub ready: bool,
    networks: BTreeMap<u32, Network>,
    buffer: Box<[u8]>,
    /// Memory of frames that the switch has forwarded.
    spare: Vec<Vec<u8>>,
}

impl Endpoint {
    fn bind(local: IpAddr, port: u16, form: Form) -> io::Result<Self> {
        let socket = UdpSocket::bind((local, port))?;
        socket.set_nonblocking(true)?;
        keep_bursts(&socket)?;
        Ok(Self {
            form,
            socket: Arc::new(socket),
            ready: true,
            networks: BTreeMap::new(),
            buffer: vec![0; HEADER + form.longest + 1].into(),
            spare: Vec::new(),
        })
    }

    /// Adds a network. Each has one port.
    pub fn join(&mut self, vni: u32, peers: &[IpAddr]) -> io::Result<Arc<UdpSocket>> {
        if self.networks.contains_key(&vni) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let network = Network {
            peers: peers.iter().copied().map(Some).collect(),
            inbox: VecDeque::new(),
            refused: 0,
        };
        self.networks.insert(vni, network);
        Ok(Arc::clone(&self.socket))
    }

    /// Replaces the peers of a network. Frames of a peer that left are lost.
    pub fn set_peers(&mut self, vni: u32, peers: &[Option<IpAddr>]) {
        if let Some(network) = self.networks.get_mut(&vni) {
            let stays = |place: usize| network.peers.get(place) == peers.get(place);
            network.inbox.retain(|(_, place)| stays(*place));
            network.peers = peers.to_vec();
        }
    }

    pub fn leave(&mut self, vni: u32) {
        self.networks.remove(&vni);
    }

    /// Exchanges `frames`, which the switch has forwarded, for those that came since.
    pub fn fetch(&mut self, vni: u32, frames: &mut Vec<Arrived>) {
        self.spare.extend(frames.drain(..).map(|(bytes, _)| bytes));
        self.spare.truncate(INBOX);
        if self.ready && self.networks.get(&vni).is_some_and(|n| n.inbox.is_empty()) {
            self.receive();
        }
        if let Some(network) = self.networks.get_mut(&vni) {
            let count = network.inbox.len().min(BURST);
            frames.extend(network.inbox.drain(..count));
        }
    }

    /// Reads a burst of datagrams for all networks.
    fn receive(&mut self) {
        for _ in 0..BURST {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((len, from)) => self.sort(len, from.ip()),
                Err(_) => return self.ready = false,
            }
        }
    }

    /// Puts the frame of a datagram into the inbox of its network.
    fn sort(&mut self, len: usize, from: IpAddr) {
        let Some((vni, frame)) = (self.form.parse)(&self.buffer[..len]) else {
            return;
        };
        let Some(network) = self.networks.get_mut(&vni) else {
            return;
        };
        let peer = network.peers.iter().position(|peer| *peer == Some(from));
        let fits = (ETHERNET..=self.form.longest).contains(&frame.len());
        match peer.filter(|_| fits && network.inbox.len() < INBOX) {
            Some(peer) => {
                let mut bytes = self.spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(frame);
                network.inbox.push_back((bytes, peer));
            }
            None => network.refused += 1,
        }
    }

    /// True if frames wait, or datagrams may.
    pub fn is_busy(&self, vni: u32) -> bool {
        let inbox = self.networks.get(&vni).map(|n| &n.inbox);
        self.ready || inbox.is_some_and(|inbox| !inbox.is_empty())
    }

    pub fn refused(&self, vni: u32) -> u64 {
        self.networks.get(&vni).map_or(0, |n| n.refused)
    }
}

/// Sets the room for datagrams: beyond the system's limit where the process may, else up to it.
fn keep_bursts(socket: &UdpSocket) -> io::Result<()> {
    sockopt::set_socket_recv_buffer_size_force(socket, KERNEL_BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, KERNEL_BUFFER))?;
    Ok(())
}
