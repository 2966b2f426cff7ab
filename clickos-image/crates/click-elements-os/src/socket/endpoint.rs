// SPDX-License-Identifier: Apache-2.0
//! A socket as Socket has it: a client of one peer, or a server of one peer at a time.
use std::fs::remove_file;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::{Errno, Result, ioctl_fionbio};
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_reuseaddr, set_socket_send_buffer_size, set_tcp_nodelay,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    acceptfrom_with, bind, connect, listen, recvfrom, send, sendto, socket_with,
};

use click_elements::prelude::*;

/// Where a socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Ip(SocketAddrV4),
    File(String),
}

impl Address {
    fn any(&self) -> Result<SocketAddrAny> {
        Ok(match self {
            Self::Ip(address) => SocketAddrAny::from(*address),
            Self::File(path) => SocketAddrUnix::new(path.as_str())?.into(),
        })
    }

    fn family(&self) -> AddressFamily {
        match self {
            Self::Ip(_) => AddressFamily::INET,
            Self::File(_) => AddressFamily::UNIX,
        }
    }
}

/// The requested socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub stream: bool,
    pub client: bool,
    /// The address of the peer for a client, else of this socket.
    pub address: Address,
    /// The own address of a client, if the configuration gives one.
    pub local: Option<Address>,
    pub no_delay: bool,
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
}

/// An open socket.
pub struct Endpoint {
    socket: OwnedFd,
    stream: bool,
    client: bool,
    /// The connection a server of streams has.
    connection: Option<OwnedFd>,
    /// Where datagrams go.
    remote: Option<SocketAddrAny>,
    /// The port, for datagrams that go to any address.
    port: Option<u16>,
    /// A file that goes with this socket.
    file: Option<String>,
    /// The part of a packet that is still to be written to a stream.
    unsent: Vec<u8>,
}

impl Endpoint {
    /// Opens it; a client waits until it is connected.
    pub fn open(plan: &Plan) -> Result<Self> {
        let kind = if plan.stream {
            SocketType::STREAM
        } else {
            SocketType::DGRAM
        };
        let family = plan.address.family();
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        plan.prepare(&socket)?;
        let mut opened = Self {
            socket,
            stream: plan.stream,
            client: plan.client,
            connection: None,
            remote: None,
            port: None,
            file: None,
            unsent: Vec::new(),
        };
        let own = if plan.client {
            plan.local.as_ref()
        } else {
            Some(&plan.address)
        };
        if let Some(own) = own {
            bind(&opened.socket, &own.any()?)?;
            if let Address::File(path) = own {
                opened.file = Some(path.clone());
            }
        }
        opened.begin(plan)?;
        ioctl_fionbio(&opened.socket, true)?;
        Ok(opened)
    }

    fn begin(&mut self, plan: &Plan) -> Result<()> {
        match &plan.address {
            _ if !plan.client && plan.stream => listen(&self.socket, 2)?,
            _ if !plan.client => {}
            Address::Ip(ip) if !plan.stream && ip.ip().is_unspecified() => {
                self.port = Some(ip.port());
            }
            address => {
                connect(&self.socket, &address.any()?)?;
                self.remote = Some(address.any()?);
            }
        }
        Ok(())
    }

    /// Takes a connection if there is none; who is connected then, if it is a machine.
    pub fn accept(&mut self) -> Option<Option<Ipv4Addr>> {
        if !self.stream || self.client || self.connection.is_some() {
            return None;
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (connection, from) = acceptfrom_with(&self.socket, flags).ok()?;
        self.connection = Some(connection);
        Some(from.and_then(ip_of))
    }

    /// Ends the connection a server has.
    pub fn hang_up(&mut self) {
        self.connection = None;
        self.unsent.clear();
    }

    /// True if there is somebody to exchange packets with.
    pub fn is_connected(&self) -> bool {
        match (self.stream, self.client) {
            (true, false) => self.connection.is_some(),
            (true, true) => self.remote.is_some(),
            (false, _) => self.remote.is_some() || self.port.is_some(),
        }
    }

    /// Receives a packet, and the machine it is from if that is known; nothing if there is none. A
    /// stream that has ended is closed, with the reason if that is not its peer's wish.
    pub fn receive(&mut self, into: &mut [u8]) -> Received {
        let socket = self.connection.as_ref().unwrap_or(&self.socket);
        if self.stream && !self.is_connected() {
            return Received::Nothing;
        }
        let got = recvfrom(socket, into, RecvFlags::empty());
        match got {
            Ok((0, ..)) if self.stream => self.closed(None),
            Ok((length, _, from)) => {
                let ip = from.clone().and_then(ip_of);
                if !self.stream && !self.client {
                    self.remote = from;
                }
                Received::Packet(length, ip)
            }
            Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
            // there is no peer yet; that does not end a socket of datagrams
            Err(_) if !self.stream => Received::Nothing,
            Err(error) => self.closed(Some(error)),
        }
    }

    fn closed(&mut self, error: Option<Errno>) -> Received {
        self.hang_up();
        if self.client {
            self.remote = None;
        }
        Received::Closed(error)
    }

    /// True if a packet can be sent now: what was begun before is written.
    pub fn ready(&mut self) -> bool {
        let unsent = core::mem::take(&mut self.unsent);
        if !unsent.is_empty() {
            self.write(&unsent);
        }
        self.is_connected() && self.unsent.is_empty()
    }

    /// Sends a packet; `to` is its own destination. False if that is not possible now.
    pub fn send(&mut self, data: &[u8], to: Ipv4Addr) -> bool {
        if !self.ready() {
            return false;
        }
        if self.stream {
            return self.write(data);
        }
        let own = self.port.map(|port| SocketAddrV4::new(to, port).into());
        let sent = match own.or_else(|| self.remote.clone()) {
            Some(_) if self.client && self.port.is_none() => {
                send(&self.socket, data, SendFlags::NOSIGNAL)
            }
            Some(to) => sendto(&self.socket, data, SendFlags::NOSIGNAL, &to),
            None => return false,
        };
        // datagrams without a receiver are lost, as on any network
        !matches!(sent, Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS))
    }

    /// Writes to a stream what it takes, and keeps the rest; false if it takes nothing.
    fn write(&mut self, data: &[u8]) -> bool {
        let socket = self.connection.as_ref().unwrap_or(&self.socket);
        let sent = match send(socket, data, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => {
                self.closed(Some(error));
                return false;
            }
        };
        self.unsent = data[sent..].to_vec();
        true
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // somebody else may have removed it
            let _ = remove_file(file);
        }
    }
}

impl Plan {
    fn prepare(&self, socket: &OwnedFd) -> Result<()> {
        if self.stream && self.address.family() == AddressFamily::INET {
            set_tcp_nodelay(socket, self.no_delay)?;
        }
        if !self.client {
            set_socket_reuseaddr(socket, true)?;
        }
        if let Some(octets) = self.send_buffer {
            set_socket_send_buffer_size(socket, octets)?;
        }
        if let Some(octets) = self.receive_buffer {
            set_socket_recv_buffer_size(socket, octets)?;
        }
        Ok(())
    }
}

/// What `Endpoint::receive` found.
pub enum Received {
    Nothing,
    /// A packet of this length.
    Packet(usize, Option<Ipv4Addr>),
    /// The connection is gone.
    Closed(Option<Errno>),
}

fn ip_of(address: SocketAddrAny) -> Option<Ipv4Addr> {
    Some(*SocketAddrV4::try_from(address).ok()?.ip())
}
