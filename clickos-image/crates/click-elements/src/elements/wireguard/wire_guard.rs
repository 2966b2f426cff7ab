// SPDX-License-Identifier: Apache-2.0
//! Encrypts and decrypts the packets of a WireGuard tunnel over IPv4.
//!
//! # Synopsis
//! `WireGuard(SRC, PORT, PEER, ... [, PRIVATE_KEY, KEEPALIVE])`: SRC and PORT are this end of the tunnel. Each PEER is `PUBLIC_KEY
//! ENDPOINT NETWORK ... [psk=KEY]`, at most 64 of them. ENDPOINT is `ADDRESS:PORT`, or `-` for a peer that calls. The
//! peer may send from and gets packets for its NETWORKs, of IPv4 and IPv6. Keys are in Base64. Without
//! PRIVATE_KEY the handler `private_key` sets it. After KEEPALIVE seconds without a packet to a peer, it gets an empty one (default 0:
//! never).
//! # Ports
//! 2/2, push. Input 0 takes IP packets for peers, input 1 packets of the network to SRC and PORT. Both begin with their IP header.
//! Output 0 sends packets to the network, with their destination annotation set. Output 1 has the packets of peers, with
//! their header marked. Up to 32 packets wait for the handshake of a peer.
//! # Handlers
//! * `private_key` (write): PRIVATE_KEY. `public_key` (read): the public key that belongs to it.
//! * `peers` (read, write): all PEERs, with commas; those that stay keep their sessions. No handler reads preshared keys back, nor what `private_key` set.
//! * `status` (read): each peer's public key, endpoint, seconds since the last handshake or `-`, bytes received and sent, and
//!   packets that no handshake freed.
//! * `waiting` (read): packets that wait.
//! * `handshakes` (read): handshakes that ended. `limited` (read): messages of handshakes beyond 32 in a second; their senders get cookies.
//! * `refused` (read): messages that are changed, repeated or no peer's. `no_peer` (read): packets for addresses that no peer has.
//! # Example
//! `left -> wg :: WireGuard($IP, 51820, "$KEY 192.0.2.9:51820 10.8.0.0/24"); wg[0] -> right; wg[1] -> CheckIPHeader -> ...`
use crate::datagram;
use crate::prelude::*;
use crate::wireguard::Endpoint;
use crate::wireguard::network::inner;
use crate::wireguard::terms::{KeyText, Peers, Terms, key_text};
use crate::wireguard::tunnel::{Moment, Outgoing, Sealed, Tunnel};

pub static ELEMENT: Class = Class {
    name: "WireGuard",
    ports: "2/2",
    processing: "h/h",
    flow: "xy/xy",
    args: &[
        mandatory("SRC"),
        mandatory("PORT"),
        rest("PEER"),
        secret("PRIVATE_KEY"),
        keyword("KEEPALIVE"),
    ],
    handlers: &[
        write(
            "private_key",
            set!(|me: &mut WireGuard, key: KeyText, _| me.tunnel.set_private(key.0)),
        ),
        read("public_key", |me, _| {
            Ok(me.tunnel.public().map(key_text).unwrap_or_default())
        }),
        read_write(
            "peers",
            |me, _| Ok(me.peers_text()),
            set!(|me, peers: Peers, ctx| {
                me.tunnel.set_peers(peers.0);
                me.work(ctx);
            }),
        ),
        read("status", |me, view| Ok(me.status_text(view.now_ns()))),
        read("waiting", |me, _| text(me.tunnel.waiting())),
        read("handshakes", |me, _| text(me.tunnel.handshakes)),
        read("limited", |me, _| text(me.tunnel.limited)),
        read("refused", |me, _| text(me.tunnel.refused)),
        read("no_peer", |me, _| text(me.tunnel.no_peer)),
    ],
    build,
    ..Class::DEFAULT
};

/// TTL of the packets to the network.
const TTL: u8 = 64;
const SECOND_NS: u64 = 1_000_000_000;

fn build(a: &mut Args<'_>) -> Built {
    let (source, port) = (a.need("SRC"), a.need::<u16>("PORT"));
    let (key, keepalive) = (a.opt::<KeyText>("PRIVATE_KEY"), a.or("KEEPALIVE", 0u16));
    let mut tunnel = Tunnel::default();
    let lines = a.rest().to_vec();
    let peers: Vec<_> = lines.iter().map(|t| a.parse("PEER", t)).collect();
    let peers: Option<Vec<Terms>> = peers.into_iter().collect();
    let peers = Peers::checked(peers?)
        .map_err(|e| a.error("PEER", e))
        .ok()?;
    tunnel.set_peers(peers.0);
    tunnel.keepalive_ns = u64::from(keepalive?) * SECOND_NS;
    if let Some(KeyText(key)) = key? {
        tunnel.set_private(key);
    }
    Some(Box::new(WireGuard {
        source: source?,
        port: port?,
        id: 0,
        tunnel,
    }))
}

struct WireGuard {
    source: Ipv4Addr,
    port: u16,
    id: u16,
    tunnel: Tunnel,
}

impl WireGuard {
    fn peers_text(&self) -> String {
        let texts: Vec<String> = self
            .tunnel
            .peers
            .iter()
            .map(|p| p.terms().to_string())
            .collect();
        texts.join(", ")
    }

    fn status_text(&self, now_ns: u64) -> String {
        let line = |peer: &crate::wireguard::peer::Peer| {
            let endpoint = peer
                .endpoint
                .map(|(address, port)| format!("{address}:{port}"));
            let age = peer
                .agreed_ns
                .map(|at| format!("{}", now_ns.saturating_sub(at) / SECOND_NS));
            format!(
                "{} {} {} {} {} {}\n",
                key_text(&peer.remote.public),
                endpoint.as_deref().unwrap_or("-"),
                age.as_deref().unwrap_or("-"),
                peer.bytes[0],
                peer.bytes[1],
                peer.lost
            )
        };
        self.tunnel.peers.iter().map(line).collect()
    }

    fn encrypt(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let (mut run, now_ns) = (ctx.batch(), ctx.now_ns());
        for mut packet in batch.drain_front(usize::MAX) {
            let mut draw = || ctx.random_key();
            let mut moment = Moment {
                now_ns,
                draw: &mut draw,
            };
            match self.tunnel.seal(&mut packet, &mut moment) {
                Sealed::To(endpoint) => {
                    if self.encapsulate(&mut packet, endpoint) {
                        run.push_back(packet);
                    }
                }
                Sealed::Waits(place) => self.tunnel.peers[place].wait(packet),
                Sealed::NoPeer => {}
            }
        }
        ctx.push(0, run);
        ctx.recycle(batch);
        self.work(ctx);
    }

    fn decrypt(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let (mut run, now_ns) = (ctx.batch(), ctx.now_ns());
        for mut packet in batch.drain_front(usize::MAX) {
            let mut draw = || ctx.random_key();
            let mut moment = Moment {
                now_ns,
                draw: &mut draw,
            };
            if self.open(&mut packet, &mut moment) {
                run.push_back(packet);
            }
        }
        ctx.push(1, run);
        ctx.recycle(batch);
        self.work(ctx);
    }

    /// Reads a packet of the network; true if it became one of a peer.
    fn open(&mut self, packet: &mut Packet, moment: &mut Moment<'_>) -> bool {
        let own = (self.source, self.port);
        let Some((from, range)) = datagram::payload(packet.data(), own) else {
            self.tunnel.refused += 1;
            return false;
        };
        let message = &mut packet.data_mut()[range.clone()];
        let Some(found) = self.tunnel.receive(message, from, moment) else {
            return false;
        };
        packet.pull(range.start + found.start);
        packet.take(packet.len() - found.len());
        let Some(header) = inner(packet.data()) else {
            return false;
        };
        packet.set_network(0, header.header);
        if let core::net::IpAddr::V4(to) = header.destination {
            packet.anno_mut().set_dst_ip(to.octets());
        }
        true
    }

    fn encapsulate(&mut self, packet: &mut Packet, to: Endpoint) -> bool {
        self.id = self.id.wrapping_add(1);
        datagram::wrap(packet, (self.source, self.port), to, (self.id, TTL))
    }

    /// Sends what the tunnel has to say, and sets the timer.
    fn work(&mut self, ctx: &mut Context<'_>) {
        for outgoing in core::mem::take(&mut self.tunnel.outgoing) {
            let (to, packet) = match outgoing {
                Outgoing::Packet(to, packet) => (to, Some(packet)),
                Outgoing::Message(to, message) => (to, packet_of(ctx, &message)),
            };
            let Some(mut packet) = packet else {
                continue;
            };
            if self.encapsulate(&mut packet, to) {
                ctx.push_one(0, packet);
            }
        }
        if let Some(at_ns) = self.tunnel.deadline_ns() {
            ctx.set_timer(at_ns.max(ctx.now_ns()));
        }
    }
}

fn packet_of(ctx: &mut Context<'_>, message: &[u8]) -> Option<Packet> {
    let mut packet = ctx.pool().alloc(message.len())?;
    packet.data_mut().copy_from_slice(message);
    Some(packet)
}

impl Element for WireGuard {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.work(ctx);
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let now_ns = ctx.now_ns();
        let mut draw = || ctx.random_key();
        self.tunnel.tick(&mut Moment {
            now_ns,
            draw: &mut draw,
        });
        self.work(ctx);
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        match port {
            0 => self.encrypt(ctx, batch),
            _ => self.decrypt(ctx, batch),
        }
    }

    /// Sessions go on where keys are the same, and so does what handlers set and the configuration does not say.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.tunnel.take_from(&mut old.tunnel);
            self.work(ctx);
        }
    }
}
