// SPDX-License-Identifier: Apache-2.0
//! Sends packets to an IPv4 multicast group as UDP, and receives those sent to it.
//!
//! # Synopsis
//! `McastSocket(GROUP, PORT [, ADDRESS, keywords])`: ADDRESS is that of the interface to use. Keywords: SNAPLEN
//! (octets of a packet received, default 2048), LOOP (default true: packets of this machine arrive on it, too),
//! TIMESTAMP (default true: packets are stamped).
//! # Ports
//! 0-1/0-1, push. The payload of each datagram is a packet. If ADDRESS is given, what was sent by this very element
//! is not received.
//! # Handlers
//! * `count` (read): packets received. `drops` (read): packets that could not be sent.
//! # Example
//! `... -> McastSocket(233.252.0.0, 1234) -> Print -> Discard;`
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, socket_with};

use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "McastSocket",
    ports: "0-1/0-1",
    processing: "h/h",
    args: &[
        mandatory("GROUP"),
        mandatory("PORT"),
        optional("ADDRESS"),
        keyword("SNAPLEN"),
        keyword("LOOP"),
        keyword("TIMESTAMP"),
    ],
    handlers: &[
        read("count", |me: &mut McastSocket, _| text(me.count)),
        read("drops", |me, _| text(me.drops)),
    ],
    build: |a| {
        let (group, port) = (a.need::<Ipv4Addr>("GROUP"), a.need::<u16>("PORT"));
        let address = a.opt::<Ipv4Addr>("ADDRESS");
        let (snaplen, looped) = (a.or("SNAPLEN", 2048usize), a.or("LOOP", true));
        let stamped = a.or("TIMESTAMP", true);
        let group = group?;
        if !group.is_multicast() {
            a.error("GROUP", format!("{group} is not a multicast address"));
            return None;
        }
        Some(Box::new(McastSocket {
            to: SocketAddrV4::new(group, port?),
            address: address?,
            looped: looped?,
            stamped: stamped?,
            buffer: vec![0; snaplen?.clamp(1, 65_535)],
            sender: None,
            receiver: None,
            count: 0,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

struct McastSocket {
    to: SocketAddrV4,
    address: Option<Ipv4Addr>,
    looped: bool,
    stamped: bool,
    buffer: Vec<u8>,
    sender: Option<UdpSocket>,
    receiver: Option<UdpSocket>,
    count: u64,
    drops: u64,
}

/// Packets received at a time.
const BURST: usize = 32;
/// Between looks at an idle socket.
const POLL_NS: u64 = 1_000_000;

impl McastSocket {
    fn open(&mut self) -> std::io::Result<()> {
        let interface = self.address.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let sender = UdpSocket::bind((interface, 0))?;
        sender.set_multicast_loop_v4(self.looped)?;
        sender.set_nonblocking(true)?;
        // several programs can receive from one group
        let kind = (AddressFamily::INET, SocketType::DGRAM);
        let receiver = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, Some(ipproto::UDP))?;
        set_socket_reuseaddr(&receiver, true)?;
        bind(&receiver, &SocketAddr::V4(self.to))?;
        let receiver = UdpSocket::from(receiver);
        receiver.join_multicast_v4(self.to.ip(), &interface)?;
        receiver.set_nonblocking(true)?;
        (self.sender, self.receiver) = (Some(sender), Some(receiver));
        Ok(())
    }

    /// True if this element sent what came from `from`.
    fn is_own(&self, from: SocketAddr) -> bool {
        let sender = self.sender.as_ref().filter(|_| self.address.is_some());
        sender.and_then(|s| s.local_addr().ok()) == Some(from)
    }
}

impl Element for McastSocket {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.open().map_err(|e| format!("{}: {e}", self.to))?;
        if ctx.outputs() > 0 {
            ctx.set_timer(ctx.now_ns());
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            let sent = self
                .sender
                .as_ref()
                .map(|s| s.send_to(packet.data(), self.to));
            self.drops += u64::from(!matches!(sent, Some(Ok(_))));
        }
        ctx.recycle(batch);
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let mut received = 0;
        while let (true, Some(socket)) = (received < BURST, &self.receiver) {
            let Ok((len, from)) = socket.recv_from(&mut self.buffer) else {
                break;
            };
            received += 1;
            if self.is_own(from) {
                continue;
            }
            let Some(mut packet) = ctx.pool().packet_from(&self.buffer[..len]) else {
                break;
            };
            if self.stamped {
                packet.set_timestamp_ns(ctx.now_ns());
            }
            self.count += 1;
            ctx.push_one(0, packet);
        }
        let wait = if received == BURST { 0 } else { POLL_NS };
        ctx.set_timer(ctx.now_ns() + wait);
    }
}
