// SPDX-License-Identifier: Apache-2.0
//! All peers of an element: which one a packet is for, and what a message from the network does.
use alloc::vec::Vec;
use core::net::IpAddr;

use super::Endpoint;
use super::crypto::{KEY, Key, LONG_NONCE};
use super::doors::{Door, Doors};
use super::handshake::{self, COOKIE, DATA, INITIATION, Own, RESPONSE, read_initiation};
use super::network::inner;
use super::peer::Peer;
use super::terms::Terms;
use crate::prelude::Packet;

/// Peers of an element.
pub const PEERS: usize = 64;

/// A packet that leaves, encrypted or of a handshake.
pub enum Outgoing {
    /// A message.
    Message(Endpoint, Vec<u8>),
    /// A packet with a message.
    Packet(Endpoint, Packet),
}

/// Time and random keys of a call.
pub struct Moment<'d> {
    /// Nanoseconds since 1970.
    pub now_ns: u64,
    /// Makes keys.
    pub draw: &'d mut dyn FnMut() -> Key,
}

/// The fate of a packet that is to be encrypted.
pub enum Sealed {
    /// It is encrypted, for this endpoint.
    To(Endpoint),
    /// It waits for this peer's handshake.
    Waits(usize),
    /// No peer has its destination, or it is no IP packet.
    NoPeer,
}

/// The peers, and counts of what was dropped.
#[derive(Default)]
pub struct Tunnel {
    own: Option<Own>,
    /// The peers by place.
    pub peers: Vec<Peer>,
    /// Packets to be sent.
    pub outgoing: Vec<Outgoing>,
    /// Seconds without a packet after which a peer gets an empty one, in nanoseconds; 0: never.
    pub keepalive_ns: u64,
    /// Packets for addresses that no peer has.
    pub no_peer: u64,
    /// Messages that are changed, repeated, or no peer's.
    pub refused: u64,
    /// Messages of handshakes beyond what this host does in a second.
    pub limited: u64,
    /// Handshakes that ended.
    pub handshakes: u64,
    doors: Doors,
}

impl Tunnel {
    /// Our public key, if there is a private one.
    pub fn public(&self) -> Option<&Key> {
        self.own.as_ref().map(|own| &own.public)
    }

    /// Sets our private key. Sessions of another key end.
    pub fn set_private(&mut self, private: Key) {
        let own = Own::new(private);
        if self.public() != Some(&own.public) {
            self.peers.iter_mut().for_each(Peer::forget);
        }
        self.own = Some(own);
    }

    /// Sets the peers, at most [`PEERS`]. Those that stay keep their sessions.
    pub fn set_peers(&mut self, terms: Vec<Terms>) {
        let old = core::mem::take(&mut self.peers);
        self.adopt(old, terms);
    }

    fn adopt(&mut self, mut old: Vec<Peer>, terms: Vec<Terms>) {
        let mut strangers = Vec::new();
        for terms in terms {
            match old.iter().position(|p| p.remote.public == terms.public) {
                Some(at) => {
                    let mut peer = old.swap_remove(at);
                    peer.set_terms(terms);
                    self.peers.push(peer);
                }
                None => strangers.push(terms),
            }
        }
        for terms in strangers {
            let taken = |place: &u8| self.peers.iter().any(|p| p.place == *place);
            let free = (0..=u8::MAX).find(|place| !taken(place));
            self.peers.extend(free.map(|place| Peer::new(terms, place)));
        }
    }

    /// The peer of a session's number.
    fn peer_at(&self, index: u32) -> Option<usize> {
        let [place, ..] = index.to_le_bytes();
        self.peers.iter().position(|p| p.place == place)
    }

    /// The peer that has an address: that with the longest network.
    fn peer_of(&self, address: IpAddr) -> Option<usize> {
        let longest = |peer: &Peer| peer.networks.iter().filter_map(|n| n.holds(address)).max();
        let found = self
            .peers
            .iter()
            .enumerate()
            .filter_map(|(n, p)| Some((longest(p)?, n)));
        found
            .max_by_key(|(bits, n)| (*bits, usize::MAX - n))
            .map(|(_, n)| n)
    }

    /// Encrypts a packet that begins with its IP header.
    pub fn seal(&mut self, packet: &mut Packet, moment: &mut Moment<'_>) -> Sealed {
        let destination = inner(packet.data()).map(|i| i.destination);
        let Some(place) = destination.and_then(|to| self.peer_of(to)) else {
            self.no_peer += 1;
            return Sealed::NoPeer;
        };
        let peer = &mut self.peers[place];
        let sealed = peer.endpoint.filter(|_| peer.seal(packet, moment.now_ns));
        if peer.is_due(moment.now_ns, false) {
            self.begin(place, moment);
        }
        sealed.map_or(Sealed::Waits(place), Sealed::To)
    }

    fn begin(&mut self, place: usize, moment: &mut Moment<'_>) {
        let Some(own) = &self.own else {
            return;
        };
        let peer = &mut self.peers[place];
        let index = index(peer.place, moment);
        if let Some(message) = peer.begin(own, index, moment.now_ns, (moment.draw)()) {
            self.send(place, &message);
        }
    }

    fn send(&mut self, place: usize, message: &[u8]) {
        if let Some(to) = self.peers[place].endpoint {
            self.outgoing.push(Outgoing::Message(to, message.to_vec()));
        }
    }

    /// Reads a message. A packet of a peer becomes `Some` with its range in the message.
    pub fn receive(
        &mut self,
        message: &mut [u8],
        from: Endpoint,
        moment: &mut Moment<'_>,
    ) -> Option<core::ops::Range<usize>> {
        let known = match message.first_chunk() {
            Some([DATA, 0, 0, 0]) => return self.packet(message, from, moment),
            Some([INITIATION, 0, 0, 0]) => self.initiation(message, from, moment),
            Some([RESPONSE, 0, 0, 0]) => self.response(message, from, moment),
            Some([COOKIE, 0, 0, 0]) => self.cookie(message, moment),
            _ => None,
        };
        self.refused += u64::from(known.is_none());
        None
    }

    /// True if a message of a handshake may be read; its sender gets a cookie otherwise.
    fn is_open(&mut self, message: &[u8], from: Endpoint, moment: &mut Moment<'_>) -> bool {
        let door = self.doors.judge(message, from, moment.now_ns, moment.draw);
        if let (Door::Cookie(cookie), Some(own)) = (door, &self.own) {
            let nonce: [u8; LONG_NONCE] = core::array::from_fn({
                let key = (moment.draw)();
                move |n| key[n]
            });
            let reply = own.cookie_reply(message, &cookie, &nonce);
            self.outgoing
                .extend(reply.map(|r| Outgoing::Message(from, r.to_vec())));
        }
        self.limited += u64::from(door != Door::Open);
        door == Door::Open
    }

    fn initiation(
        &mut self,
        message: &[u8],
        from: Endpoint,
        moment: &mut Moment<'_>,
    ) -> Option<()> {
        let whole = <&[u8; handshake::INITIATION_LENGTH]>::try_from(message).ok()?;
        self.own.as_ref().filter(|own| own.is_for_us(message))?;
        if !self.is_open(message, from, moment) {
            return Some(());
        }
        let own = self.own.as_ref()?;
        let claimed = read_initiation(own, whole)?;
        let place = self
            .peers
            .iter()
            .position(|p| p.remote.public == claimed.public)?;
        let sender = claimed.sender;
        let proven = claimed.prove(own, whole)?;
        let peer = &mut self.peers[place];
        let index = index(peer.place, moment);
        if !peer.accepts(&proven, moment.now_ns) {
            return None;
        }
        let response = peer.answer(proven, sender, index, moment.now_ns, (moment.draw)())?;
        peer.endpoint = Some(from);
        self.handshakes += 1;
        self.send(place, &response);
        Some(())
    }

    fn response(&mut self, message: &[u8], from: Endpoint, moment: &mut Moment<'_>) -> Option<()> {
        let whole = <&[u8; handshake::RESPONSE_LENGTH]>::try_from(message).ok()?;
        self.own.as_ref().filter(|own| own.is_for_us(message))?;
        let receiver = number_at(message, 8)?;
        let place = self.peer_at(receiver)?;
        let (own, peer) = (self.own.as_ref()?, &mut self.peers[place]);
        if !peer.agree(own, receiver, whole, moment.now_ns) {
            return None;
        }
        peer.endpoint = Some(from);
        self.handshakes += 1;
        self.start(place, moment);
        Some(())
    }

    /// Sends what waits for a session, or an empty packet, so that the peer may use it, too.
    fn start(&mut self, place: usize, moment: &mut Moment<'_>) {
        let waiting = self.peers[place].take_waiting();
        if waiting.is_empty() {
            if let Some(message) = self.peers[place].keepalive(moment.now_ns) {
                self.send(place, &message);
            }
        }
        for mut packet in waiting {
            let peer = &mut self.peers[place];
            if let Some(to) = peer
                .endpoint
                .filter(|_| peer.seal(&mut packet, moment.now_ns))
            {
                self.outgoing.push(Outgoing::Packet(to, packet));
            }
        }
    }

    fn cookie(&mut self, message: &[u8], moment: &mut Moment<'_>) -> Option<()> {
        let whole = <&[u8; handshake::COOKIE_LENGTH]>::try_from(message).ok()?;
        let receiver = number_at(message, 4)?;
        let place = self.peer_at(receiver)?;
        self.peers[place]
            .take_cookie(receiver, whole, moment.now_ns)
            .then_some(())
    }

    fn packet(
        &mut self,
        message: &mut [u8],
        from: Endpoint,
        moment: &mut Moment<'_>,
    ) -> Option<core::ops::Range<usize>> {
        let receiver = number_at(message, 4);
        let place = receiver.and_then(|index| self.peer_at(index));
        let (Some(receiver), Some(place)) = (receiver, place) else {
            self.refused += 1;
            return None;
        };
        let peer = &mut self.peers[place];
        let Some(text) = peer.open(receiver, message, moment.now_ns) else {
            self.refused += 1;
            return None;
        };
        let (empty, found) = (text.is_empty(), inner(text));
        peer.endpoint = Some(from);
        if peer.is_due(moment.now_ns, true) {
            self.begin(place, moment);
        }
        if self.peers[place].waiting() > 0 {
            self.start(place, moment);
        }
        let sent_by = found.and_then(|i| self.peer_of(i.source));
        match found {
            Some(packet) if sent_by == Some(place) => {
                Some(super::session::HEADER..super::session::HEADER + packet.length)
            }
            _ => {
                self.refused += u64::from(!empty);
                None
            }
        }
    }

    /// Packets that wait for handshakes.
    pub fn waiting(&self) -> usize {
        self.peers.iter().map(Peer::waiting).sum()
    }

    /// Does what is due; when to call again.
    pub fn tick(&mut self, moment: &mut Moment<'_>) -> Option<u64> {
        for place in 0..self.peers.len() {
            let due = self.peers[place].tick(moment.now_ns, self.keepalive_ns);
            if due.keepalive {
                if let Some(message) = self.peers[place].keepalive(moment.now_ns) {
                    self.send(place, &message);
                }
            }
            if due.handshake {
                self.begin(place, moment);
            }
        }
        self.deadline_ns()
    }

    /// When something is due next.
    pub fn deadline_ns(&self) -> Option<u64> {
        let each = self
            .peers
            .iter()
            .filter_map(|p| p.deadline_ns(self.keepalive_ns));
        each.min()
    }

    /// Continues where the tunnel of a router before was, if its key is ours. A configuration without key or peers gets
    /// those that handlers set there.
    pub fn take_from(&mut self, old: &mut Self) {
        if self.own.is_none() {
            self.own = old.own.take();
        } else if self.public() != old.public() {
            return;
        }
        (self.no_peer, self.refused) = (old.no_peer, old.refused);
        (self.limited, self.handshakes) = (old.limited, old.handshakes);
        let given = match self.peers.is_empty() {
            true => &old.peers,
            false => &self.peers,
        };
        let terms = given.iter().map(Peer::terms).collect();
        self.peers.clear();
        self.adopt(core::mem::take(&mut old.peers), terms);
    }
}

/// The number of a session: random, with the peer's place in the low byte.
fn index(place: u8, moment: &mut Moment<'_>) -> u32 {
    let key: [u8; KEY] = (moment.draw)();
    u32::from_le_bytes([place, key[0], key[1], key[2]])
}

fn number_at(message: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*message.get(at..)?.first_chunk()?))
}
