// SPDX-License-Identifier: Apache-2.0
//! Relays messages of DHCPv6 between clients of a network and servers of another (RFC 8415, section 19).
//!
//! # Synopsis
//! `DHCP6Relay(LINK, NETWORK, SOURCE, SERVER [, REMOTE, INTERFACE, ENTERPRISE, RELAYS, MTU])`: a message of a client travels inside a
//! relay-forward message from SOURCE, of at most MTU bytes (default 1500), to SERVER and further servers; one of them may be a
//! group, as `ff05::1:3`. It has the link address LINK, the agent's address in the clients' NETWORK, the text INTERFACE as
//! interface ID, and as remote ID what the read handler REMOTE returns, with the number ENTERPRISE (default 0; RFC 4649). Texts that are
//! empty are left out. With RELAYS (default false) other relays in the clients' network are served, too. Answers have to come
//! from a server, unless one of the servers is a group, and to answer one of the latest 1,024 messages of
//! clients; only a reconfigure message of a server needs none. Without addresses LINK and SOURCE nothing is relayed.
//! # Ports
//! 2/2, push. Packets of IPv6 with their header marked. Input 0: those of clients and relays, to `ff02::1:2` or LINK. Output 0: those
//! for servers. Input 1: those of servers. Output 1: those for clients and relays. Destination annotations are set.
//! # Handlers
//! * `more` (read, write): further servers with commas, at most 7. `relays` (read, write): RELAYS.
//! * `requests`, `answers` (read): messages relayed, each once, and answers. `drops` (read): messages by fault.
//! # Example
//! `relay :: DHCP6Relay(2001:db8:1::1, 2001:db8:1::/64, 2001:db8:2::1, ff05::1:3, INTERFACE left, REMOTE old.remote); clients -> relay -> right; servers -> [1]relay[1] -> left;`
use core::net::Ipv6Addr;

use click_wire::{ipv4, udp};

use crate::dhcp::AgentText;
use crate::dhcp6::{Agent, FAULTS, Fault, Question, SERVER_PORT};
use crate::ip6::{self, Address, HEADER, Repr, View as Header};
use crate::prelude::*;
use crate::relay::{Asked, Servers, drops_text};

pub static ELEMENT: Class = Class {
    name: "DHCP6Relay",
    ports: "2/2",
    processing: "h/h",
    flow: "xy/xy",
    args: &[
        mandatory("LINK"),
        mandatory("NETWORK"),
        mandatory("SOURCE"),
        mandatory("SERVER"),
        keyword("REMOTE"),
        keyword("INTERFACE"),
        keyword("ENTERPRISE"),
        keyword("RELAYS"),
        keyword("MTU"),
    ],
    handlers: &[
        read_write(
            "more",
            |me: &mut DHCP6Relay, _| Ok(me.more.text()),
            set!(|me: &mut DHCP6Relay, more, _| me.more = more),
        ),
        read_write(
            "relays",
            |me, _| text(me.agent.serves_relays),
            set!(|me: &mut DHCP6Relay, serves, _| me.agent.serves_relays = serves),
        ),
        read("requests", |me, _| text(me.relayed[0])),
        read("answers", |me, _| text(me.relayed[1])),
        read("drops", |me, _| Ok(drops_text(&FAULTS, &me.faults))),
    ],
    build,
    ..Class::DEFAULT
};

const MTU: usize = 1500;
/// Where clients ask (RFC 8415, section 7.1).
const AGENTS_AND_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// The hop limit of messages to a group of servers (RFC 8415, section 19).
const GROUP_HOPS: u8 = 8;

fn build(a: &mut Args<'_>) -> Built {
    let (link, network) = (a.need("LINK"), a.need("NETWORK"));
    let (source, server) = (a.need("SOURCE"), a.need("SERVER"));
    let (remote, interface) = (
        a.or("REMOTE", String::new()),
        a.or("INTERFACE", AgentText::default()),
    );
    let (enterprise, relays) = (a.or("ENTERPRISE", 0), a.or("RELAYS", false));
    let mtu = a.or("MTU", MTU);
    Some(Box::new(DHCP6Relay {
        agent: Agent {
            link: link?,
            network: network?,
            interface: interface?,
            enterprise: enterprise?,
            serves_relays: relays?,
        },
        source: source?,
        server: server?,
        more: Servers::default(),
        remote: remote?,
        most: mtu?.saturating_sub(HEADER + udp::HEADER),
        asked: Asked::default(),
        relayed: [0; 2],
        faults: [0; FAULTS.len()],
    }))
}

struct DHCP6Relay {
    agent: Agent,
    source: Address,
    server: Address,
    more: Servers<Address>,
    /// The handler with the remote ID, or nothing.
    remote: String,
    /// Bytes of the longest message to a server.
    most: usize,
    asked: Asked<Question>,
    /// Messages of clients and answers.
    relayed: [u64; 2],
    faults: [u64; FAULTS.len()],
}

/// Sender, destination and words of a whole datagram to the port of relays.
fn datagram(packet: &Packet) -> Result<(Address, Address, &[u8]), Fault> {
    let bytes = packet.network().ok_or(Fault::Malformed)?;
    let header = Header::of(bytes).ok_or(Fault::Malformed)?;
    let end = HEADER + header.payload_len();
    let whole = bytes.get(..end).ok_or(Fault::Malformed)?;
    let fields = whole[HEADER..].first_chunk::<{ udp::HEADER }>();
    let fields = fields.ok_or(Fault::Malformed)?;
    let word = |at| u16::from_be_bytes([fields[at], fields[at + 1]]);
    let is_good = header.next_header() == ipv4::UDP
        && word(2) == SERVER_PORT
        && usize::from(word(4)) == header.payload_len()
        && word(6) != 0
        && ip6::transport_checksum(whole) == 0;
    match is_good {
        true => Ok((
            header.source(),
            header.destination(),
            &whole[HEADER + udp::HEADER..],
        )),
        false => Err(Fault::Malformed),
    }
}

impl DHCP6Relay {
    fn servers(&self) -> impl Iterator<Item = Address> {
        self.more.behind(self.server)
    }

    /// Sends words from the port of relays.
    fn send(ctx: &mut Context<'_>, out: usize, words: &[u8], ends: [Address; 2], port: u16) {
        let Some(mut packet) = ctx.pool().packet_from(words) else {
            return;
        };
        let length = u16::try_from(words.len() + udp::HEADER);
        let (Ok(length), true) = (length, packet.push(HEADER + udp::HEADER)) else {
            return;
        };
        let [source, destination] = ends;
        let bytes = packet.data_mut();
        let header = Repr {
            traffic_class: 0,
            payload_len: length,
            next_header: ipv4::UDP,
            hop_limit: match destination.0.is_multicast() {
                true => GROUP_HOPS,
                false => ip6::HOP_LIMIT,
            },
            source,
            destination,
        };
        header.emit(bytes);
        for (at, value) in [(0, SERVER_PORT), (2, port), (4, length), (6, 0)] {
            bytes[HEADER + at..HEADER + at + 2].copy_from_slice(&value.to_be_bytes());
        }
        ip6::fill_checksum(bytes, 6);
        packet.set_network(0, HEADER);
        destination.put(&mut packet);
        ctx.push_one(out, packet);
    }

    /// The remote ID; empty without a text for it.
    fn remote_id(&self, ctx: &mut Context<'_>) -> AgentText {
        if self.remote.is_empty() {
            return AgentText::default();
        }
        let text = ctx.read_handler(&self.remote, "").unwrap_or_default();
        AgentText::from_arg(&text, ctx.arg_context()).unwrap_or_default()
    }

    fn request(&mut self, ctx: &mut Context<'_>, packet: &Packet) -> Result<(), Fault> {
        let (peer, to, message) = datagram(packet)?;
        let is_for_us = to.0 == AGENTS_AND_SERVERS || to == self.agent.link;
        if !is_for_us || self.source.0.is_unspecified() {
            return Err(Fault::Stranger);
        }
        let remote = self.remote_id(ctx);
        let (made, question) = self.agent.forward(message, peer, &remote, self.most)?;
        self.asked.note(question);
        self.relayed[0] += 1;
        for server in self.servers() {
            Self::send(ctx, 0, &made, [self.source, server], SERVER_PORT);
        }
        Ok(())
    }

    fn answer(&mut self, ctx: &mut Context<'_>, packet: &Packet) -> Result<(), Fault> {
        let (server, to, message) = datagram(packet)?;
        let is_named = self.servers().any(|named| named == server);
        let may_be_any = self.servers().any(|named| named.0.is_multicast());
        if to != self.source || !is_named && !may_be_any {
            return Err(Fault::Stranger);
        }
        let answer = self.agent.reply(message)?;
        if !(self.asked.has(&answer.question) || answer.is_reconfigure && is_named) {
            return Err(Fault::Unasked);
        }
        self.relayed[1] += 1;
        let ends = [self.agent.link, answer.question.1];
        Self::send(ctx, 1, answer.message, ends, answer.port);
        Ok(())
    }
}

impl Element for DHCP6Relay {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        match self.remote.is_empty() || ctx.handler_info(&self.remote).is_some() {
            true => Ok(()),
            false => Err(format!("REMOTE: no handler \"{}\"", self.remote.shown())),
        }
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            let relayed = match port {
                0 => self.request(ctx, &packet),
                _ => self.answer(ctx, &packet),
            };
            if let Err(fault) = relayed {
                self.faults[fault as usize] += 1;
            }
        }
        ctx.recycle(batch);
    }

    /// Counts, what handlers have set and the questions stay.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        (self.relayed, self.faults) = (old.relayed, old.faults);
        self.more = core::mem::take(&mut old.more);
        self.asked = core::mem::take(&mut old.asked);
        self.agent.serves_relays = old.agent.serves_relays;
    }
}
