// SPDX-License-Identifier: Apache-2.0
//! Puts Ethernet headers in front of IP packets; finds the addresses with ARP.
//!
//! # Synopsis
//! `ARPQuerier(IP, ETH [, CAPACITY, ENTRY_CAPACITY, ENTRY_PACKET_CAPACITY, TIMEOUT, POLL_TIMEOUT, BROADCAST,
//! BROADCAST_POLL])` or `ARPQuerier(NAME, ...)` with a name that stands for both. IP and ETH are this host's;
//! `IP/PREFIX` also gives the broadcast address, as BROADCAST does. At most CAPACITY packets (default 2048) wait,
//! ENTRY_PACKET_CAPACITY for one address (default 0: no limit of its own), ENTRY_CAPACITY entries (default 0: the
//! router's limit of table entries). An entry is good for TIMEOUT (default 5 min), asked for again after
//! POLL_TIMEOUT (default 1 min, 0: never), by broadcast with BROADCAST_POLL (default false).
//! # Ports
//! 2/1-2, push. Input 0 takes IP packets with their destination annotation set, input 1 frames with ARP replies.
//! Output 0 sends frames; queries go to output 1 if it is connected. Packets for an unknown address wait until it
//! is known; at most ten queries a second are sent for it.
//! # Handlers
//! * `table` (read): address, whether known, Ethernet address, age in seconds. `count` (read): entries.
//! * `length` (read): packets that wait. `queries`, `responses`, `drops` (read), `stats` (read): what happened.
//! * `ipaddr` (read, write): IP. `broadcast` (read).
//! * `insert` (write): `IP ETH`. `delete` (write): `IP`. `clear` (write).
//! # Example
//! `... -> CheckIPHeader -> arp :: ARPQuerier(10.0.0.1/24, vif0) -> ToDevice(0); c[1] -> [1] arp;`
use click_core::text::split_words;
use click_core::value::Verbatim;
use click_wire::{arp, ether};

use crate::arp_table::{Bounds, Table};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ARPQuerier",
    ports: "2/1-2",
    processing: "h/h",
    flow: "xy/x",
    args: &[
        mandatory("IP"),
        optional("ETH"),
        keyword("CAPACITY"),
        keyword("ENTRY_CAPACITY"),
        keyword("ENTRY_PACKET_CAPACITY"),
        keyword("TIMEOUT"),
        keyword("POLL_TIMEOUT"),
        keyword("BROADCAST"),
        keyword("BROADCAST_POLL"),
    ],
    handlers: &[
        read("table"),
        read("count"),
        read("length"),
        read("queries"),
        read("responses"),
        read("drops"),
        read("stats"),
        read_write("ipaddr"),
        read("broadcast"),
        write("insert"),
        write("delete"),
        write("clear"),
    ],
    build,
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
    let (capacity, entry_packets) = (
        a.or("CAPACITY", 2048usize),
        a.or("ENTRY_PACKET_CAPACITY", 0usize),
    );
    let entries = a.or("ENTRY_CAPACITY", 0usize);
    let (timeout, poll) = (
        a.or("TIMEOUT", Span { ns: 300 * SECOND }),
        a.or("POLL_TIMEOUT", Span { ns: 60 * SECOND }),
    );
    let (broadcast, broadcast_poll) = (
        a.opt::<Ipv4Addr>("BROADCAST"),
        a.or("BROADCAST_POLL", false),
    );
    let limit = a.environment().limits.table_entries;
    let prefix = prefix?;
    Some(Box::new(ARPQuerier {
        ip: prefix.address,
        mac: mac?.0,
        broadcast: broadcast?.or_else(|| broadcast_of(prefix)),
        broadcast_poll: broadcast_poll?,
        poll_ns: poll?.ns,
        table: Table::new(Bounds {
            timeout_ns: timeout?.ns,
            packets: or_unlimited(capacity?),
            packets_per_entry: or_unlimited(entry_packets?),
            entries: or_unlimited(entries?).min(limit),
        }),
        queries: 0,
        responses: 0,
        drops: 0,
    }))
}

/// 0 means that there is no limit.
fn or_unlimited(n: usize) -> usize {
    if n == 0 { usize::MAX } else { n }
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
    table: Table,
    queries: u64,
    responses: u64,
    drops: u64,
}

impl ARPQuerier {
    fn query(&mut self, ctx: &mut Context<'_>, ip: Ipv4Addr, to: [u8; 6]) {
        let Some(mut packet) = ctx.pool().alloc(ether::HEADER + arp::LENGTH) else {
            return;
        };
        let request = arp::Repr {
            operation: arp::REQUEST,
            sender_mac: self.mac,
            sender_ip: self.ip,
            target_mac: [0; 6],
            target_ip: ip,
        };
        request.emit_frame(self.mac, to, packet.data_mut());
        packet.set_mac_offset(0);
        packet.set_timestamp_ns(ctx.now_ns());
        self.queries += 1;
        ctx.push_one(ctx.outputs() - 1, packet);
    }

    /// The Ethernet address for an IP address; `None` if it has to be asked for.
    fn resolve(&mut self, ctx: &mut Context<'_>, ip: Ipv4Addr) -> Option<[u8; 6]> {
        let now = ctx.now_ns();
        if let Some(mac) = self.table.known(ip, now) {
            let age = now.saturating_sub(self.table.by_ip[&ip].live_ns);
            if self.poll_ns > 0 && age >= self.poll_ns && self.table.may_query(ip, now) {
                self.query(
                    ctx,
                    ip,
                    if self.broadcast_poll {
                        ether::BROADCAST
                    } else {
                        mac
                    },
                );
            }
            return Some(mac);
        }
        if ip.is_broadcast() || Some(ip) == self.broadcast {
            return Some(ether::BROADCAST);
        }
        // RFC 1112, section 6.4
        let [_, b, c, d] = ip.octets();
        ip.is_multicast()
            .then_some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    fn encapsulate(&self, packet: &mut Packet, destination: [u8; 6]) -> bool {
        if !packet.push(ether::HEADER) {
            return false;
        }
        packet.set_mac_offset(0);
        ether::Repr {
            destination,
            source: self.mac,
            ethertype: ether::IPV4,
        }
        .emit(packet.data_mut());
        true
    }

    fn ip_packets(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let mut run = ctx.batch();
        for mut packet in batch.drain_front(usize::MAX) {
            let ip = Ipv4Addr::from(packet.anno().dst_ip());
            if ip.is_unspecified() {
                if self.drops == 0 {
                    let line = format!("{}: packet without a destination annotation", ctx.name());
                    ctx.print(&line);
                }
                self.drops += 1;
            } else if let Some(mac) = self.resolve(ctx, ip) {
                if self.encapsulate(&mut packet, mac) {
                    run.push_back(packet);
                } else {
                    self.drops += 1;
                }
            } else {
                let now = ctx.now_ns();
                self.table.wait(ip, packet, now);
                if self.table.may_query(ip, now) {
                    self.query(ctx, ip, ether::BROADCAST);
                }
            }
        }
        ctx.push(0, run);
        ctx.recycle(batch);
    }

    fn reply(&mut self, ctx: &mut Context<'_>, frame: &[u8]) {
        let is_arp = ether::Repr::parse(frame).is_ok_and(|h| h.ethertype == ether::ARP);
        let Some(Ok(reply)) = is_arp.then(|| arp::Repr::parse(&frame[ether::HEADER..])) else {
            return;
        };
        self.responses += 1;
        if reply.operation == arp::REPLY && !ether::is_group(reply.sender_mac) {
            self.learn(ctx, reply.sender_ip, reply.sender_mac);
        }
    }

    fn learn(&mut self, ctx: &mut Context<'_>, ip: Ipv4Addr, mac: [u8; 6]) {
        let mut ready = self.table.insert(ip, mac, ctx.now_ns());
        ready.retain_mut(|packet| self.encapsulate(packet, mac));
        ctx.push(0, ready);
    }
}

impl Element for ARPQuerier {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        if port == 0 {
            return self.ip_packets(ctx, batch);
        }
        for packet in batch.drain_front(usize::MAX) {
            self.reply(ctx, packet.data());
        }
        ctx.recycle(batch);
    }

    fn read(&self, view: &View<'_>, handler: &str, _param: &str) -> Text {
        let drops = self.drops + self.table.drops;
        match handler {
            "table" => Ok(self.table.text(view.now_ns)),
            "count" => text(self.table.by_ip.len()),
            "length" => text(self.table.waiting),
            "queries" => text(self.queries),
            "responses" => text(self.responses),
            "drops" => text(drops),
            "stats" => text(format!(
                "{drops} packets killed\n{} ARP queries sent\n",
                self.queries
            )),
            "ipaddr" => text(self.ip),
            "broadcast" => text(self.broadcast.unwrap_or(Ipv4Addr::BROADCAST)),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "ipaddr" => on_value(view, value, |me: &mut Self, ip, _| me.ip = ip),
            "clear" => on_write(|me: &mut Self, _| {
                for ip in me.table.by_ip.keys().copied().collect::<Vec<_>>() {
                    me.table.remove(ip);
                }
            }),
            "delete" => on_value(view, value, |me: &mut Self, ip, _| me.table.remove(ip)),
            "insert" => match split_words(value).as_slice() {
                [ip, mac] => {
                    let (ip, mac) = (view.parse::<Ipv4Addr>(ip)?, view.parse::<EtherAddr>(mac)?);
                    Ok(Change::of(move |me: &mut Self, ctx| {
                        me.learn(ctx, ip, mac.0)
                    }))
                }
                _ => Err(HandlerError::rejected("expected \"IP ETH\"")),
            },
            _ => undeclared(handler),
        }
    }

    /// What was learned stays known; packets that wait go on waiting.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        if (old.ip, old.mac) == (self.ip, self.mac) && self.table.by_ip.is_empty() {
            self.table.take_from(&mut old.table);
        }
    }
}
