// SPDX-License-Identifier: Apache-2.0
//! Puts Ethernet headers in front of IPv6 packets; finds the addresses with neighbor discovery.
//!
//! # Synopsis
//! `IP6NDSolicitor(IP, ETH [, ANNOUNCE])`: this host's addresses, mandatory. With ANNOUNCE (default false) the
//! element announces them to all nodes (RFC 4861, section 7.2.6). It does so at the start, after 2 and 4 s, and then each minute.
//! # Ports
//! 2/1-2, push. Input 0 takes IPv6 packets with their destination annotation set, input 1
//! frames with neighbor advertisements and solicitations. A solicitation says its sender's addresses (RFC 4861, section 7.2.3). Output 0 sends frames; questions go to output 1 if it is
//! connected. One packet waits for an address that is not known; the next one takes its place, and
//! asks again after a second. At most a sixteenth of the router's packets wait. The element solicits
//! a known address again after a minute and forgets it after two. The table has at most the router's
//! limit of table entries; the oldest address without an answer makes room.
//! # Handlers
//! * `table` (read): address, whether known, Ethernet address. `stats` (read): packets dropped, questions sent. `announce` (write): announces as at the start.
//! # Differences from Click
//! Asks for an address once a second, not for each packet.
//! # Example
//! `c :: Classifier(12/86dd 54/88, -); c -> [1] n :: IP6NDSolicitor(2001:db8::1, vif0) -> ToDevice(0); ip6 -> n;`
use alloc::collections::{BTreeMap, VecDeque};
use core::net::Ipv6Addr;

use click_core::memory::Growth;
use click_core::{Limits, listing};
use click_wire::ether;

use crate::announcements::Schedule;
use crate::ip6::neighbor::{ADVERTISEMENT, ALL_NODES, FRAME, Neighbor, OVERRIDE, SOLICITATION};
use crate::ip6::{Address, ETHERTYPE};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IP6NDSolicitor",
    ports: "2/1-2",
    processing: "h/h",
    flow: "xy/x",
    args: &[mandatory("IP"), mandatory("ETH"), keyword("ANNOUNCE")],
    handlers: &[
        read("table", |me: &mut IP6NDSolicitor, view| {
            Ok(me.table_text(&view.arg_context().environment.limits))
        }),
        read("stats", |me, _| {
            text(format!(
                "{} packets killed\n{} ND Solicitation Message sent\n",
                me.drops, me.queries
            ))
        }),
        command(
            "announce",
            run!(|me, ctx| {
                if let Some(schedule) = &mut me.announced {
                    schedule.restart();
                    me.run_timer(ctx);
                }
            }),
        ),
    ],
    build: |a| {
        let (ip, mac) = (a.need::<Address>("IP"), a.need::<EtherAddr>("ETH"));
        let announces = a.or("ANNOUNCE", false)?;
        Some(Box::new(IP6NDSolicitor {
            ip: ip?,
            announced: (announces && !ip?.0.is_unspecified()).then(Schedule::default),
            mac: mac?.0,
            limit: a.environment().limits.table_entries,
            most_waiting: a.environment().limits.waiting_packets(),
            growth: Growth::default(),
            table: BTreeMap::new(),
            asked: VecDeque::new(),
            waiting: 0,
            drops: 0,
            queries: 0,
        }))
    },
    ..Class::DEFAULT
};

const MINUTE_NS: u64 = 60_000_000_000;
const EXPIRY_NS: u64 = 15_000_000_000;
/// Least time between two questions for an address that is not known (RFC 4861, section 10).
const QUERY_INTERVAL_NS: u64 = 1_000_000_000;

/// The state of an address.
#[derive(Default)]
struct Entry {
    mac: Option<[u8; 6]>,
    /// When it was confirmed, or first asked for.
    live_ns: u64,
    /// True if the element solicited it again since.
    polled: bool,
    /// When it was last asked for while it was not known.
    queried_ns: Option<u64>,
    waiting: Option<Packet>,
}

struct IP6NDSolicitor {
    ip: Address,
    announced: Option<Schedule>,
    mac: [u8; 6],
    limit: usize,
    most_waiting: usize,
    growth: Growth,
    table: BTreeMap<Address, Entry>,
    /// Addresses in the order in which they were first asked for; some are known by now.
    asked: VecDeque<Address>,
    /// Packets that wait.
    waiting: usize,
    drops: u64,
    queries: u64,
}

/// Where questions for an address go (RFC 4291, 2.7.1; RFC 2464, 7).
fn solicited_node(target: Address) -> (Address, [u8; 6]) {
    let [.., d, e, f] = target.0.octets();
    let low = u16::from_be_bytes([e, f]);
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(d), low);
    (Address(group), [0x33, 0x33, 0xff, d, e, f])
}

impl IP6NDSolicitor {
    fn query(&mut self, ctx: &mut Context<'_>, target: Address) {
        let Some(mut packet) = ctx.pool().alloc(FRAME) else {
            return;
        };
        let (destination, to) = solicited_node(target);
        let question = Neighbor {
            kind: SOLICITATION,
            flags: 0,
            source: self.ip,
            destination,
            target,
            link: Some(self.mac),
        };
        question.emit(self.mac, to, packet.data_mut());
        packet.set_mac_offset(0);
        self.queries += 1;
        ctx.push_one(ctx.outputs() - 1, packet);
    }

    /// Announces the address if that is due; returns when it is due next.
    fn announce(&mut self, ctx: &mut Context<'_>) -> Option<u64> {
        let now = ctx.now_ns();
        let schedule = self.announced.as_mut()?;
        if !schedule.is_due(now) {
            return Some(schedule.due_ns());
        }
        schedule.end_round(now);
        let due = schedule.due_ns();
        if let Some(mut packet) = ctx.pool().alloc(FRAME) {
            let words = Neighbor::announcement(self.ip, self.mac);
            words.emit(self.mac, ALL_NODES.1, packet.data_mut());
            packet.set_mac_offset(0);
            ctx.push_one(ctx.outputs() - 1, packet);
        }
        Some(due)
    }

    fn send(&mut self, ctx: &mut Context<'_>, mut packet: Packet, destination: [u8; 6]) {
        let header = ether::Repr {
            destination,
            source: self.mac,
            ethertype: ETHERTYPE,
        };
        if !packet.prepend_mac(&header.bytes()) {
            self.drops += 1;
            return;
        }
        ctx.push_one(0, packet);
    }

    fn ip_packet(&mut self, ctx: &mut Context<'_>, packet: Packet) {
        let (target, now) = (Address::of(&packet), ctx.now_ns());
        if !self.has_room(target) {
            self.drops += 1;
            return;
        }
        if !self.table.contains_key(&target) {
            self.asked.push_back(target);
        }
        let entry = self.table.entry(target).or_default();
        let Some(mac) = entry.mac else {
            entry.live_ns = now;
            return self.wait(ctx, target, packet);
        };
        let old = now.saturating_sub(entry.live_ns) > MINUTE_NS;
        if old && !core::mem::replace(&mut entry.polled, true) {
            self.query(ctx, target);
        }
        self.send(ctx, packet, mac);
    }

    /// Lets a packet wait for an address that is not known, and asks for it if it is time.
    fn wait(&mut self, ctx: &mut Context<'_>, target: Address, packet: Packet) {
        let now = ctx.now_ns();
        let Some(entry) = self.table.get_mut(&target) else {
            return;
        };
        let earlier = entry.waiting.take().is_some();
        self.waiting -= usize::from(earlier);
        let waits = self.waiting < self.most_waiting;
        if waits {
            entry.waiting = Some(packet);
            self.waiting += 1;
        }
        self.drops += u64::from(earlier) + u64::from(!waits);
        let queried = entry.queried_ns;
        if queried.is_none_or(|at| now.saturating_sub(at) >= QUERY_INTERVAL_NS) {
            entry.queried_ns = Some(now);
            self.query(ctx, target);
        }
    }

    /// True if there is an entry for this address, or room for one. In a full table the oldest
    /// address without an answer makes room (RFC 6583).
    fn has_room(&mut self, target: Address) -> bool {
        if self.table.contains_key(&target) {
            return true;
        }
        if self.table.len() < self.limit && self.growth.takes_entry() {
            return true;
        }
        while let Some(oldest) = self.asked.pop_front() {
            let entry = self.table.get(&oldest);
            if entry.is_some_and(|entry| entry.mac.is_none()) {
                self.remove(oldest);
                return true;
            }
        }
        false
    }

    fn remove(&mut self, address: Address) {
        let entry = self.table.remove(&address);
        let waited = entry.is_some_and(|entry| entry.waiting.is_some());
        self.waiting -= usize::from(waited);
        self.drops += u64::from(waited);
    }

    fn heard(&mut self, ctx: &mut Context<'_>, frame: &[u8]) {
        let Some(message) = Neighbor::parse(frame) else {
            return;
        };
        let Some(mac) = message.link.filter(|mac| !ether::is_group(*mac)) else {
            return;
        };
        match message.kind {
            ADVERTISEMENT => {
                let known = self.table.get(&message.target).map(|entry| entry.mac);
                // without OVERRIDE a known address stays (RFC 4861, section 7.2.5)
                let replaces = message.flags & OVERRIDE != 0;
                if known.is_some_and(|old| replaces || old.is_none_or(|old| old == mac)) {
                    self.learn(ctx, message.target, mac);
                }
            }
            SOLICITATION if is_host(message.source) && message.source != self.ip => {
                let asks = message.target == self.ip && self.has_room(message.source);
                if asks || self.table.contains_key(&message.source) {
                    self.learn(ctx, message.source, mac);
                }
            }
            _ => {}
        }
    }

    fn learn(&mut self, ctx: &mut Context<'_>, ip: Address, mac: [u8; 6]) {
        let entry = self.table.entry(ip).or_default();
        (entry.mac, entry.live_ns, entry.polled) = (Some(mac), ctx.now_ns(), false);
        if let Some(packet) = entry.waiting.take() {
            self.waiting -= 1;
            self.send(ctx, packet, mac);
        }
    }
}

fn is_host(address: Address) -> bool {
    !address.0.is_unspecified() && !address.0.is_multicast()
}

impl IP6NDSolicitor {
    fn table_text(&self, limits: &Limits) -> String {
        let line = |(ip, entry): (&Address, &Entry)| {
            let mac = EtherAddr(entry.mac.unwrap_or_default());
            format!("{ip} {} {mac}\n", u8::from(entry.mac.is_some()))
        };
        listing(limits, self.table.iter().map(line))
    }
}

impl Element for IP6NDSolicitor {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.run_timer(ctx);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            match port {
                0 => self.ip_packet(ctx, packet),
                _ => self.heard(ctx, packet.data()),
            }
        }
        ctx.recycle(batch);
    }

    /// Removes old entries, and packets for addresses that no station has; announces.
    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now_ns();
        let mut drops = 0;
        self.table.retain(|_, entry| {
            let good = now.saturating_sub(entry.live_ns) <= 2 * MINUTE_NS;
            drops += usize::from(!good && entry.waiting.is_some());
            good
        });
        self.waiting -= drops;
        self.drops += drops as u64;
        let table = &self.table;
        self.asked
            .retain(|address| table.get(address).is_some_and(|entry| entry.mac.is_none()));
        let expiry = now.saturating_add(EXPIRY_NS);
        let due = self.announce(ctx).unwrap_or(expiry);
        ctx.set_timer(due.min(expiry).max(now));
    }

    /// The table keeps its entries, and packets go on waiting.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        if (old.ip, old.mac) == (self.ip, self.mac) {
            self.table = core::mem::take(&mut old.table);
            self.asked = core::mem::take(&mut old.asked);
            self.waiting = core::mem::take(&mut old.waiting);
            (self.drops, self.queries) = (old.drops, old.queries);
            if self.announced.is_some() && old.announced.is_some() {
                self.announced = old.announced;
            }
        }
    }
}
