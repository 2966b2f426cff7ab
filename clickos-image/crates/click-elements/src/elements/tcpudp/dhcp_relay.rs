// SPDX-License-Identifier: Apache-2.0
//! Relays messages of DHCP between clients of a network and servers of another (RFC 2131, RFC 1542, RFC 3046).
//!
//! # Synopsis
//! `DHCPRelay(GIADDR, SERVER [, CIRCUIT, REMOTE, MTU, VERIFY])`: requests get GIADDR, the agent's address in the clients' network, one more hop, and with
//! a text CIRCUIT or REMOTE, of at most 64 characters, the agent's option with it as circuit ID or remote ID. Each SERVER gets a copy. Answers
//! of these servers lose the option. A request whose option does not fit into a packet of MTU bytes (default 1500) goes without. Requests that have
//! passed another agent, or have the option already, are dropped, with VERIFY (default false) also those whose client has another Ethernet
//! address than their sender. So are answers without one of the latest 1,024 requests.
//! # Ports
//! 2/2, push. Input 0: messages of clients, from the header of BOOTP on. Output 0 gets them for UDPIPEncap with `DST_ANNO`, since the
//! destination annotation is the server. Input 1: packets of servers, with their IP header marked. Output 1 gets their messages.
//! # Handlers
//! * `more` (read, write): further servers with commas, at most 7.
//! * `circuit`, `remote` (read, write): CIRCUIT and REMOTE.
//! * `requests`, `answers` (read): requests relayed, each once, and answers. `drops` (read): messages by fault.
//! # Example
//! `relay :: DHCPRelay(10.0.1.1, 10.0.2.9, CIRCUIT port7); clients -> relay -> UDPIPEncap(10.0.2.1, 67, DST_ANNO, 67) -> arp; servers -> [1]relay[1] -> UDPIPEncap(10.0.1.1, 67, 255.255.255.255, 68) -> out;`
use click_wire::ether;

use crate::dhcp::{self, AgentText, FAULTS, Fault, Question};
use crate::ip_packet::header;
use crate::prelude::*;
use crate::relay::{Asked, Servers, drops_text};

pub static ELEMENT: Class = Class {
    name: "DHCPRelay",
    ports: "2/2",
    processing: "h/h",
    flow: "xy/xy",
    args: &[
        mandatory("GIADDR"),
        mandatory("SERVER"),
        keyword("CIRCUIT"),
        keyword("REMOTE"),
        keyword("MTU"),
        keyword("VERIFY"),
    ],
    handlers: &[
        read_write(
            "more",
            |me: &mut DHCPRelay, _| Ok(me.more.text()),
            set!(|me: &mut DHCPRelay, more, _| me.more = more),
        ),
        read_write(
            "circuit",
            |me, _| text(&me.circuit.0),
            set!(|me: &mut DHCPRelay, circuit, _| me.circuit = circuit),
        ),
        read_write(
            "remote",
            |me, _| text(&me.remote.0),
            set!(|me: &mut DHCPRelay, remote, _| me.remote = remote),
        ),
        read("requests", |me, _| text(me.relayed[0])),
        read("answers", |me, _| text(me.relayed[1])),
        read("drops", |me, _| Ok(drops_text(&FAULTS, &me.faults))),
    ],
    build,
    ..Class::DEFAULT
};

/// Bytes of the headers of UDP and IP, and of the former.
const HEADERS: usize = 28;
const UDP: usize = 8;
const MTU: usize = 1500;

fn build(a: &mut Args<'_>) -> Built {
    let (giaddr, server) = (a.need("GIADDR"), a.need("SERVER"));
    let texts = ["CIRCUIT", "REMOTE"].map(|name| a.or(name, AgentText::default()));
    let (mtu, verifies) = (a.or("MTU", MTU), a.or("VERIFY", false));
    let [circuit, remote] = texts;
    Some(Box::new(DHCPRelay {
        giaddr: giaddr?,
        server: server?,
        more: Servers::default(),
        circuit: circuit?,
        remote: remote?,
        most: mtu?.saturating_sub(HEADERS),
        verifies: verifies?,
        asked: Asked::default(),
        relayed: [0; 2],
        faults: [0; FAULTS.len()],
    }))
}

struct DHCPRelay {
    giaddr: Ipv4Addr,
    server: Ipv4Addr,
    more: Servers<Ipv4Addr>,
    circuit: AgentText,
    remote: AgentText,
    /// Bytes of the longest request.
    most: usize,
    /// True if a client has to be the sender of its frames.
    verifies: bool,
    asked: Asked<Question>,
    /// Requests and answers.
    relayed: [u64; 2],
    faults: [u64; FAULTS.len()],
}

/// The Ethernet address that a packet came from.
fn sender(packet: &Packet) -> Option<[u8; 6]> {
    Some(ether::Repr::parse(packet.mac()?).ok()?.source)
}

impl DHCPRelay {
    fn servers(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.more.behind(self.server)
    }

    fn note(&mut self, fault: Fault) {
        self.faults[fault as usize] += 1;
    }

    fn request(&mut self, ctx: &mut Context<'_>, packet: &Packet) -> Result<(), Fault> {
        let texts = (&self.circuit, &self.remote);
        let (message, fault) = dhcp::request(packet.data(), self.giaddr, texts, self.most)?;
        let question = dhcp::question(&message).ok_or(Fault::Malformed)?;
        if self.verifies && sender(packet) != Some(question.1) {
            return Err(Fault::Forged);
        }
        if let Some(fault) = fault {
            self.note(fault);
        }
        self.asked.note(question);
        self.relayed[0] += 1;
        for server in self.servers() {
            if let Some(mut copy) = ctx.pool().packet_from(&message) {
                copy.anno_mut().set_dst_ip(server.octets());
                ctx.push_one(0, copy);
            }
        }
        Ok(())
    }

    fn answer(&mut self, ctx: &mut Context<'_>, packet: &Packet) -> Result<(), Fault> {
        let source = header(packet).map(|header| header.source());
        if !self.servers().any(|server| Some(server) == source) {
            return Err(Fault::Stranger);
        }
        let datagram = packet.transport().ok_or(Fault::Malformed)?;
        let length = datagram.get(4..6).ok_or(Fault::Malformed)?;
        let end = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let message = datagram.get(UDP..end).ok_or(Fault::Malformed)?;
        let message = dhcp::answer(message, self.giaddr)?;
        if !dhcp::question(&message).is_some_and(|question| self.asked.has(&question)) {
            return Err(Fault::Unasked);
        }
        if let Some(copy) = ctx.pool().packet_from(&message) {
            self.relayed[1] += 1;
            ctx.push_one(1, copy);
        }
        Ok(())
    }
}

impl Element for DHCPRelay {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            let relayed = match port {
                0 => self.request(ctx, &packet),
                _ => self.answer(ctx, &packet),
            };
            if let Err(fault) = relayed {
                self.note(fault);
            }
        }
        ctx.recycle(batch);
    }

    /// Counts and what handlers have set stay.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        (self.relayed, self.faults) = (old.relayed, old.faults);
        self.more = core::mem::take(&mut old.more);
        self.asked = core::mem::take(&mut old.asked);
        let own = [&mut self.circuit, &mut self.remote];
        for (own, old) in own.into_iter().zip([&old.circuit, &old.remote]) {
            if own.0.is_empty() {
                own.clone_from(old);
            }
        }
    }
}
