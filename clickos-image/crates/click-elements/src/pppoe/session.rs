// SPDX-License-Identifier: Apache-2.0
//! One session: its link, its login, its IPv4.
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use click_wire::ppp::{self, Control, code};

use super::account::Account;
use super::book::Book;
use super::layers::{Link, Method, Network};
use super::login::{Login, Proof};
use super::negotiation::{Negotiation, Outcome};
use super::{End, Moment, Outbox, SECOND_NS};

/// The time from a session's begin to its login's end.
const OPENING_NS: u64 = 30 * SECOND_NS;
/// Echo requests without any packet from the peer before it counts as dead.
const ECHOES: u8 = 3;

/// The offer of this end to all sessions.
pub struct Terms {
    /// This server's name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Name servers, at most two.
    pub dns: Vec<Ipv4Addr>,
    /// The login that it asks for.
    pub method: Method,
    /// The other one is good, too.
    pub either: bool,
    /// Silence after which it asks whether the peer is there; 0: never.
    pub echo_ns: u64,
}

/// The effect of a packet or of time on the table of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    Goes,
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
    began_ns: u64,
    heard_ns: u64,
    echoes: u8,
    last_id: u8,
    link: Negotiation<Link>,
    login: Option<Login>,
    network: Option<Negotiation<Network>>,
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
            began_ns: moment.now_ns,
            heard_ns: moment.now_ns,
            echoes: 0,
            last_id: 0,
            link: Negotiation::begin(link, moment.now_ns, out),
            login: None,
            network: None,
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
        Self {
            id,
            mac,
            attempt: Vec::new(),
            holder: Some(holder),
            account: Account::default(),
            began_ns: now_ns,
            heard_ns: now_ns,
            echoes: 0,
            last_id: 0,
            link: Negotiation::opened(link),
            login: None,
            network: Some(Negotiation::opened(network)),
        }
    }

    /// True if IPv4 packets may pass.
    pub fn is_open(&self) -> bool {
        self.network.as_ref().is_some_and(Negotiation::is_open)
    }

    /// True if this user logged in.
    pub fn is_of(&self, name: &str) -> bool {
        self.holder
            .as_ref()
            .is_some_and(|holder| holder.name == name)
    }

    /// Forgets the user of a link that begins anew.
    pub fn settle(&mut self) {
        if self.network.is_none() {
            self.holder = None;
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
        (terms, book): (&Terms, &Book),
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let control = Control::parse(payload);
        match (protocol, control) {
            (ppp::LCP, Ok(control)) => self.link_packet(&control, terms, moment, out),
            (ppp::PAP | ppp::CHAP, Ok(control)) => {
                self.login_packet(protocol, &control, (terms, book), moment, out)
            }
            (ppp::IPCP, Ok(control)) => self.network_packet(&control, moment, out),
            (ppp::LCP | ppp::PAP | ppp::CHAP | ppp::IPCP | ppp::IPV4, _) => Event::Goes,
            _ => self.reject_protocol(protocol, payload, out),
        }
    }

    fn next_id(&mut self) -> u8 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
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
                (self.login, self.network) = (None, None);
                if self.holder.is_some() {
                    self.began_ns = moment.now_ns;
                }
                Event::Down
            }
        }
    }

    fn login_packet(
        &mut self,
        protocol: u16,
        control: &Control<'_>,
        (terms, book): (&Terms, &Book),
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Event {
        let Some(login) = &mut self.login else {
            return Event::Goes;
        };
        let name = match login.receive(protocol, control, book, out) {
            Proof::None => return Event::Goes,
            Proof::Wrong => return Event::Ends(End::Login),
            Proof::User(name) => name,
        };
        let Some(user) = book.users.get(&name) else {
            return Event::Ends(End::Login);
        };
        let network = Network::new(terms.address, user.address, terms.dns.clone());
        self.network = Some(Negotiation::begin(network, moment.now_ns, out));
        let address = user.address;
        self.holder = Some(Holder { name, address });
        Event::LoggedIn
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
                    Event::Down
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
        match goes {
            true => self.ask(terms, now_ns, out),
            false => Event::Ends(End::Disagreed),
        }
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
