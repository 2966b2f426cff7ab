// SPDX-License-Identifier: Apache-2.0
//! All sessions of a server: what a frame of a subscriber does, and which session a packet is for. RADIUS servers decide
//! about logins of names that are no user's, and get the accounts of all sessions.
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::Range;

use click_core::memory::{RESERVE, has_room};
use click_wire::pppoe::{self, Repr, code};
use click_wire::{ether, ipv4, ppp};

use super::book::{Book, Users};
use super::discovery::{Asks, Discovery, no_room};
use super::records::{Nas, Status, about, record};
use super::session::{Event, Session, Terms};
use super::table::Table;
use super::{End, MRU, Moment, Outbox, SECOND_NS, six};
use crate::ip6::View;
use crate::radius::client::{self, Client, Question, Verdict};

/// Sessions that ended, as the last ones are listed.
const ENDED: usize = 64;
/// The time between two advertisements of this router, and the least between two that a subscriber asks for.
const ADVERTISE_NS: u64 = 300 * SECOND_NS;
const ASKED_NS: u64 = 3 * SECOND_NS;
/// Advertisements by themselves in a second; those of many sessions of one age are spread so.
const ADVERTISED: usize = 64;
/// Bytes in front of an IP packet of a session.
pub const HEADERS: usize = ether::HEADER + pppoe::HEADER + ppp::PROTOCOL;

/// Why packets were dropped, and how often.
#[derive(Default)]
pub struct Counts {
    /// Frames that are malformed, or not for this server or a session of their sender.
    pub refused: u64,
    /// Discovery packets beyond what is answered in a second.
    pub limited: u64,
    /// Logins with a wrong name or password.
    pub rejected: u64,
    /// Packets of subscribers with another source address than theirs.
    pub spoofed: u64,
    /// Packets for addresses without a session.
    pub no_session: u64,
    /// Packets that are longer than the subscriber takes.
    pub too_long: u64,
    /// Accepted logins with an address that cannot be used.
    pub unusable: u64,
}

/// What a configuration says itself, so that it is not taken from the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// Users.
    pub users: bool,
    /// Passwords.
    pub passwords: bool,
    /// What is about RADIUS servers.
    pub radius: client::Given,
}

/// The server.
pub struct Server {
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its offer to all sessions.
    pub terms: Terms,
    /// How hosts find it.
    pub discovery: Discovery,
    /// Users and passwords.
    pub book: Book,
    /// The client of RADIUS servers.
    pub radius: Client,
    /// Its address.
    pub radius_address: Ipv4Addr,
    /// Sessions.
    pub table: Table,
    /// Lines about sessions that ended, the newest last.
    pub ended: VecDeque<String>,
    /// Frames to be sent.
    pub outgoing: Vec<Vec<u8>>,
    /// Drops.
    pub counts: Counts,
    /// When to look for silent peers; `None` without sessions.
    pub tick_at_ns: Option<u64>,
}

impl Server {
    /// Reads a frame of a subscriber; returns where the IP packet in it lies that may pass.
    pub fn receive(&mut self, frame: &[u8], moment: &mut Moment<'_>) -> Option<Range<usize>> {
        let Some((ethernet, header, payload)) = self.parse(frame) else {
            self.counts.refused += 1;
            return None;
        };
        if ethernet.ethertype == pppoe::DISCOVERY {
            self.discover((header, payload), &ethernet, moment);
            return None;
        }
        let Some((protocol, packet)) = payload.split_first_chunk() else {
            self.counts.refused += 1;
            return None;
        };
        let id = header.session;
        let Some(session) = self.table.get_mut(id).filter(|s| s.mac == ethernet.source) else {
            self.unknown(id, ethernet.source, moment);
            return None;
        };
        session.hear(moment.now_ns);
        match u16::from_be_bytes(*protocol) {
            ppp::IPV4 => self.packet(id, packet, moment.now_ns),
            ppp::IPV6 if session.is_open6() => self.packet6(id, packet, moment.now_ns),
            protocol => {
                let mut out = Outbox::default();
                let about = (&self.terms, &self.book, self.radius.is_on());
                let event = session.receive((protocol, packet), about, moment, &mut out);
                self.send(id, &out);
                self.happened(id, &event, moment);
                None
            }
        }
    }

    /// The headers of a frame for this server, and what follows them.
    fn parse<'f>(&self, frame: &'f [u8]) -> Option<(ether::Repr, Repr, &'f [u8])> {
        let ethernet = ether::Repr::parse(frame).ok()?;
        let rest = &frame[ether::HEADER..];
        let header = Repr::parse(rest).ok()?;
        let payload = rest.get(pppoe::HEADER..pppoe::HEADER + usize::from(header.payload_len))?;
        let to_all = ethernet.destination == ether::BROADCAST;
        let right = match ethernet.ethertype {
            pppoe::DISCOVERY => to_all || ethernet.destination == self.mac,
            pppoe::SESSION => ethernet.destination == self.mac && header.code == code::SESSION,
            _ => false,
        };
        let host = !ether::is_group(ethernet.source) && ethernet.source != self.mac;
        (right && host).then_some((ethernet, header, payload))
    }

    fn discover(&mut self, packet: (Repr, &[u8]), ethernet: &ether::Repr, moment: &mut Moment<'_>) {
        let (mac, alone) = (ethernet.source, ethernet.destination == self.mac);
        match self.discovery.read(packet, mac, alone, moment) {
            Asks::Answer(code, tags) => self.answer(mac, code, 0, &tags),
            Asks::Session(tags, attempt) => self.begin(mac, tags, attempt, moment),
            Asks::End(id) => match self.table.get(id).is_some_and(|s| s.mac == mac) {
                true => self.end(id, End::Terminated, moment),
                false => self.counts.refused += 1,
            },
            Asks::Nothing => self.counts.refused += 1,
            Asks::TooMuch => self.counts.limited += 1,
        }
    }

    /// Begins a session, or confirms it again if its confirmation was lost.
    fn begin(&mut self, mac: [u8; 6], tags: Vec<u8>, attempt: Vec<u8>, moment: &mut Moment<'_>) {
        let same = |s: &Session| s.mac == mac && s.attempt == attempt && s.holder.is_none();
        if let Some(id) = self.table.numbers(same).first() {
            return self.answer(mac, code::PADS, *id, &tags);
        }
        if let Some(oldest) = self.table.in_the_way(mac) {
            self.end(oldest, End::Evicted, moment);
        }
        let Some(id) = self.table.number_for(mac) else {
            return self.answer(mac, code::PADS, 0, &no_room(tags));
        };
        self.answer(mac, code::PADS, id, &tags);
        let mut out = Outbox::default();
        let session = Session::begin((id, mac, attempt), &self.terms, moment, &mut out);
        self.table.insert(session);
        self.send(id, &out);
        self.tick_at_ns.get_or_insert(moment.now_ns + SECOND_NS);
    }

    /// Tells a host that its session is over: after a restart of this server it need not wait.
    fn unknown(&mut self, id: u16, mac: [u8; 6], moment: &Moment<'_>) {
        self.counts.refused += 1;
        if self.discovery.notices(moment.now_ns) {
            self.answer(mac, code::PADT, id, &[]);
        }
    }

    /// Adds a frame of discovery.
    fn answer(&mut self, mac: [u8; 6], code: u8, session: u16, tags: &[u8]) {
        self.frame(mac, pppoe::DISCOVERY, (code, session), tags);
    }

    /// Adds the frames of a session's packets.
    fn send(&mut self, id: u16, out: &Outbox) {
        let Some(mac) = self.table.get(id).map(|s| s.mac) else {
            return;
        };
        for packet in &out.0 {
            self.frame(mac, pppoe::SESSION, (code::SESSION, id), packet);
        }
    }

    /// Adds a frame, unless it is too long for Ethernet.
    fn frame(&mut self, mac: [u8; 6], ethertype: u16, (code, session): (u8, u16), payload: &[u8]) {
        let most = usize::from(MRU) + ppp::PROTOCOL;
        let Some(payload_len) = u16::try_from(payload.len())
            .ok()
            .filter(|_| payload.len() <= most)
        else {
            return;
        };
        let start = ether::HEADER + pppoe::HEADER;
        let mut frame = vec![0; start + payload.len()];
        self.headers(mac, ethertype).emit(&mut frame);
        let header = Repr {
            code,
            session,
            payload_len,
        };
        header.emit(&mut frame[ether::HEADER..]);
        frame[start..].copy_from_slice(payload);
        self.outgoing.push(frame);
    }

    fn headers(&self, destination: [u8; 6], ethertype: u16) -> ether::Repr {
        ether::Repr {
            destination,
            source: self.mac,
            ethertype,
        }
    }

    /// Follows what happened in a session.
    fn happened(&mut self, id: u16, event: &Event, moment: &mut Moment<'_>) {
        match event {
            Event::Goes => {}
            Event::Asks(question) => self.ask(id, question, moment),
            Event::LoggedIn => self.replace(id, moment),
            Event::Open => self.open(id, moment),
            Event::Open6 => {
                self.advertise(id, 0, moment.now_ns);
            }
            Event::Down => self.down(id, moment),
            Event::Ends(end) => {
                self.counts.rejected += u64::from(matches!(end, End::Login | End::Unanswered));
                self.end(id, *end, moment);
            }
        }
    }

    /// A session begins again, unless its time is over.
    fn down(&mut self, id: u16, moment: &mut Moment<'_>) {
        self.radius.forget(id);
        let session = self.table.get_mut(id);
        if session.is_some_and(|session| session.spend(moment.now_ns)) {
            return self.end(id, End::Expired, moment);
        }
        self.close(id, End::Renegotiated, moment);
        self.table.get_mut(id).into_iter().for_each(Session::settle);
    }

    /// Asks a RADIUS server about a login.
    fn ask(&mut self, id: u16, question: &Question, moment: &mut Moment<'_>) {
        let Some(session) = self.table.get_mut(id) else {
            return;
        };
        let nas = Nas {
            name: &self.terms.name,
            address: self.radius_address,
        };
        let attributes = about(session, &question.name, nas);
        if !self.radius.ask(id, question.clone(), attributes, moment) {
            self.counts.limited += 1;
            session.unasked();
        }
    }

    /// Reads a datagram that came to the RADIUS client.
    pub fn radius_answer(&mut self, from: (Ipv4Addr, u16), data: &[u8], moment: &mut Moment<'_>) {
        if let Some((id, verdict)) = self.radius.receive(from, data, moment) {
            self.decided(id, verdict, moment);
        }
    }

    fn decided(&mut self, id: u16, verdict: Verdict, moment: &mut Moment<'_>) {
        let verdict = match verdict {
            Verdict::Accept(grant) if !self.may_have(id, grant.address, grant.prefix) => {
                self.counts.unusable += 1;
                Verdict::Reject
            }
            Verdict::Accept(_) if !has_room(RESERVE) => {
                self.counts.limited += 1;
                Verdict::Reject
            }
            verdict => verdict,
        };
        let Some(session) = self.table.get_mut(id) else {
            return;
        };
        let mut out = Outbox::default();
        let event = session.decided(verdict, &self.terms, moment, &mut out);
        self.send(id, &out);
        self.happened(id, &event, moment);
    }

    /// True if a session may have what a RADIUS server says: addresses of the subscribers that no other user has.
    fn may_have(&self, id: u16, address: Option<Ipv4Addr>, prefix: Option<u64>) -> bool {
        let Some(name) = self.table.get(id).and_then(Session::asked_name) else {
            return false;
        };
        let Some(address) = address.filter(|address| {
            let own = [self.terms.address, self.radius_address].contains(address);
            let is_host = !address.is_unspecified() && !address.is_loopback();
            is_host && address.octets()[0] < 224 && !own && self.terms.network.contains(*address)
        }) else {
            return false;
        };
        let within = prefix.is_none_or(|prefix| self.terms.has_network(prefix));
        let is_users = self.book.users.iter().any(|user| {
            let network = prefix.and_then(|_| self.terms.prefix_for(user.address));
            user.address == address || network.is_some() && network == prefix
        });
        let is_others = self.table.iter().any(|s| {
            let holder = s.holder.as_ref().filter(|holder| holder.name != name);
            holder.is_some_and(|h| h.address == address || prefix.is_some() && s.prefix == prefix)
        });
        within && !is_users && !is_others
    }

    /// Sends a record of a session to the RADIUS servers.
    fn record(&mut self, id: u16, status: Status, moment: &mut Moment<'_>) {
        let session = self.table.get_mut(id).filter(|s| s.account_id != 0);
        let Some(session) = session.filter(|_| self.radius.is_on()) else {
            return;
        };
        session.record_at_ns = next_record_ns(session, self.radius.interim_s, moment.now_ns);
        let nas = Nas {
            name: &self.terms.name,
            address: self.radius_address,
        };
        if let Some(attributes) = record(session, status, nas, moment.now_ns) {
            let interim = status == Status::Interim;
            self.radius.record(attributes, interim, moment);
        }
        self.tick_at_ns.get_or_insert(moment.now_ns + SECOND_NS);
    }

    /// Sets the seconds between interim records; 0: as RADIUS servers say.
    pub fn set_interim(&mut self, seconds: u32, now_ns: u64) {
        self.radius.interim_s = seconds;
        for id in self.table.numbers(|s| s.is_open() && s.account_id != 0) {
            if let Some(session) = self.table.get_mut(id) {
                session.record_at_ns = next_record_ns(session, seconds, now_ns);
            }
        }
    }

    /// Advertises this router to a subscriber, unless it did so within a time; true if it did now.
    fn advertise(&mut self, id: u16, within_ns: u64, now_ns: u64) -> bool {
        let session = self.table.get_mut(id).filter(|s| s.is_open6());
        let is_due = |s: &&mut Session| now_ns >= s.advertised_ns + within_ns;
        let Some(session) = session.filter(is_due) else {
            return false;
        };
        session.advertised_ns = now_ns;
        if let (Some(ours), Some(prefix)) = (session.identifier(), session.prefix) {
            let mtu = session.link().1;
            self.send(id, &Outbox(vec![six::advertisement(ours, prefix, mtu)]));
        }
        true
    }

    /// Ends the older sessions of a session's user, and one that a RADIUS server gave the user's address.
    fn replace(&mut self, id: u16, moment: &mut Moment<'_>) {
        let Some(holder) = self.table.get(id).and_then(|s| s.holder.clone()) else {
            return;
        };
        let is_older = |s: &Session| {
            let other = s.holder.as_ref().filter(|_| s.id != id);
            other.is_some_and(|h| h.name == holder.name || h.address == holder.address)
        };
        for older in self.table.numbers(is_older) {
            self.end(older, End::Replaced, moment);
        }
    }

    fn open(&mut self, id: u16, moment: &mut Moment<'_>) {
        let Some(session) = self.table.get_mut(id) else {
            return;
        };
        let Some(holder) = &session.holder else {
            return;
        };
        let rates = match &session.grant {
            Some(grant) => Some(grant.rates),
            None => self.book.users.get(&holder.name).map(|u| u.rates),
        };
        session
            .account
            .begin(moment.now_ns, rates.unwrap_or_default());
        if self.radius.is_on() {
            session.account_id = moment.number();
        }
        self.table.route(id);
        self.record(id, Status::Start, moment);
        self.advertise(id, 0, moment.now_ns);
    }

    /// Stops packets of a session, and lists what it used.
    fn close(&mut self, id: u16, end: End, moment: &mut Moment<'_>) {
        let Some(session) = self.table.get(id).filter(|s| s.account.since_ns > 0) else {
            return;
        };
        let line = format!("{} {}", line(session, moment.now_ns), end.word());
        self.record(id, Status::Stop(end), moment);
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(line);
        self.table.unroute(id);
        if let Some(session) = self.table.get_mut(id) {
            session.account.end();
            session.record_at_ns = 0;
        }
    }

    /// Ends a session on both sides.
    pub fn end(&mut self, id: u16, end: End, moment: &mut Moment<'_>) {
        self.close(id, end, moment);
        self.radius.forget(id);
        let mut out = Outbox::default();
        let Some(session) = self.table.get_mut(id) else {
            return;
        };
        if end != End::Terminated {
            session.terminate(&mut out);
        }
        let mac = session.mac;
        self.send(id, &out);
        self.answer(mac, code::PADT, id, &[]);
        self.table.remove(id);
    }

    /// Judges an IPv4 packet of a session; returns where in the frame it lies if it may pass.
    fn packet(&mut self, id: u16, packet: &[u8], now_ns: u64) -> Option<Range<usize>> {
        let session = self.table.get_mut(id)?;
        let Ok(header) = ipv4::View::new_checked(packet) else {
            self.counts.refused += 1;
            return None;
        };
        if !session.is_open() {
            self.counts.refused += 1;
            return None;
        }
        if session.holder.as_ref().map(|h| h.address) != Some(header.source()) {
            self.counts.spoofed += 1;
            return None;
        }
        let length = header.total_len();
        let passes = session.account.up.admit(length, now_ns);
        passes.then_some(HEADERS..HEADERS + length)
    }

    /// The same for an IPv6 packet. Those of the link itself end here.
    fn packet6(&mut self, id: u16, packet: &[u8], now_ns: u64) -> Option<Range<usize>> {
        let session = self.table.get_mut(id)?;
        let whole = View::of(packet).filter(|header| {
            header.version() == 6 && crate::ip6::HEADER + header.payload_len() <= packet.len()
        });
        let Some(header) = whole else {
            self.counts.refused += 1;
            return None;
        };
        if six::is_for_link(header) {
            let ours = session.identifier()?;
            match six::asks(packet, ours) {
                six::Asks::Router => {
                    self.advertise(id, ASKED_NS, now_ns);
                }
                six::Asks::Neighbor(to) => self.send(id, &Outbox(vec![six::answer(ours, to)])),
                six::Asks::Nothing => {}
            }
            return None;
        }
        if session.prefix != Some(six::prefix_of(header.source())) {
            self.counts.spoofed += 1;
            return None;
        }
        let length = crate::ip6::HEADER + header.payload_len();
        let passes = session.account.up.admit(length, now_ns);
        passes.then_some(HEADERS..HEADERS + length)
    }

    /// The headers of a packet for an address, of this length, if it may pass.
    pub fn headers_for(&mut self, to: IpAddr, length: usize, now_ns: u64) -> Option<[u8; HEADERS]> {
        let protocol = if to.is_ipv4() { ppp::IPV4 } else { ppp::IPV6 };
        let session = self.table.of_address(to);
        let Some(session) = session.filter(|s| to.is_ipv4() || s.is_open6()) else {
            self.counts.no_session += 1;
            return None;
        };
        let fits = length <= usize::from(session.link().1);
        let payload_len = u16::try_from(length + ppp::PROTOCOL).ok().filter(|_| fits);
        let Some(payload_len) = payload_len else {
            self.counts.too_long += 1;
            return None;
        };
        if !session.account.down.admit(length, now_ns) {
            return None;
        }
        let header = Repr {
            code: code::SESSION,
            session: session.id,
            payload_len,
        };
        let mac = session.mac;
        let mut bytes = [0; HEADERS];
        self.headers(mac, pppoe::SESSION).emit(&mut bytes);
        header.emit(&mut bytes[ether::HEADER..]);
        bytes[HEADERS - ppp::PROTOCOL..].copy_from_slice(&protocol.to_be_bytes());
        Some(bytes)
    }

    /// Looks after all sessions, each second.
    pub fn tick(&mut self, moment: &mut Moment<'_>) {
        if self.tick_at_ns.is_none_or(|at_ns| moment.now_ns < at_ns) {
            return;
        }
        for id in self.radius.tick(moment) {
            self.decided(id, Verdict::Silence, moment);
        }
        let mut advertised = 0;
        for id in self.table.numbers(|_| true) {
            let Some(session) = self.table.get_mut(id) else {
                continue;
            };
            let mut out = Outbox::default();
            let event = session.tick(&self.terms, moment, &mut out);
            self.send(id, &out);
            self.happened(id, &event, moment);
            let due_ns = self.table.get(id).map_or(0, |s| s.record_at_ns);
            if due_ns > 0 && moment.now_ns >= due_ns {
                self.record(id, Status::Interim, moment);
            }
            let may_advertise = advertised < ADVERTISED;
            if may_advertise && self.advertise(id, ADVERTISE_NS, moment.now_ns) {
                advertised += 1;
            }
        }
        let more = self.table.iter().next().is_some() || self.radius.is_busy();
        self.tick_at_ns = more.then_some(moment.now_ns + SECOND_NS);
    }

    /// Sets the users. Sessions go on whose user stays with its address, or logged in at a RADIUS server; rates change at
    /// once.
    pub fn set_users(&mut self, users: Users, moment: &mut Moment<'_>) {
        self.book.users = users;
        for id in self
            .table
            .numbers(|s| s.holder.is_some() && s.grant.is_none())
        {
            let Some(session) = self.table.get_mut(id) else {
                continue;
            };
            let user = session.holder.as_ref().and_then(|holder| {
                let user = self.book.users.get(&holder.name);
                user.filter(|user| user.address == holder.address)
            });
            match user {
                Some(user) => session.account.set_rates(user.rates),
                None => self.end(id, End::Removed, moment),
            }
        }
    }

    /// Sessions that do not pass packets yet.
    pub fn opening(&self) -> usize {
        self.table.iter().filter(|s| !s.is_open()).count()
    }

    /// True if a user has a session.
    pub fn has_session(&self, name: &str) -> bool {
        self.table.iter().any(|s| s.is_of(name))
    }

    /// Ends the session of a user.
    pub fn disconnect(&mut self, name: &str, moment: &mut Moment<'_>) {
        for id in self.table.numbers(|s| s.is_of(name)) {
            self.end(id, End::Disconnected, moment);
        }
    }

    /// Takes over the sessions of the server before, whose addresses were the same; `given` is what this configuration
    /// says itself.
    pub fn take_from(&mut self, old: &mut Self, given: Given, moment: &mut Moment<'_>) {
        self.radius.take_from(&mut old.radius, given.radius, moment);
        if !given.passwords {
            self.book.passwords = core::mem::take(&mut old.book.passwords);
        }
        let users = if given.users {
            &mut self.book.users
        } else {
            &mut old.book.users
        };
        let users = core::mem::take(users);
        self.discovery.take_from(&mut old.discovery);
        self.ended = core::mem::take(&mut old.ended);
        if self.mac == old.mac && self.terms.address == old.terms.address {
            self.table.take_from(&mut old.table);
        }
        self.set_users(users, moment);
        if self.table.iter().next().is_some() || self.radius.is_busy() {
            self.tick_at_ns = Some(moment.now_ns + SECOND_NS);
        }
    }
}

/// When a session's next interim record is due; 0: never.
pub fn next_record_ns(session: &Session, interim_s: u32, now_ns: u64) -> u64 {
    let granted_s = session.grant.as_ref().map_or(0, |grant| grant.interim_s);
    match if interim_s > 0 { interim_s } else { granted_s } {
        0 => 0,
        seconds => now_ns + u64::from(seconds) * SECOND_NS,
    }
}

/// A session's number, user, addresses, seconds, and packets, bytes and drops from the subscriber and to it.
pub fn line(session: &Session, now_ns: u64) -> String {
    let holder = session.holder.as_ref();
    let name = holder.map_or("-", |h| h.name.as_str());
    let address = holder.map_or(Ipv4Addr::UNSPECIFIED, |h| h.address);
    let mac = click_core::value::EtherAddr(session.mac);
    let seconds = now_ns.saturating_sub(session.account.since_ns) / SECOND_NS;
    let mut line = format!("{} {name} {address} {mac} {seconds}", session.id);
    for way in [&session.account.up, &session.account.down] {
        let [packets, bytes, drops] = way.counts();
        line += &format!(" {packets} {bytes} {drops}");
    }
    line
}
