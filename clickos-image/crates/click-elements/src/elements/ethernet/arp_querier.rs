// SPDX-License-Identifier: Apache-2.0
//! Puts Ethernet headers in front of IP packets; finds the addresses with ARP.
//!
//! # Synopsis
//! `ARPQuerier(IP, ETH [, CAPACITY, ENTRY_CAPACITY, ENTRY_PACKET_CAPACITY, CAPACITY_SLIM_FACTOR, TIMEOUT, TABLE,
//! POLL_TIMEOUT, BROADCAST, BROADCAST_POLL, ANNOUNCE])` or `ARPQuerier(NAME, ...)` with a name that stands for both. IP and ETH are
//! this host's; `IP/PREFIX` also gives the broadcast address, as BROADCAST does. At most CAPACITY packets (default 2048)
//! wait, and at most a sixteenth of the router's packets; when there are more, one in CAPACITY_SLIM_FACTOR (default 2), the oldest entries' first, is dropped.
//! ENTRY_PACKET_CAPACITY may wait for one address (default 0: no limit of its own). There are ENTRY_CAPACITY entries
//! (default 0: the router's limit of table entries), good for TIMEOUT (default 5 min, 0: forever). TABLE names an
//! `ARPTable` that is used instead, with its limits. A known address is asked for again after POLL_TIMEOUT (default 1 min,
//! 0: never), by broadcast with BROADCAST_POLL (default false). ANNOUNCE is a list of prefixes. The
//! element announces their first 1,024 addresses as this host's (RFC 5227): at the start, after 2 and 4 s, and then each minute.
//! # Ports
//! 2/1-2, push. Input 0 takes IP packets with their destination annotation set, input 1 frames with ARP replies and requests.
//! A request updates the sender's entry, and makes one if it asks for IP (RFC 826).
//! Output 0 sends frames; queries go to output 1 if it is connected. Packets for an unknown address wait until it
//! is known; ten queries a second are sent for it at first, then one every two seconds.
//! # Handlers
//! * `table` (read): address, whether known, Ethernet address, age in seconds. `count` (read): entries.
//! * `length` (read): packets that wait. `queries`, `responses`, `drops` (read), `stats` (read): what happened.
//! * `ipaddr`, `broadcast` (read, write): IP, and the broadcast address.
//! * `announce` (write): announces as at the start. A Xen guest does so when it was restored.
//! * `insert` (write): `IP ETH`. `delete` (write): `IP`. `clear` (write): the counts, too.
//! * `state` (read, write): what was learned, the newest that fits; a guest that moves to another host takes it along.
//! # Differences from Click
//! ENTRY_CAPACITY 0 means the router's limit of table entries. At most a sixteenth of the router's
//! packets wait. In ARPQuerier `insert` sends the waiting packets and `delete` forgets the entry;
//! `drops` includes the drops of the table.
//! # Example
//! `... -> CheckIPHeader -> arp :: ARPQuerier(10.0.0.1/24, vif0) -> ToDevice(0); c[1] -> [1] arp;`
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::anno;
use click_core::text::{split_words, unquote};
use click_core::value::Verbatim;
use click_wire::{arp, ether};

use crate::announcements::Addresses;
use crate::arp_table::{self, ARPTable, Bounds, Shared, Table};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ARPQuerier",
    ports: "2/1-2",
    processing: "h/h",
    flow: "xy/x",
    args: &[
        mandatory("IP"),
        optional("ETH"),
        arp_table::KEYWORDS[0],
        arp_table::KEYWORDS[1],
        arp_table::KEYWORDS[2],
        arp_table::KEYWORDS[3],
        arp_table::KEYWORDS[4],
        keyword("TABLE"),
        keyword("POLL_TIMEOUT"),
        keyword("BROADCAST"),
        keyword("BROADCAST_POLL"),
        keyword("ANNOUNCE"),
    ],
    handlers: &[
        arp_table::table::<ARPQuerier>(),
        arp_table::state(),
        arp_table::count(),
        arp_table::length(),
        command(
            "announce",
            run!(|me: &mut ARPQuerier, ctx| {
                me.announced.restart();
                me.run_timer(ctx);
            }),
        ),
        read("queries", |me, _| text(me.queries)),
        read("responses", |me, _| text(me.responses)),
        read("drops", |me, _| text(me.all_drops())),
        read("stats", |me, _| {
            text(format!(
                "{} packets killed\n{} ARP queries sent\n",
                me.all_drops(),
                me.queries
            ))
        }),
        read_write("ipaddr", |me, _| text(me.ip), set!(|me, ip, _| me.ip = ip)),
        read_write(
            "broadcast",
            |me, _| text(me.broadcast.unwrap_or(Ipv4Addr::BROADCAST)),
            set!(|me, ip, _| me.broadcast = Some(ip)),
        ),
        edit("insert", ARPQuerier::insert),
        arp_table::delete(),
        command(
            "clear",
            run!(|me, _| {
                me.table.borrow_mut().clear();
                (me.queries, me.responses, me.drops) = (0, 0, 0);
            }),
        ),
    ],
    build,
    live: true,
    ..Class::DEFAULT
};

const SECOND: u64 = 1_000_000_000;

fn build(a: &mut Args<'_>) -> Built {
    let own = a.need::<Verbatim>("IP").map(|v| v.0);
    let prefix = own.as_ref().and_then(|text| a.parse::<Prefix>("IP", text));
    let mac = match a.opt::<EtherAddr>("ETH") {
        Some(None) => own
            .as_ref()
            .and_then(|text| a.parse::<EtherAddr>("ETH", text)),
        given => given.flatten(),
    };
    let (bounds, shared) = (Bounds::argument(a), a.opt("TABLE"));
    let poll = a.or("POLL_TIMEOUT", Span { ns: 60 * SECOND });
    let (broadcast, broadcast_poll) = (
        a.opt::<Ipv4Addr>("BROADCAST"),
        a.or("BROADCAST_POLL", false),
    );
    let announced = announced(a);
    let prefix = prefix?;
    Some(Box::new(ARPQuerier {
        ip: prefix.address,
        mac: mac?.0,
        broadcast: broadcast?.or_else(|| broadcast_of(prefix)),
        broadcast_poll: broadcast_poll?,
        poll_ns: poll?.ns,
        table: Rc::new(RefCell::new(Table::new(bounds?))),
        shared: shared?,
        announced: announced?,
        queries: 0,
        responses: 0,
        drops: 0,
    }))
}

/// The addresses of ANNOUNCE.
fn announced(a: &mut Args<'_>) -> Option<Addresses> {
    let text = a.or("ANNOUNCE", String::new())?;
    let words = split_words(&unquote(&text));
    let prefixes = words.iter().map(|word| a.parse("ANNOUNCE", word));
    prefixes.collect::<Option<_>>().map(Addresses::new)
}

fn broadcast_of(prefix: Prefix) -> Option<Ipv4Addr> {
    let mask = u32::from(prefix.mask);
    (mask.leading_ones() < 31).then(|| Ipv4Addr::from(u32::from(prefix.address) | !mask))
}

struct ARPQuerier {
    ip: Ipv4Addr,
    mac: [u8; 6],
    broadcast: Option<Ipv4Addr>,
    broadcast_poll: bool,
    poll_ns: u64,
    table: Shared,
    /// The element whose table it is, if it is not its own.
    shared: Option<String>,
    announced: Addresses,
    queries: u64,
    responses: u64,
    drops: u64,
}

/// The decision about an IP packet.
enum Way {
    /// Send it there.
    To([u8; 6]),
    /// Send it there, and ask whether that is still right.
    Poll([u8; 6]),
    Ask,
    Nowhere,
}

impl ARPQuerier {
    /// Asks for the address of `packet`'s destination.
    fn query(&mut self, ctx: &mut Context<'_>, about: &Asked, to: [u8; 6]) {
        let Some(mut packet) = self.request(ctx, self.ip, about.ip, to) else {
            return;
        };
        packet.set_timestamp_ns(about.timestamp_ns);
        packet.anno_mut().set_u16(anno::VLAN_TCI, about.vlan);
        self.queries += 1;
        ctx.push_one(ctx.outputs() - 1, packet);
    }

    fn request(
        &self,
        ctx: &mut Context<'_>,
        sender_ip: Ipv4Addr,
        target_ip: Ipv4Addr,
        to: [u8; 6],
    ) -> Option<Packet> {
        let mut packet = ctx.pool().alloc(ether::HEADER + arp::LENGTH)?;
        let request = arp::Repr {
            operation: arp::REQUEST,
            sender_mac: self.mac,
            sender_ip,
            target_mac: [0; 6],
            target_ip,
        };
        request.emit_frame(self.mac, to, packet.data_mut());
        packet.set_mac_offset(0);
        packet.set_network(ether::HEADER, arp::LENGTH);
        Some(packet)
    }

    /// Announces what is due.
    fn announce(&mut self, ctx: &mut Context<'_>) {
        for ip in self.announced.due(ctx.now_ns()) {
            if let Some(packet) = self.request(ctx, ip, ip, ether::BROADCAST) {
                ctx.push_one(ctx.outputs() - 1, packet);
            }
        }
    }

    fn output_port(&self, ip: Ipv4Addr, now: u64) -> Way {
        let mut table = self.table.borrow_mut();
        if let Some((mac, since)) = table.known(ip, now) {
            let old = self.poll_ns > 0 && now.saturating_sub(since) >= self.poll_ns;
            return match old && table.may_query(ip, now) {
                true => Way::Poll(mac),
                false => Way::To(mac),
            };
        }
        if ip.is_broadcast() || Some(ip) == self.broadcast {
            return Way::To(ether::BROADCAST);
        }
        // RFC 1112, section 6.4
        let [_, b, c, d] = ip.octets();
        match ip {
            _ if ip.is_multicast() => Way::To([0x01, 0x00, 0x5e, b & 0x7f, c, d]),
            _ if ip.is_unspecified() || self.ip.is_unspecified() => Way::Nowhere,
            _ => Way::Ask,
        }
    }

    fn encapsulate(&self, packet: &mut Packet, destination: [u8; 6]) -> bool {
        let header = ether::Repr {
            destination,
            source: self.mac,
            ethertype: ether::IPV4,
        };
        packet.prepend_mac(&header.bytes())
    }

    fn nowhere(&mut self, ctx: &mut Context<'_>) {
        if self.drops == 0 {
            let line = format!("{}: packet without a destination annotation", ctx.name());
            ctx.print(&line);
        }
        self.drops += 1;
    }

    fn send(&mut self, run: &mut Batch, mut packet: Packet, to: [u8; 6]) {
        match self.encapsulate(&mut packet, to) {
            true => run.push_back(packet),
            false => self.drops += 1,
        }
    }

    fn ip_packets(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let (mut run, now) = (ctx.batch(), ctx.now_ns());
        for packet in batch.drain_front(usize::MAX) {
            let about = Asked::of(&packet);
            match self.output_port(about.ip, now) {
                Way::To(mac) => self.send(&mut run, packet, mac),
                Way::Nowhere => self.nowhere(ctx),
                Way::Poll(mac) => {
                    self.flush(ctx, &mut run);
                    let to = if self.broadcast_poll {
                        ether::BROADCAST
                    } else {
                        mac
                    };
                    self.query(ctx, &about, to);
                    self.send(&mut run, packet, mac);
                }
                Way::Ask => {
                    let ask = self.table.borrow_mut().wait(about.ip, packet, now);
                    if ask {
                        self.flush(ctx, &mut run);
                        self.query(ctx, &about, ether::BROADCAST);
                    }
                }
            }
        }
        ctx.push(0, run);
        ctx.recycle(batch);
    }

    /// Packets that came before a query go before it.
    fn flush(&self, ctx: &mut Context<'_>, run: &mut Batch) {
        let next = ctx.batch();
        ctx.push(0, core::mem::replace(run, next));
    }

    fn reply(&mut self, ctx: &mut Context<'_>, frame: &[u8]) {
        let is_arp = ether::Repr::parse(frame).is_ok_and(|h| h.ethertype == ether::ARP);
        let Some(Ok(reply)) = is_arp.then(|| arp::Repr::parse(&frame[ether::HEADER..])) else {
            return;
        };
        let learns = match reply.operation {
            arp::REPLY => {
                self.responses += 1;
                true
            }
            arp::REQUEST => self.learns_of(&reply),
            _ => false,
        };
        if learns && !ether::is_group(reply.sender_mac) {
            self.learn(ctx, reply.sender_ip, reply.sender_mac);
        }
    }

    /// True if a request tells the address of its sender: of a known one, or of one that asks for us (RFC 826).
    fn learns_of(&self, request: &arp::Repr) -> bool {
        let sender = request.sender_ip;
        let is_host = !(sender.is_unspecified() || sender.is_broadcast() || sender.is_multicast());
        let asks = request.target_ip == self.ip || self.table.borrow().contains(sender);
        is_host && sender != self.ip && asks
    }

    fn learn(&mut self, ctx: &mut Context<'_>, ip: Ipv4Addr, mac: [u8; 6]) {
        let mut ready = self.table.borrow_mut().insert(ip, mac, ctx.now_ns());
        ready.retain_mut(|packet| self.encapsulate(packet, mac));
        ctx.push(0, ready);
    }
}

/// The subject of a query.
struct Asked {
    ip: Ipv4Addr,
    timestamp_ns: u64,
    vlan: u16,
}

impl Asked {
    fn of(packet: &Packet) -> Self {
        Self {
            ip: packet.anno().dst_ip().into(),
            timestamp_ns: packet.timestamp_ns(),
            vlan: packet.anno().u16(anno::VLAN_TCI),
        }
    }
}

part!(ARPQuerier, table: Shared);

impl ARPQuerier {
    /// The timer is for what is due first: old entries of its own table, or announcements.
    fn set_timer(&self, ctx: &mut Context<'_>) {
        let table = self.table.borrow();
        let expiry = self
            .shared
            .is_none()
            .then(|| table.next_expiry(ctx.now_ns()));
        let due = [expiry.flatten(), self.announced.due_ns()];
        if let Some(at) = due.into_iter().flatten().min() {
            ctx.set_timer(at.max(ctx.now_ns()));
        }
    }

    /// Packets that were dropped here or while they waited.
    fn all_drops(&self) -> u64 {
        self.drops + self.table.borrow().drops()
    }

    fn insert(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let (ip, mac) = arp_table::insertion(view, value)?;
        Ok(Change::of(move |me: &mut Self, ctx| me.learn(ctx, ip, mac)))
    }
}

impl Element for ARPQuerier {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let Some(name) = &self.shared else {
            self.set_timer(ctx);
            return Ok(());
        };
        let table = ctx.peer(name, |e| {
            let table = e.as_any().downcast_ref::<ARPTable>();
            table.map(|t| Rc::clone(&t.table))
        });
        let missing = || format!("TABLE: \"{name}\" is not an ARPTable");
        self.table = table.flatten().ok_or_else(missing)?;
        self.set_timer(ctx);
        Ok(())
    }

    /// Old entries of its own table go, and its addresses are announced.
    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.announce(ctx);
        if self.shared.is_none() {
            self.table.borrow_mut().expire(ctx.now_ns());
        }
        self.set_timer(ctx);
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        if port == 0 {
            return self.ip_packets(ctx, batch);
        }
        for packet in batch.drain_front(usize::MAX) {
            self.reply(ctx, packet.data());
        }
        ctx.recycle(batch);
    }

    /// The table keeps its entries, and packets go on waiting.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        let is_other = (old.ip, old.mac) != (self.ip, self.mac);
        if !is_other || ctx.is_reconfigured() {
            (self.queries, self.responses, self.drops) = (old.queries, old.responses, old.drops);
        }
        if is_other {
            return;
        }
        self.announced.take_from(&old.announced);
        let own = self.shared.is_none() && old.shared.is_none();
        if own && self.table.borrow().is_empty() {
            self.table
                .borrow_mut()
                .take_from(&mut old.table.borrow_mut());
        }
    }
}
