// SPDX-License-Identifier: Apache-2.0
//! Serves subscribers by PPPoE: logins, addresses of IPv4 and IPv6, rates and accounts of their sessions.
//!
//! # Synopsis
//! `PPPoEServer(ETH, IP, USER, ... [, NAME, SERVICE, DNS, AUTH, SESSIONS, ECHO, PASSWORDS, NETWORKS6, SRC, NETWORK, RADIUS,
//! SECRET, SIGNED, INTERIM])`: ETH and IP are this end of
//! all sessions. Each USER is `NAME ADDRESS [DOWN UP]`: the address that the subscriber gets, and its rates in bytes a
//! second or with a unit such as `10Mbps`. The default 0 is no limit. There are at most 4,096 users. PASSWORDS are `NAME
//! PASSWORD, ...`; without them the handler `passwords` sets them. NAME (default `clickos`) is the server's own name. Hosts
//! may ask for any service, or for SERVICE. DNS are one or two name servers; 0.0.0.0 stands for none. AUTH is `CHAP`
//! (default), `PAP`, or `ANY`: CHAP, and PAP for hosts that refuse it. At most SESSIONS (default 1024) exist at a time. After
//! ECHO seconds (default 20, 0: never) of silence the server asks whether a host is there. After three questions without an
//! answer it ends the session. With NETWORKS6, a prefix of at most 64 bits, each session that asks for IPv6 has a network of
//! 64 bits, whose last bits are those of its IPv4 address; router advertisements say it.
//!
//! RADIUS are the addresses of one or two servers, as `ADDRESS` or `ADDRESS:PORT` (default 1812); the next port takes
//! accounts. SECRET is the key that they share with this end, whose address is SRC. They decide about names that are no
//! USER's. Of an accepted login count Framed-IP-Address, which has to be a free one of NETWORK (default: any), Framed-IPv6-Prefix
//! (64 bits of NETWORKS6), Session-Timeout, Idle-Timeout, Acct-Interim-Interval, Class and WISPr-Bandwidth-Max-Up and -Down; with
//! one that cannot be used the login fails. SIGNED (default true): logins need an answer with Message-Authenticator.
//! INTERIM: seconds between interim accounts (default 0: as a server says).
//! # Ports
//! 2-3/2-4, push. Input 0 takes frames of subscribers, input 1 IP packets for subscribers, input 2 IPv4 packets of RADIUS
//! servers. Output 0 sends frames to subscribers. Output 1 has their IPv4 packets, output 3 their IPv6 packets, with header
//! and destination annotation set. Output 2 sends IPv4 packets to RADIUS servers. A user has one session;
//! a newer one replaces it. The element drops packets with a foreign source address, packets longer than the subscriber
//! takes (at most 1,492 bytes), and packets beyond a rate. A tenth of a second's worth, or 16,384 bytes, may pass at once.
//! A host gets a session only with a cookie, which a flood with false addresses never sees. All hosts together get 256
//! offers and 128 sessions a second. At most 256 sessions wait for their login, for 30 s. At most four sessions belong to one
//! Ethernet address. A newer session takes the place of one that waits, of an address with the most of them. Logins that a
//! RADIUS server decides keep their places while they are at most half of these. A session ends that begins again with
//! its link or IPv4 more than eight times in a minute; rates and Session-Timeout count on over such negotiations. A server gets a request three times in
//! six seconds; then the other one gets it, and comes first for a minute. Up to 512 accounts wait, of
//! 128 KiB; interim ones take half of that.
//! # Handlers
//! * `users` (read, write): all USERs, with commas; sessions of users that stay go on. `passwords` (write): all PASSWORDS.
//! * `add_user` (write): a USER, instead of that of its name. `remove_user`, `disconnect` (write): the user's name.
//! * `sessions` (read): up to 256 sessions from the number in the parameter on. Each line has number, user, address,
//!   Ethernet address, seconds, then packets, bytes and drops from the subscriber, and the same to it.
//! * `ended` (read): such lines of the last 64 sessions that ended, each with the reason.
//! * `count`, `opening` (read): sessions that pass packets, sessions that do not yet.
//! * `refused` (read): frames that are malformed or of no session. `limited` (read): discovery beyond the limit.
//! * `radius` (read): for each server its address, port, whether it answers, and counts; then those of none.
//! * `radius_servers` (read, write): RADIUS. `radius_secret` (write): SECRET, empty for none. `interim` (read, write): INTERIM.
//! * `unusable` (read): logins that a server accepted with an address that is not free.
//! * `rejected` (read): failed logins. `spoofed`, `no_session`, `too_long` (read): dropped IPv4 packets.
//! * `state` (read, write): the sessions; a guest that moves to another host takes them along.
//! # Example
//! `left -> s :: PPPoEServer($MAC, 10.0.0.1, "amy 10.0.0.2 10Mbps 2Mbps"); s[0] -> left_out; right -> [1]s[1] -> right_out;`
use alloc::collections::VecDeque;
use core::net::IpAddr;

use click_core::ArgContext;
use click_core::text::{split_words, unquote};
use click_wire::ipv4;

use crate::carried;
use crate::datagram;
use crate::ip6;
use crate::pppoe::book::{Book, Name, Passwords, Unshown, User, Users, checked_name};
use crate::pppoe::discovery::Discovery;
use crate::pppoe::layers::{MIN_MRU, Method};
use crate::pppoe::server::{Counts, Given, Server, line, next_record_ns};
use crate::pppoe::session::{Holder, Session, Terms};
use crate::pppoe::table::Table;
use crate::pppoe::{MRU, Moment, SECOND_NS, six};
use crate::prelude::*;
use crate::radius::client::{self, Client};
use crate::radius::grant::Grant;
use crate::radius::terms::{Interim, Places, Secret};

pub static ELEMENT: Class = Class {
    name: "PPPoEServer",
    ports: "2-3/2-4",
    processing: "h/h",
    flow: "xyz/yxzx",
    args: &[
        mandatory("ETH"),
        mandatory("IP"),
        rest("USER"),
        keyword("NAME"),
        keyword("SERVICE"),
        keyword("DNS"),
        keyword("AUTH"),
        keyword("SESSIONS"),
        keyword("ECHO"),
        secret("PASSWORDS"),
        keyword("NETWORKS6"),
        keyword("SRC"),
        keyword("NETWORK"),
        keyword("RADIUS"),
        secret("SECRET"),
        keyword("SIGNED"),
        keyword("INTERIM"),
    ],
    handlers: &[
        read_write(
            "users",
            |me: &mut PPPoEServer, _| text(&me.server.book.users),
            set!(|me, users, ctx| me.set_users(users, ctx)),
        ),
        write(
            "passwords",
            set!(|me, passwords, _| me.server.book.passwords = passwords),
        ),
        edit("add_user", PPPoEServer::add_user),
        edit("remove_user", PPPoEServer::remove_user),
        command("disconnect", PPPoEServer::disconnect),
        read("sessions", PPPoEServer::sessions),
        read("ended", |me, _| {
            Ok(me
                .server
                .ended
                .iter()
                .map(|line| format!("{line}\n"))
                .collect())
        }),
        read("count", |me, _| text(me.server.table.open())),
        read("opening", |me, _| text(me.server.opening())),
        read("refused", |me, _| text(me.server.counts.refused)),
        read("limited", |me, _| text(me.server.counts.limited)),
        read("radius", |me, view| {
            Ok(me.server.radius.statistics(view.now_ns()))
        }),
        read_write(
            "radius_servers",
            |me, _| text(Places(me.server.radius.places().collect())),
            set!(|me, places: Places, ctx| {
                me.with_moment(ctx, |server, moment| {
                    server.radius.set_servers(&places.0, moment);
                });
            }),
        ),
        write(
            "radius_secret",
            set!(|me, secret: Secret, ctx| {
                me.with_moment(ctx, |server, moment| {
                    server.radius.set_secret(secret.0, moment);
                });
            }),
        ),
        read_write(
            "interim",
            |me, _| text(me.server.radius.interim_s),
            set!(|me, interim: Interim, ctx| me.server.set_interim(interim.0, ctx.now_ns())),
        ),
        read("unusable", |me, _| text(me.server.counts.unusable)),
        read("rejected", |me, _| text(me.server.counts.rejected)),
        read("spoofed", |me, _| text(me.server.counts.spoofed)),
        read("no_session", |me, _| text(me.server.counts.no_session)),
        read("too_long", |me, _| text(me.server.counts.too_long)),
        read_command(
            "state",
            |me, view| Ok(me.state_text(view)),
            PPPoEServer::write_state,
        ),
    ],
    build,
    ..Class::DEFAULT
};

/// The first line of the state.
const HEAD: &str = "pppoe 1";
/// Sessions of one answer.
const LISTED: usize = 256;
/// The RADIUS client's own port, and the TTL of its packets.
const OWN_PORT: u16 = 49_812;
const TTL: u8 = 64;

/// AUTH.
struct Auth {
    method: Method,
    either: bool,
}

impl FromArg for Auth {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let (method, either) = match text {
            "CHAP" => (Method::Chap, false),
            "PAP" => (Method::Pap, false),
            "ANY" => (Method::Chap, true),
            _ => {
                return Err(format!(
                    "expected CHAP, PAP or ANY, got \"{}\"",
                    text.shown()
                ));
            }
        };
        Ok(Self { method, either })
    }
}

/// DNS.
struct Dns(Vec<Ipv4Addr>);

impl FromArg for Dns {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(&unquote(text));
        if words.len() > 2 {
            return Err(format!("{} name servers, the limit is 2", words.len()));
        }
        let servers: Result<Vec<Ipv4Addr>, _> =
            words.iter().map(|w| Ipv4Addr::from_arg(w, at)).collect();
        let named = servers?
            .into_iter()
            .filter(|address| !address.is_unspecified());
        Ok(Self(named.collect()))
    }
}

/// SESSIONS.
struct Most(u16);

impl FromArg for Most {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match u16::from_arg(text, at)? {
            most @ 1..=16_384 => Ok(Self(most)),
            most => Err(format!("{most} is out of range, expected 1 to 16384")),
        }
    }
}

fn build(a: &mut Args<'_>) -> Built {
    let (mac, address) = (a.need::<EtherAddr>("ETH"), a.need("IP"));
    let (name, service) = (
        a.or("NAME", Name("clickos".into())),
        a.opt::<Name>("SERVICE"),
    );
    let (dns, limit) = (a.or("DNS", Dns(Vec::new())), a.or("SESSIONS", Most(1024)));
    let chap = Auth {
        method: Method::Chap,
        either: false,
    };
    let (auth, echo) = (a.or("AUTH", chap), a.or("ECHO", 20u16));
    let passwords = a.opt::<Passwords>("PASSWORDS");
    let (networks6, network) = (
        a.opt::<ip6::Prefix6>("NETWORKS6"),
        a.opt::<Prefix>("NETWORK"),
    );
    let (places, secret) = (a.opt::<Places>("RADIUS"), a.opt::<Secret>("SECRET"));
    let (source, signed) = (a.opt::<Ipv4Addr>("SRC"), a.or("SIGNED", true));
    let interim = a.opt::<Interim>("INTERIM");
    if matches!((&places, &source), (Some(Some(_)), Some(None))) {
        a.error(
            "SRC",
            "expected the address of this end for RADIUS, got none",
        );
    }
    let lines = a.rest().to_vec();
    // of passwords without quotes, those behind a comma land here
    let is_secret = !matches!((&passwords, &secret), (Some(None), Some(None)));
    let user = |text: &String| match is_secret {
        true => a.parse::<Unshown>("USER", text).map(|user| user.0),
        false => a.parse("USER", text),
    };
    let users: Vec<_> = lines.iter().map(user).collect();
    let users: Option<Vec<User>> = users.into_iter().collect();
    let users = Users::checked(users?).map_err(|e| a.error("USER", e)).ok();
    let (name, auth, passwords) = (name?.0, auth?, passwords?);
    let (places, secret, interim) = (places?, secret?, interim?);
    let given = Given {
        users: !lines.is_empty(),
        passwords: passwords.is_some(),
        radius: client::Given {
            servers: places.is_some(),
            secret: secret.is_some(),
            interim: interim.is_some(),
        },
    };
    let any = Prefix {
        address: Ipv4Addr::UNSPECIFIED,
        mask: Ipv4Addr::UNSPECIFIED,
    };
    let mac = mac?.0;
    let server = Server {
        mac,
        radius: Client::new(
            &places.map(|places| places.0).unwrap_or_default(),
            secret.map(|secret| secret.0).unwrap_or_default(),
            (signed?, interim.map_or(0, |interim| interim.0)),
        ),
        radius_address: source?.unwrap_or(Ipv4Addr::UNSPECIFIED),
        terms: Terms {
            name: name.clone(),
            address: address?,
            identifier: six::identifier(mac),
            network: network?.unwrap_or(any),
            networks6: networks6?,
            dns: dns?.0,
            method: auth.method,
            either: auth.either,
            echo_ns: u64::from(echo?) * SECOND_NS,
        },
        discovery: Discovery::new(name, service?.map(|s| s.0).unwrap_or_default()),
        book: Book::default(),
        table: Table::new(limit?.0),
        ended: VecDeque::new(),
        outgoing: Vec::new(),
        counts: Counts::default(),
        tick_at_ns: None,
    };
    let mut me = PPPoEServer {
        given,
        datagrams: 0,
        server,
    };
    me.server.book.users = users?;
    me.server.book.passwords = passwords.unwrap_or_default();
    Some(Box::new(me))
}

struct PPPoEServer {
    given: Given,
    /// The number of the last datagram to a RADIUS server.
    datagrams: u16,
    server: Server,
}

impl PPPoEServer {
    /// Calls the server with the time and random numbers, then sends what it has to say.
    fn with_moment<R>(
        &mut self,
        ctx: &mut Context<'_>,
        act: impl FnOnce(&mut Server, &mut Moment<'_>) -> R,
    ) -> R {
        let now_ns = ctx.now_ns();
        let mut draw = || ctx.random_key();
        let mut moment = Moment {
            now_ns,
            draw: &mut draw,
        };
        let result = act(&mut self.server, &mut moment);
        self.work(ctx);
        result
    }

    fn set_users(&mut self, users: Users, ctx: &mut Context<'_>) {
        self.with_moment(ctx, |server, moment| server.set_users(users, moment));
    }

    fn add_user(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let user: User = view.parse(value)?;
        let users = self.server.book.users.with(user.clone());
        users.map_err(HandlerError::rejected)?;
        on_write(self, move |me, ctx| {
            if let Ok(users) = me.server.book.users.with(user) {
                me.set_users(users, ctx);
            }
        })
    }

    fn remove_user(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let Name(name) = view.parse(value)?;
        if self.server.book.users.get(&name).is_none() {
            return Err(HandlerError::rejected(format!("no user {name}")));
        }
        on_write(self, move |me, ctx| {
            let users = me.server.book.users.without(&name);
            me.set_users(users, ctx);
        })
    }

    fn disconnect(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let Name(name) = view.parse(value)?;
        if !self.server.has_session(&name) {
            return Err(HandlerError::rejected(format!("no session of {name}")));
        }
        on_write(self, move |me, ctx| {
            me.with_moment(ctx, |server, moment| server.disconnect(&name, moment));
        })
    }

    fn sessions(&mut self, view: &mut View<'_>) -> Text {
        let first: u16 = match view.param().trim() {
            "" => 0,
            number => view.parse(number)?,
        };
        let now_ns = view.now_ns();
        let open = self
            .server
            .table
            .iter()
            .filter(|s| s.is_open() && s.id >= first);
        Ok(open
            .take(LISTED)
            .map(|session| format!("{}\n", line(session, now_ns)))
            .collect())
    }

    /// The open sessions; where there is no room for all, those of the highest numbers are missing.
    fn state_text(&self, view: &View<'_>) -> String {
        let now_ns = view.now_ns();
        let entry = |session: &Session| {
            let holder = session.holder.as_ref().filter(|_| session.is_open())?;
            let (mac, (magic, mru)) = (EtherAddr(session.mac), session.link());
            let age_ms = carried::age_ms(now_ns, session.account.since_ns);
            let mut entry = format!(
                "{} {mac} {} {} {magic} {mru} {age_ms}",
                session.id, holder.name, holder.address
            );
            let ways = [&session.account.up, &session.account.down];
            for count in ways.iter().flat_map(|way| way.counts()) {
                entry += &format!(" {count}");
            }
            let prefix = session.prefix.filter(|_| session.is_open6());
            if session.account_id != 0 || prefix.is_some() || session.grant.is_some() {
                entry += &format!(" {}", session.account_id);
                entry += &prefix.map_or(" -".into(), |prefix| format!(" {prefix}"));
                entry += &match &session.grant {
                    Some(grant) => format!(" {grant}"),
                    None => " -".into(),
                };
            }
            Some(entry)
        };
        carried::render(HEAD, view, self.server.table.iter().filter_map(entry))
    }

    fn write_state(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let entries = carried::parse(HEAD, value, Carried::read)?;
        let now_ns = view.now_ns();
        on_write(self, move |me, ctx| {
            me.server.table.clear();
            for entry in entries {
                entry.restore(&mut me.server, now_ns);
            }
            me.server.tick_at_ns = Some(now_ns + SECOND_NS);
            me.work(ctx);
        })
    }

    /// Packets of subscribers, out of their frames.
    fn decapsulate(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let (mut run, mut run6, now_ns) = (ctx.batch(), ctx.batch(), ctx.now_ns());
        for mut packet in batch.drain_front(usize::MAX) {
            let mut draw = || ctx.random_key();
            let mut moment = Moment {
                now_ns,
                draw: &mut draw,
            };
            let Some(range) = self.server.receive(packet.data(), &mut moment) else {
                continue;
            };
            packet.take(packet.len() - range.end);
            packet.pull(range.start);
            if let Ok(header) = ipv4::View::new_checked(packet.data()) {
                let (length, destination) = (header.header_len(), header.destination());
                packet.set_network(0, length);
                packet.anno_mut().set_dst_ip(destination.octets());
                run.push_back(packet);
            } else if let Some(header) = ip6::View::of(packet.data()) {
                let destination = header.destination();
                packet.set_network(0, ip6::HEADER);
                destination.put(&mut packet);
                run6.push_back(packet);
            }
        }
        ctx.push(1, run);
        ctx.push(3, run6);
        ctx.recycle(batch);
        self.work(ctx);
    }

    /// Packets of RADIUS servers.
    fn answers(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let own = (self.server.radius_address, OWN_PORT);
        self.with_moment(ctx, |server, moment| {
            for packet in batch.drain_front(usize::MAX) {
                match datagram::payload(packet.data(), own) {
                    Some((from, range)) => {
                        server.radius_answer(from, &packet.data()[range], moment);
                    }
                    None => server.counts.refused += 1,
                }
            }
        });
        ctx.recycle(batch);
    }

    /// Packets for subscribers, into frames.
    fn encapsulate(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let (mut run, now_ns) = (ctx.batch(), ctx.now_ns());
        for mut packet in batch.drain_front(usize::MAX) {
            let Some((to, length)) = destination(packet.data()) else {
                self.server.counts.refused += 1;
                continue;
            };
            packet.take(packet.len() - length);
            let headers = self.server.headers_for(to, length, now_ns);
            if headers.is_some_and(|headers| packet.prepend_mac(&headers)) {
                run.push_back(packet);
            }
        }
        ctx.push(0, run);
        ctx.recycle(batch);
    }

    /// Sends what the server has to say, and sets the timer.
    fn work(&mut self, ctx: &mut Context<'_>) {
        for frame in core::mem::take(&mut self.server.outgoing) {
            if let Some(packet) = ctx.pool().packet_from(&frame) {
                ctx.push_one(0, packet);
            }
        }
        for outgoing in core::mem::take(&mut self.server.radius.outgoing) {
            let (own, to) = (self.server.radius_address, (outgoing.to, outgoing.port));
            self.datagrams = self.datagrams.wrapping_add(1);
            if let Some(mut packet) = ctx.pool().packet_from(&outgoing.packet)
                && datagram::wrap(&mut packet, (own, OWN_PORT), to, (self.datagrams, TTL))
            {
                ctx.push_one(2, packet);
            }
        }
        if self.server.radius.is_busy() {
            let at_ns = ctx.now_ns() + SECOND_NS;
            self.server.tick_at_ns.get_or_insert(at_ns);
        }
        if let Some(at_ns) = self.server.tick_at_ns {
            ctx.set_timer(at_ns.max(ctx.now_ns()));
        }
    }
}

/// Where an IP packet goes, and its length.
fn destination(packet: &[u8]) -> Option<(IpAddr, usize)> {
    if let Ok(header) = ipv4::View::new_checked(packet) {
        return Some((header.destination().into(), header.total_len()));
    }
    let header = ip6::View::of(packet).filter(|header| header.version() == 6)?;
    let length = ip6::HEADER + header.payload_len();
    (length <= packet.len()).then_some((header.destination().0.into(), length))
}

/// A session that another host had.
struct Carried {
    id: u16,
    mac: [u8; 6],
    holder: Holder,
    link: (u32, u16),
    age_ms: u64,
    counts: [[u64; 3]; 2],
    /// The account's number at RADIUS servers, the IPv6 prefix, and what a server permitted.
    account_id: u64,
    prefix: Option<u64>,
    grant: Option<Grant>,
}

impl Carried {
    fn read(words: &[&str]) -> Option<Self> {
        let (first, rest) = words.split_first_chunk::<7>()?;
        let [id, mac, name, address, magic, mru, age_ms] = first;
        let (counts, more) = rest.split_first_chunk::<6>()?;
        let mut numbers = [0; 6];
        for (number, word) in numbers.iter_mut().zip(counts) {
            *number = carried::number(word)?;
        }
        let [a, b, c, d, e, f] = numbers;
        let (account_id, prefix, grant) = match *more {
            [] => (0, None, None),
            [account_id, prefix, grant] => {
                let prefix = (prefix != "-").then(|| carried::number(prefix));
                let grant = (grant != "-").then(|| Grant::carried(grant));
                let account_id = carried::number(account_id)?;
                (account_id, optional_of(prefix)?, optional_of(grant)?)
            }
            _ => return None,
        };
        Some(Self {
            account_id,
            prefix,
            grant,
            id: carried::number(id)?,
            mac: carried::mac(mac)?,
            holder: Holder {
                name: checked_name(name).ok()?,
                address: address.parse().ok()?,
            },
            link: (
                carried::number(magic)?,
                carried::number(mru).filter(|mru| (MIN_MRU..=MRU).contains(mru))?,
            ),
            age_ms: carried::number(age_ms)?,
            counts: [[a, b, c], [d, e, f]],
        })
    }

    /// Makes the session, if its user is still one, or a RADIUS server permitted it, and its number is free.
    fn restore(self, server: &mut Server, now_ns: u64) {
        let user = server.book.users.get(&self.holder.name);
        let user = user.filter(|u| u.address == self.holder.address);
        let address = self.holder.address;
        let granted = self.grant.as_ref().filter(|_| {
            let is_users = server.book.users.iter().any(|u| u.address == address);
            !is_users && server.terms.network.contains(address)
        });
        let granted = granted.map(|grant| grant.rates);
        let Some(rates) = granted.or(user.map(|u| u.rates)) else {
            return;
        };
        let is_taken = server.table.of_address(address.into()).is_some();
        if is_taken || server.table.claim(self.id).is_none() {
            return;
        }
        let who = (self.id, self.mac, self.holder);
        let mut session = Session::carried(who, self.link, &server.terms, now_ns);
        let since_ns = carried::at_ns(now_ns, self.age_ms);
        session.account.begin(since_ns, rates);
        session.account.up.resume(self.counts[0]);
        session.account.down.resume(self.counts[1]);
        session.account.up.passed_ns = now_ns;
        (session.account_id, session.grant) = (self.account_id, self.grant);
        if session.account_id != 0 {
            session.record_at_ns = next_record_ns(&session, server.radius.interim_s, now_ns);
        }
        let is_known = |prefix: &u64| server.terms.has_network(*prefix);
        if let Some(prefix) = self.prefix.filter(is_known) {
            session.carry6(prefix, &server.terms);
        }
        server.table.insert(session);
        server.table.route(self.id);
    }
}

/// What may be absent, unless it is there and wrong.
fn optional_of<T>(found: Option<Option<T>>) -> Option<Option<T>> {
    match found {
        Some(found) => found.map(Some),
        None => Some(None),
    }
}

impl Element for PPPoEServer {
    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.with_moment(ctx, Server::tick);
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        match port {
            0 => self.decapsulate(ctx, batch),
            1 => self.encapsulate(ctx, batch),
            _ => self.answers(ctx, batch),
        }
    }

    /// Sessions go on whose users stay, and so does what handlers set and the configuration does not say.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            let given = self.given;
            self.with_moment(ctx, |server, moment| {
                server.take_from(&mut old.server, given, moment);
            });
        }
    }
}
