// SPDX-License-Identifier: Apache-2.0
//! Requests under way: which server gets each, when it is repeated, and what an answer is for.
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use click_core::memory::{RESERVE, has_room};

use super::grant::Grant;
use super::packet::{Answer, Attributes, SUM, access_request, accounting_request, attribute};
use super::packet::{code, hidden};
use crate::moment::{Moment, SECOND_NS};

/// Servers of a client.
pub const SERVERS: usize = 2;
/// The times that a request is sent to a server, and the time between two.
const TRIES: u8 = 3;
const REPEAT_NS: u64 = 2 * SECOND_NS;
/// A server that answered none of the tries comes last for this time.
const DEAD_NS: u64 = 60 * SECOND_NS;
/// Rounds of tries at all servers of a login, which a subscriber waits for, and of a record.
const ROUNDS: [u8; 2] = [1, 20];
/// Records under way, and records that wait; interim ones fill half of the places only.
const UNDER_WAY: usize = 32;
const QUEUE: usize = 512;
/// Bytes of records that wait: a server's classes make them long.
const QUEUE_BYTES: usize = 128 << 10;

/// What a configuration says about a client itself, so that it is not taken from the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// Servers.
    pub servers: bool,
    /// Their key.
    pub secret: bool,
    /// The time between records.
    pub interim: bool,
}

/// A server, which takes records at the port behind that of logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub address: Ipv4Addr,
    /// The port of logins.
    pub port: u16,
}

/// A server and what became of requests to it.
#[derive(Debug)]
pub struct Server {
    /// Where it is.
    pub place: Place,
    dead_until_ns: u64,
    requests: u64,
    repeated: u64,
    accepts: u64,
    rejects: u64,
    records: u64,
    recorded: u64,
    timeouts: u64,
    bad: u64,
}

impl Server {
    fn at(place: Place) -> Self {
        Self {
            place,
            dead_until_ns: 0,
            requests: 0,
            repeated: 0,
            accepts: 0,
            rejects: 0,
            records: 0,
            recorded: 0,
            timeouts: 0,
            bad: 0,
        }
    }
}

/// How a subscriber proves its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its password.
    Password(Vec<u8>),
    /// Identifier and answer, and the challenge.
    Chap([u8; 1 + SUM], [u8; SUM]),
}

/// A login that a server decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The subscriber's name.
    pub name: String,
    /// Its proof.
    pub proof: Proof,
}

/// A server's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The subscriber may log in.
    Accept(Grant),
    /// It may not.
    Reject,
    /// No server answered.
    Silence,
}

/// The subject of a request.
#[derive(Debug)]
enum Body {
    Login {
        session: u16,
        attributes: Attributes,
        proof: Proof,
    },
    Record(Attributes),
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Pending {
    id: u8,
    server: usize,
    authenticator: [u8; SUM],
    packet: Vec<u8>,
    /// Tries that are left, at this server and at others.
    left: [u8; 2],
    repeat_at_ns: u64,
    body: Body,
}

/// Requests of one kind, which share identifiers.
#[derive(Debug, Default)]
struct Window {
    pending: Vec<Pending>,
    last_id: u8,
}

impl Window {
    /// An identifier that no request has, used as late as possible after its last request.
    fn number(&mut self) -> Option<u8> {
        for _ in 0..=u8::MAX {
            self.last_id = self.last_id.wrapping_add(1);
            let id = self.last_id;
            if self.pending.iter().all(|pending| pending.id != id) {
                return Some(id);
            }
        }
        None
    }
}

/// A packet to be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The server.
    pub to: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// The packet.
    pub packet: Vec<u8>,
}

/// The client.
#[derive(Debug, Default)]
pub struct Client {
    /// The key that it shares with the servers.
    pub secret: Vec<u8>,
    /// Logins need an answer with Message-Authenticator.
    pub signed: bool,
    /// Seconds between interim records; 0: as a server says.
    pub interim_s: u32,
    /// Packets to be sent.
    pub outgoing: Vec<Outgoing>,
    servers: Vec<Server>,
    /// Logins, and records.
    windows: [Window; 2],
    queue: VecDeque<Attributes>,
    /// Answers to no request; records without a place; records that no server confirmed.
    strays: u64,
    dropped: u64,
    lost: u64,
}

const LOGINS: usize = 0;
const RECORDS: usize = 1;

impl Client {
    /// A client of some servers.
    pub fn new(places: &[Place], secret: Vec<u8>, (signed, interim_s): (bool, u32)) -> Self {
        Self {
            secret,
            signed,
            interim_s,
            servers: places
                .iter()
                .take(SERVERS)
                .map(|p| Server::at(*p))
                .collect(),
            ..Self::default()
        }
    }

    /// True if it has a server and a key.
    pub fn is_on(&self) -> bool {
        !self.servers.is_empty() && !self.secret.is_empty()
    }

    /// True if something waits for an answer or for a repetition.
    pub fn is_busy(&self) -> bool {
        self.windows.iter().any(|window| !window.pending.is_empty()) || !self.queue.is_empty()
    }

    /// Where the servers are.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.servers.iter().map(|server| server.place)
    }

    /// Sets the servers; the counts of those that stay go on. What is under way begins again.
    pub fn set_servers(&mut self, places: &[Place], moment: &mut Moment<'_>) {
        let mut old = core::mem::take(&mut self.servers);
        for place in places.iter().take(SERVERS) {
            let kept = old.iter().position(|server| server.place == *place);
            let server = kept.map_or_else(|| Server::at(*place), |n| old.swap_remove(n));
            self.servers.push(server);
        }
        self.begin_again(moment);
    }

    /// Sets the key.
    pub fn set_secret(&mut self, secret: Vec<u8>, moment: &mut Moment<'_>) {
        self.secret = secret;
        self.begin_again(moment);
    }

    /// Sends what is under way to the servers of now, as new requests. Without servers records wait in their queue.
    fn begin_again(&mut self, moment: &mut Moment<'_>) {
        let logins = core::mem::take(&mut self.windows[LOGINS].pending);
        for pending in core::mem::take(&mut self.windows[RECORDS].pending) {
            if let Body::Record(attributes) = pending.body {
                self.queue.push_front(attributes);
            }
        }
        for pending in logins {
            self.begin(LOGINS, pending.body, moment);
        }
        self.drain(moment);
    }

    /// Asks a server about a login; false without a server, or with too much under way.
    pub fn ask(
        &mut self,
        session: u16,
        question: Question,
        mut attributes: Attributes,
        moment: &mut Moment<'_>,
    ) -> bool {
        if let Proof::Chap(answer, challenge) = &question.proof {
            attributes.put(attribute::CHAP_PASSWORD, answer);
            attributes.put(attribute::CHAP_CHALLENGE, challenge);
        }
        let body = Body::Login {
            session,
            attributes,
            proof: question.proof,
        };
        self.forget(session);
        self.is_on() && has_room(RESERVE) && self.begin(LOGINS, body, moment)
    }

    /// A session is over: its login needs no answer.
    pub fn forget(&mut self, session: u16) {
        self.windows[LOGINS].pending.retain(
            |pending| !matches!(pending.body, Body::Login { session: of, .. } if of == session),
        );
    }

    /// Sends a record, now or later. An `interim` one is dropped first when too many wait.
    pub fn record(&mut self, mut attributes: Attributes, interim: bool, moment: &mut Moment<'_>) {
        if !self.is_on() {
            return;
        }
        let part = if interim { 2 } else { 1 };
        let waiting: usize = self.queue.iter().map(|record| record.0.len()).sum();
        let is_full = self.queue.len() >= QUEUE / part
            || waiting + attributes.0.len() > QUEUE_BYTES / part
            || !has_room(RESERVE);
        if is_full {
            self.dropped += 1;
            return;
        }
        attributes.0.shrink_to_fit();
        self.queue.push_back(attributes);
        self.drain(moment);
    }

    /// Sends records that wait, while there is room.
    fn drain(&mut self, moment: &mut Moment<'_>) {
        while self.is_on() && self.windows[RECORDS].pending.len() < UNDER_WAY {
            let Some(attributes) = self.queue.pop_front() else {
                return;
            };
            self.begin(RECORDS, Body::Record(attributes), moment);
        }
    }

    /// Sends the first packet of a request.
    fn begin(&mut self, kind: usize, body: Body, moment: &mut Moment<'_>) -> bool {
        let alive = |server: &Server| moment.now_ns >= server.dead_until_ns;
        let server = self.servers.iter().position(alive).unwrap_or(0);
        let servers = u8::try_from(self.servers.len()).unwrap_or(1);
        let left = (ROUNDS[kind] * servers).saturating_sub(1) * TRIES;
        self.send(kind, server, left, body, moment)
    }

    /// Sends a request to a server for the first time; false if there is no identifier or no server.
    fn send(
        &mut self,
        kind: usize,
        server: usize,
        left: u8,
        body: Body,
        moment: &mut Moment<'_>,
    ) -> bool {
        let Some(id) = self.windows[kind].number().filter(|_| self.is_on()) else {
            return false;
        };
        let Some(to) = self.servers.get_mut(server) else {
            return false;
        };
        let mut authenticator = [0; SUM];
        let packet = match &body {
            Body::Login {
                attributes, proof, ..
            } => {
                authenticator.copy_from_slice(&(moment.draw)()[..SUM]);
                let mut all = attributes.clone();
                if let Proof::Password(password) = proof {
                    let value = hidden(password, &authenticator, &self.secret);
                    all.put(attribute::USER_PASSWORD, &value);
                }
                to.requests += 1;
                access_request(id, &authenticator, &all, &self.secret)
            }
            Body::Record(attributes) => {
                to.records += 1;
                let packet = accounting_request(id, attributes, &self.secret);
                authenticator.copy_from_slice(&packet[4..4 + SUM]);
                packet
            }
        };
        self.outgoing.push(outgoing(to.place, kind, &packet));
        self.windows[kind].pending.push(Pending {
            id,
            server,
            authenticator,
            packet,
            left: [TRIES - 1, left],
            repeat_at_ns: moment.now_ns + REPEAT_NS,
            body,
        });
        true
    }

    /// Reads a datagram from an address and port; returns the session whose login it decides. Nothing but a count changes
    /// unless the datagram answers a request of this client and its sums are right.
    pub fn receive(
        &mut self,
        (address, port): (Ipv4Addr, u16),
        datagram: &[u8],
        moment: &mut Moment<'_>,
    ) -> Option<(u16, Verdict)> {
        let of = |server: &Server| {
            let is_port = [LOGINS, RECORDS].map(|kind| port_of(server.place, kind) == port);
            let kind = is_port.iter().position(|is| *is)?;
            (server.place.address == address).then_some(kind)
        };
        let from = self.servers.iter().enumerate();
        let from = from.filter_map(|(n, server)| Some((n, of(server)?))).next();
        let answer = Answer::parse(datagram);
        let (Some((server, kind)), Some(answer)) = (from, answer) else {
            self.strays += 1;
            return None;
        };
        let pending = &mut self.windows[kind].pending;
        let is_asked = |p: &Pending| p.id == answer.id && p.server == server;
        let Some(at) = pending.iter().position(is_asked) else {
            self.strays += 1;
            return None;
        };
        let from = &mut self.servers[server];
        let signed = self.signed && kind == LOGINS;
        let known = match answer.code {
            code::ACCESS_ACCEPT | code::ACCESS_REJECT | code::ACCESS_CHALLENGE => kind == LOGINS,
            code::ACCOUNTING_RESPONSE => kind == RECORDS,
            _ => false,
        };
        if !known || !answer.is_right(&pending[at].authenticator, &self.secret, signed) {
            from.bad += 1;
            return None;
        }
        from.dead_until_ns = 0;
        let Body::Login { session, .. } = pending.swap_remove(at).body else {
            from.recorded += 1;
            self.drain(moment);
            return None;
        };
        let grant = match answer.code {
            code::ACCESS_ACCEPT => Grant::read(answer.values),
            // a challenge needs a dialog, which PPP's logins lack (RFC 2865, section 4.4)
            _ => None,
        };
        let count = match grant {
            Some(_) => &mut from.accepts,
            None => &mut from.rejects,
        };
        *count += 1;
        Some((session, grant.map_or(Verdict::Reject, Verdict::Accept)))
    }

    /// Repeats what has no answer; returns the sessions whose logins no server decided.
    pub fn tick(&mut self, moment: &mut Moment<'_>) -> Vec<u16> {
        let mut silent = Vec::new();
        for kind in [LOGINS, RECORDS] {
            let mut gives_up = Vec::new();
            for (n, pending) in self.windows[kind].pending.iter_mut().enumerate() {
                if moment.now_ns < pending.repeat_at_ns {
                    continue;
                }
                let Some(left) = pending.left[0].checked_sub(1) else {
                    gives_up.push(n);
                    continue;
                };
                pending.left[0] = left;
                pending.repeat_at_ns = moment.now_ns + REPEAT_NS;
                if let Some(server) = self.servers.get_mut(pending.server) {
                    server.repeated += 1;
                    self.outgoing
                        .push(outgoing(server.place, kind, &pending.packet));
                }
            }
            for n in gives_up.into_iter().rev() {
                let pending = self.windows[kind].pending.swap_remove(n);
                silent.extend(self.next_server(kind, pending, moment));
            }
        }
        self.drain(moment);
        silent
    }

    /// Turns to the next server, if a request has tries left; otherwise returns its session.
    fn next_server(
        &mut self,
        kind: usize,
        pending: Pending,
        moment: &mut Moment<'_>,
    ) -> Option<u16> {
        if let Some(server) = self.servers.get_mut(pending.server) {
            server.timeouts += 1;
            server.dead_until_ns = moment.now_ns + DEAD_NS;
        }
        let session = match &pending.body {
            Body::Login { session, .. } => Some(*session),
            Body::Record(_) => None,
        };
        let next = (pending.server + 1) % self.servers.len().max(1);
        let sent = match pending.left[1].checked_sub(TRIES) {
            Some(left) => self.send(kind, next, left, pending.body, moment),
            None => false,
        };
        if !sent && session.is_none() {
            self.lost += 1;
        }
        session.filter(|_| !sent)
    }

    /// A line for each server, and one for what is of none.
    pub fn statistics(&self, now_ns: u64) -> String {
        let mut text = String::new();
        for s in &self.servers {
            let state = if now_ns < s.dead_until_ns {
                "down"
            } else {
                "up"
            };
            text += &format!(
                "{} {} {state} requests {} accepts {} rejects {} records {} recorded {} repeated {} timeouts {} bad {}\n",
                s.place.address,
                s.place.port,
                s.requests,
                s.accepts,
                s.rejects,
                s.records,
                s.recorded,
                s.repeated,
                s.timeouts,
                s.bad
            );
        }
        let [logins, records] = [LOGINS, RECORDS].map(|kind| self.windows[kind].pending.len());
        text += &format!(
            "logins {logins} records {records} waiting {} dropped {} lost {} strays {}\n",
            self.queue.len(),
            self.dropped,
            self.lost,
            self.strays
        );
        text
    }

    /// Continues as the client before, except for what is `given` to this one.
    pub fn take_from(&mut self, old: &mut Self, given: Given, moment: &mut Moment<'_>) {
        let new = core::mem::replace(self, core::mem::take(old));
        self.signed = new.signed;
        if given.interim {
            self.interim_s = new.interim_s;
        }
        let places: Vec<Place> = new.places().collect();
        if given.servers && !self.places().eq(places.iter().copied()) {
            self.set_servers(&places, moment);
        }
        if given.secret && self.secret != new.secret {
            self.set_secret(new.secret, moment);
        }
    }
}

/// The port that a server takes a kind of requests at.
fn port_of(place: Place, kind: usize) -> u16 {
    match kind {
        LOGINS => place.port,
        _ => place.port.saturating_add(1),
    }
}

fn outgoing(place: Place, kind: usize, packet: &[u8]) -> Outgoing {
    Outgoing {
        to: place.address,
        port: port_of(place, kind),
        packet: packet.to_vec(),
    }
}

#[cfg(test)]
mod tests;
