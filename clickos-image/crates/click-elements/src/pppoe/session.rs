// SPDX-License-Identifier: Apache-2.0
//! One session: its link, its login, its IPv4 and IPv6.
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use click_core::value::Prefix;
use click_wire::ppp::{self, Control, code};

use super::account::Account;
use super::book::Book;
use super::layers::{Link, Method, Network};
use super::login::{Login, Proof};
use super::negotiation::{Negotiation, Outcome};
use super::six::Network6;
use super::{End, Moment, Outbox, SECOND_NS};
use crate::ip6::Prefix6;
use crate::radius::client::{Question, Verdict};
use crate::radius::grant::Grant;

/// The time from a session's begin to its login's end.
const OPENING_NS: u64 = 30 * SECOND_NS;
/// Echo requests without any packet from the peer before it counts as dead.
const ECHOES: u8 = 3;
/// Times that a peer may begin again with its link or IPv4 within a time; each one costs servers requests.
const BEGINS: u8 = 8;
const BEGINS_NS: u64 = 60 * SECOND_NS;

/// The offer of this end to all sessions.
pub struct Terms {
    /// This server's name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its interface identifier.
    pub identifier: u64,
    /// The addresses of subscribers that log in at a RADIUS server.
    pub network: Prefix,
    /// The networks of 64 bits for subscribers, if they have IPv6.
    pub networks6: Option<Prefix6>,
    /// Name servers, at most two.
    pub dns: Vec<Ipv4Addr>,
    /// The login that it asks for.
    pub method: Method,
    /// The other one is good, too.
    pub either: bool,
    /// Silence after which it asks whether the peer is there; 0: never.
    pub echo_ns: u64,
}

impl Terms {
    /// The network of a subscriber with an address, whose last bits number it.
    pub fn prefix_for(&self, address: Ipv4Addr) -> Option<u64> {
        let networks = self.networks6.filter(|networks| networks.length <= 64)?;
        let bits = 64 - networks.length;
        let most = 1u64.checked_shl(bits.into()).map_or(u64::MAX, |n| n - 1);
        let first = (networks.network >> 64) as u64;
        Some(first | u64::from(u32::from(address)) & most)
    }

    /// True for a network that a subscriber may have.
    pub fn has_network(&self, prefix: u64) -> bool {
        let networks = self.networks6.filter(|networks| networks.length <= 64);
        let first = u128::from(prefix) << 64;
        networks.is_some_and(|n| first & crate::ip6::mask(n.length) == n.network)
    }
}

/// The effect of a packet or of time on the table of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    Goes,
    /// A RADIUS server decides about the login.
    Asks(Question),
    /// IPv6 packets may pass.
    Open6,
    /// The subscriber is this user.
    LoggedIn,
    /// IPv4 packets may pass.
    Open,
    /// They may not any more.
    Down,
    /// It is over.
    Ends(End),
}

/// The user of a session, and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The user's name.
    pub name: String,
    /// The address that it had at the login.
    pub address: Ipv4Addr,
}

/// A session.
pub struct Session {
    /// Its number.
    pub id: u16,
    /// The subscriber's Ethernet address.
    pub mac: [u8; 6],
    /// Tells one request for a session from another of the same host.
    pub attempt: Vec<u8>,
    /// The user, once that is proved.
    pub holder: Option<Holder>,
    /// Its use of the network.
    pub account: Account,
    /// The account's number at RADIUS servers.
    pub account_id: u64,
    /// When its next interim record is due; 0: never.
    pub record_at_ns: u64,
    /// What a RADIUS server permitted, if one decided about the login.
    pub grant: Option<Grant>,
    /// The first 64 bits of the subscriber's IPv6 addresses.
    pub prefix: Option<u64>,
    /// When it got the last advertisement of this router.
    pub advertised_ns: u64,
    began_ns: u64,
    heard_ns: u64,
    echoes: u8,
    /// How often the peer began again since a time.
    begins: (u8, u64),
    last_id: u8,
    link: Negotiation<Link>,
    login: Option<Login>,
    /// The name of a login that waits for a RADIUS server.
    asks_for: String,
    network: Option<Negotiation<Network>>,
    network6: Option<Negotiation<Network6>>,
}

impl Session {
    /// Begins with the first request of the link.
    pub fn begin(
        (id, mac, attempt): (u16, [u8; 6], Vec<u8>),
        terms: &Terms,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Self {
        let link = Link::new(moment.magic(), terms.method, terms.either);
        Self {
            id,
            mac,
            attempt,
            holder: None,
            account: Account::default(),
            account_id: 0,
            record_at_ns: 0,
            grant: None,
            prefix: None,
            advertised_ns: 0,
            began_ns: moment.now_ns,
            heard_ns: moment.now_ns,
            echoes: 0,
            begins: (0, 0),
            last_id: 0,
            link: Negotiation::begin(link, moment.now_ns, out),
            login: None,
            asks_for: String::new(),
            network: None,
            network6: None,
        }
    }

    /// A session that opened on another host.
    pub fn carried(
        (id, mac, holder): (u16, [u8; 6], Holder),
        (magic, peer_mru): (u32, u16),
        terms: &Terms,
        now_ns: u64,
    ) -> Self {
        let mut link = Link::new(magic, terms.method, terms.either);
        link.peer_mru = peer_mru;
        let network = Network::new(terms.address, holder.address, terms.dns.clone());
        let prefix = terms.prefix_for(holder.address);
        Self {
            id,
            mac,
            attempt: Vec::new(),
            holder: Some(holder),
            account: Account::default(),
            account_id: 0,
            record_at_ns: 0,
            grant: None,
            prefix,
            advertised_ns: 0,
            began_ns: now_ns,
            heard_ns: now_ns,
            echoes: 0,
            begins: (0, 0),
            last_id: 0,
            link: Negotiation::opened(link),
            login: None,
            asks_for: String::new(),
            network: Some(Negotiation::opened(network)),
            network6: None,
        }
    }

    /// A session that opened on another host with IPv6.
    pub fn carry6(&mut self, prefix: u64, terms: &Terms) {
        self.prefix = Some(prefix);
        self.network6 = Some(Negotiation::opened(Network6::new(terms.identifier)));
    }

    /// True if IPv4 packets may pass.
    pub fn is_open(&self) -> bool {
        self.network.as_ref().is_some_and(Negotiation::is_open)
    }

    /// True if IPv6 packets may pass, too.
    pub fn is_open6(&self) -> bool {
        let network = self.network6.as_ref();
        self.is_open() && self.prefix.is_some() && network.is_some_and(Negotiation::is_open)
    }

    /// This end's interface identifier, if the subscriber speaks IPv6.
    pub fn identifier(&self) -> Option<u64> {
        self.network6.as_ref().map(|network| network.layer.ours)
    }

    /// True if this user logged in.
    pub fn is_of(&self, name: &str) -> bool {
        self.holder
            .as_ref()
            .is_some_and(|holder| holder.name == name)
    }

    /// Forgets the user of a link that begins again.
    pub fn settle(&mut self) {
        if self.network.is_none() {
            (self.holder, self.grant, self.prefix) = (None, None, None);
        }
    }

    /// This end's magic number, and the longest packet that the peer takes.
    pub fn link(&self) -> (u32, u16) {
        (self.link.layer.magic, self.link.layer.peer_mru)
    }

    /// When its last opening began.
    pub fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// The subscriber is there.
    pub fn hear(&mut self, now_ns: u64) {
        (self.heard_ns, self.echoes) = (now_ns, 0);
    }

    /// Takes a packet that is no IPv4 packet.
    pub fn receive(
        &mut self,
        (protocol, payload): (u16, &[u8]),
        (terms, book, asks): (&Terms, &Book, bool),
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let control = Control::parse(payload);
        match (protocol, control) {
            (ppp::LCP, Ok(control)) => self.link_packet(&control, terms, moment, out),
            (ppp::PAP | ppp::CHAP, Ok(control)) => {
                self.login_packet(protocol, &control, (terms, book, asks), moment, out)
            }
            (ppp::IPCP, Ok(control)) => self.network_packet(&control, moment, out),
            (ppp::IPV6CP, Ok(control)) if self.prefix.is_some() => {
                self.network6_packet(&control, terms, moment, out)
            }
            (ppp::IPV6 | ppp::IPV6CP, _) if self.prefix.is_some() => Event::Goes,
            (ppp::LCP | ppp::PAP | ppp::CHAP | ppp::IPCP | ppp::IPV4, _) => Event::Goes,
            _ => self.reject_protocol(protocol, payload, out),
        }
    }

    fn next_id(&mut self) -> u8 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// The peer begins again with its link or with IPv4.
    fn begins_again(&mut self, now_ns: u64) -> Event {
        let (count, since_ns) = self.begins;
        self.begins = match now_ns.saturating_sub(since_ns) < BEGINS_NS {
            true => (count.saturating_add(1), since_ns),
            false => (1, now_ns),
        };
        match self.begins.0 > BEGINS {
            true => Event::Ends(End::Renegotiated),
            false => Event::Down,
        }
    }

    /// Says that this end does not know a protocol; before the login it says nothing.
    fn reject_protocol(&mut self, protocol: u16, payload: &[u8], out: &mut Outbox) -> Event {
        if self.holder.is_some() && self.link.is_open() {
            let room = usize::from(self.link.layer.peer_mru) - ppp::HEADER - ppp::PROTOCOL;
            let payload = &payload[..payload.len().min(room)];
            let data = [&protocol.to_be_bytes(), payload].concat();
            let id = self.next_id();
            out.control(ppp::LCP, code::PROTOCOL_REJECT, id, &data);
        }
        Event::Goes
    }

    fn link_packet(
        &mut self,
        control: &Control<'_>,
        terms: &Terms,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        match control.code {
            code::REQUEST..=code::REJECT => {
                let outcome = self.link.receive(control, moment, out);
                self.link_changed(outcome, terms, moment, out)
            }
            code::TERMINATE => {
                out.control(ppp::LCP, code::TERMINATE_ACK, control.id, &[]);
                Event::Ends(End::Terminated)
            }
            code::ECHO => self.echo(control, out),
            code::TERMINATE_ACK | code::ECHO_REPLY | code::DISCARD => Event::Goes,
            code::CODE_REJECT => match control.data.first() {
                Some(code::REQUEST..=code::TERMINATE_ACK) => Event::Ends(End::Disagreed),
                _ => Event::Goes,
            },
            code::PROTOCOL_REJECT => match control.data {
                [0xc0, 0x21 | 0x23, ..] | [0xc2, 0x23, ..] | [0x80 | 0x00, 0x21, ..] => {
                    Event::Ends(End::Disagreed)
                }
                [0x80 | 0x00, 0x57, ..] => {
                    self.network6 = None;
                    Event::Goes
                }
                _ => Event::Goes,
            },
            _ => reject_code(ppp::LCP, control, self.next_id(), out),
        }
    }

    /// Answers an echo request, unless it is this end's own.
    fn echo(&mut self, control: &Control<'_>, out: &mut Outbox) -> Event {
        let own = self.link.layer.magic.to_be_bytes();
        if let Some((magic, data)) = control.data.split_first_chunk::<4>()
            && self.link.is_open()
            && *magic != own
        {
            let data = [&own, data].concat();
            out.control(ppp::LCP, code::ECHO_REPLY, control.id, &data);
        }
        Event::Goes
    }

    fn link_changed(
        &mut self,
        outcome: Outcome,
        terms: &Terms,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        match outcome {
            Outcome::Goes => Event::Goes,
            Outcome::Failed => Event::Ends(End::Disagreed),
            Outcome::Opened => {
                let method = self.link.layer.method;
                self.login = Some(Login::begin(method, &terms.name, moment, out));
                Event::Goes
            }
            Outcome::Restarted => {
                (self.login, self.network, self.network6) = (None, None, None);
                if self.holder.is_some() {
                    self.began_ns = moment.now_ns;
                }
                self.begins_again(moment.now_ns)
            }
        }
    }

    fn login_packet(
        &mut self,
        protocol: u16,
        control: &Control<'_>,
        (terms, book, asks): (&Terms, &Book, bool),
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let Some(login) = &mut self.login else {
            return Event::Goes;
        };
        let name = match login.receive(protocol, control, (book, asks), out) {
            Proof::None => return Event::Goes,
            Proof::Wrong => return Event::Ends(End::Login),
            Proof::Ask(question) => {
                self.asks_for = question.name.clone();
                return Event::Asks(question);
            }
            Proof::User(name) => name,
        };
        let Some(user) = book.users.get(&name) else {
            return Event::Ends(End::Login);
        };
        let address = user.address;
        self.logged_in(Holder { name, address }, terms, moment, out)
    }

    /// The name of the login that a RADIUS server decides, if one does.
    pub fn asked_name(&self) -> Option<&str> {
        let waits = self.login.as_ref().is_some_and(Login::is_waiting);
        waits.then_some(self.asks_for.as_str())
    }

    /// Follows a RADIUS server's decision about the login.
    pub fn decided(
        &mut self,
        verdict: Verdict,
        terms: &Terms,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let Some(login) = self.login.as_mut().filter(|login| login.is_waiting()) else {
            return Event::Goes;
        };
        let granted = match verdict {
            Verdict::Accept(grant) => grant.address.map(|address| (grant, address)),
            Verdict::Reject => None,
            Verdict::Silence => {
                login.decide(false, out);
                return Event::Ends(End::Unanswered);
            }
        };
        login.decide(granted.is_some(), out);
        let Some((grant, address)) = granted else {
            return Event::Ends(End::Login);
        };
        let name = core::mem::take(&mut self.asks_for);
        let event = self.logged_in(Holder { name, address }, terms, moment, out);
        self.prefix = grant.prefix.or(self.prefix);
        self.grant = Some(grant);
        event
    }

    /// No server was asked about the login.
    pub fn unasked(&mut self) {
        self.login.iter_mut().for_each(Login::unasked);
    }

    /// Begins with the protocols of the network.
    fn logged_in(
        &mut self,
        holder: Holder,
        terms: &Terms,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let network = Network::new(terms.address, holder.address, terms.dns.clone());
        self.network = Some(Negotiation::begin(network, moment.now_ns, out));
        (self.grant, self.prefix) = (None, terms.prefix_for(holder.address));
        self.holder = Some(holder);
        Event::LoggedIn
    }

    /// Takes a packet of IPv6's control protocol, in which the subscriber begins.
    fn network6_packet(
        &mut self,
        control: &Control<'_>,
        terms: &Terms,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let begins = self.network6.is_some() || control.code == code::REQUEST;
        if self.network.is_none() || !begins {
            return Event::Goes;
        }
        match control.code {
            code::REQUEST..=code::REJECT => {
                let network = self.network6.get_or_insert_with(|| {
                    Negotiation::begin(Network6::new(terms.identifier), moment.now_ns, out)
                });
                match network.receive(control, moment, out) {
                    Outcome::Opened => Event::Open6,
                    Outcome::Goes | Outcome::Restarted => Event::Goes,
                    Outcome::Failed => {
                        self.network6 = None;
                        Event::Goes
                    }
                }
            }
            code::TERMINATE => {
                out.control(ppp::IPV6CP, code::TERMINATE_ACK, control.id, &[]);
                self.network6 = None;
                Event::Goes
            }
            code::TERMINATE_ACK | code::CODE_REJECT => Event::Goes,
            _ => reject_code(ppp::IPV6CP, control, self.next_id(), out),
        }
    }

    fn network_packet(
        &mut self,
        control: &Control<'_>,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let Some(network) = &mut self.network else {
            return Event::Goes;
        };
        match control.code {
            code::REQUEST..=code::REJECT => match network.receive(control, moment, out) {
                Outcome::Goes => Event::Goes,
                Outcome::Failed => Event::Ends(End::Disagreed),
                Outcome::Opened => Event::Open,
                Outcome::Restarted => {
                    self.began_ns = moment.now_ns;
                    self.begins_again(moment.now_ns)
                }
            },
            code::TERMINATE => {
                out.control(ppp::IPCP, code::TERMINATE_ACK, control.id, &[]);
                Event::Ends(End::Terminated)
            }
            code::TERMINATE_ACK | code::CODE_REJECT => Event::Goes,
            _ => reject_code(ppp::IPCP, control, self.next_id(), out),
        }
    }

    /// Repeats what was not answered, and looks whether the peer is there.
    pub fn tick(&mut self, terms: &Terms, moment: &mut Moment<'_>, out: &mut Outbox) -> Event {
        let now_ns = moment.now_ns;
        if !self.is_open() && now_ns >= self.began_ns + OPENING_NS {
            return Event::Ends(End::Timeout);
        }
        let mut goes = self.link.tick(now_ns, out) != Outcome::Failed;
        if let (Some(login), true) = (&mut self.login, self.link.is_open()) {
            goes &= login.tick(&terms.name, moment, out);
        }
        if let Some(network) = &mut self.network {
            goes &= network.tick(now_ns, out) != Outcome::Failed;
        }
        if let Some(network) = &mut self.network6
            && network.tick(now_ns, out) == Outcome::Failed
        {
            self.network6 = None;
        }
        if let Some(end) = self.term(now_ns) {
            return Event::Ends(end);
        }
        match goes {
            true => self.ask(terms, now_ns, out),
            false => Event::Ends(End::Disagreed),
        }
    }

    /// Takes the time that the session was open off that which a RADIUS server permits; true if none is left.
    pub fn spend(&mut self, now_ns: u64) -> bool {
        let since_ns = self.account.since_ns;
        let grant = self.grant.as_mut().filter(|_| since_ns > 0);
        let Some(grant) = grant.filter(|grant| grant.session_s > 0) else {
            return false;
        };
        let used = now_ns.saturating_sub(since_ns).div_ceil(SECOND_NS);
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        grant.session_s = grant.session_s.saturating_sub(used);
        grant.session_s == 0
    }

    /// The end that a RADIUS server set, if it is time for it.
    fn term(&self, now_ns: u64) -> Option<End> {
        let grant = self.grant.as_ref().filter(|_| self.is_open())?;
        let over = |seconds: u32, since_ns: u64| {
            seconds > 0 && now_ns >= since_ns + u64::from(seconds) * SECOND_NS
        };
        if over(grant.session_s, self.account.since_ns) {
            return Some(End::Expired);
        }
        over(grant.idle_s, self.account.used_ns()).then_some(End::Idle)
    }

    /// Sends an echo request to a silent peer.
    fn ask(&mut self, terms: &Terms, now_ns: u64, out: &mut Outbox) -> Event {
        let due_ns = self.heard_ns + terms.echo_ns * (u64::from(self.echoes) + 1);
        if terms.echo_ns == 0 || !self.link.is_open() || now_ns < due_ns {
            return Event::Goes;
        }
        if self.echoes == ECHOES {
            return Event::Ends(End::Dead);
        }
        self.echoes += 1;
        let (id, magic) = (self.next_id(), self.link.layer.magic.to_be_bytes());
        out.control(ppp::LCP, code::ECHO, id, &magic);
        Event::Goes
    }

    /// Asks the peer to end the link, if there is one.
    pub fn terminate(&mut self, out: &mut Outbox) {
        if self.link.is_open() {
            let id = self.next_id();
            out.control(ppp::LCP, code::TERMINATE, id, &[]);
        }
    }
}

/// Says that this end does not know a code.
fn reject_code(protocol: u16, control: &Control<'_>, id: u8, out: &mut Outbox) -> Event {
    let length = u16::try_from(control.data.len() + ppp::HEADER).unwrap_or(u16::MAX);
    let [high, low] = length.to_be_bytes();
    let shown = &control.data[..control.data.len().min(64)];
    let data = [&[control.code, control.id, high, low], shown].concat();
    out.control(protocol, code::CODE_REJECT, id, &data);
    Event::Goes
}
