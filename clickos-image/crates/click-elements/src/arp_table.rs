// SPDX-License-Identifier: Apache-2.0
//! ARP entries in the order of their age, and the packets that wait for an answer. Bounded in both.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::class::Arg;
use click_core::memory::Growth;
use click_core::text::split_words;
use click_core::{Limits, listing};
use click_wire::ether;

use crate::carried;
use crate::prelude::*;

/// Least time between two queries for an address; it grows after ten queries without an answer.
pub const QUERY_INTERVAL_NS: u64 = 100_000_000;
const PATIENT_INTERVAL_NS: u64 = 2_000_000_000;
const PATIENT_QUERIES: u8 = 10;
const SECOND: u64 = 1_000_000_000;

/// The state of an address.
#[derive(Default)]
pub struct Entry {
    pub mac: Option<[u8; 6]>,
    /// When it was last confirmed, or first asked for.
    pub live_ns: u64,
    /// Where it is among entries of one age.
    rank: i64,
    queried_ns: Option<u64>,
    /// Queries since the last answer.
    queries: u8,
    pub waiting: Batch,
}

/// The limits of a table.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long an entry is good; 0 is forever.
    pub timeout_ns: u64,
    /// Packets that wait.
    pub packets: usize,
    /// The table drops 1/n of the packets when there are more.
    pub slim_factor: usize,
    /// Packets that wait for one address.
    pub packets_per_entry: usize,
    /// Entries.
    pub entries: usize,
}

/// Keywords of `Bounds`.
pub const KEYWORDS: [Arg; 5] = [
    keyword("CAPACITY"),
    keyword("ENTRY_CAPACITY"),
    keyword("ENTRY_PACKET_CAPACITY"),
    keyword("CAPACITY_SLIM_FACTOR"),
    keyword("TIMEOUT"),
];

impl Bounds {
    /// Reads the arguments in `KEYWORDS`.
    pub fn argument(a: &mut Args<'_>) -> Option<Self> {
        let (packets, slim) = (a.or("CAPACITY", 2048), a.or("CAPACITY_SLIM_FACTOR", 2usize));
        let per_entry = a.or("ENTRY_PACKET_CAPACITY", 0);
        let (entries, timeout) = (
            a.or("ENTRY_CAPACITY", 0),
            a.or("TIMEOUT", Span { ns: 300 * SECOND }),
        );
        let slim_factor = slim?;
        if slim_factor == 0 {
            a.error("CAPACITY_SLIM_FACTOR", "0 is out of range, the least is 1");
        }
        let limits = &a.environment().limits;
        Some(Self {
            timeout_ns: timeout?.ns,
            packets: or_unlimited(packets?).min(limits.waiting_packets()),
            slim_factor,
            packets_per_entry: or_unlimited(per_entry?),
            entries: or_unlimited(entries?).min(limits.table_entries),
        })
    }
}

/// 0 means that there is no limit.
fn or_unlimited(n: usize) -> usize {
    if n == 0 { usize::MAX } else { n }
}

/// Entries in the order of their age, and the packets that wait.
pub struct Table {
    by_ip: BTreeMap<Ipv4Addr, Entry>,
    by_age: BTreeSet<(u64, i64, Ipv4Addr)>,
    /// Ranks given out after others, and in front of others.
    last_rank: i64,
    first_rank: i64,
    waiting: usize,
    bounds: Bounds,
    growth: Growth,
    drops: u64,
}

/// A table that several elements may use.
pub type Shared = Rc<RefCell<Table>>;

impl Table {
    /// An empty table.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            by_ip: BTreeMap::new(),
            by_age: BTreeSet::new(),
            last_rank: 0,
            first_rank: 0,
            waiting: 0,
            bounds,
            growth: Growth::default(),
            drops: 0,
        }
    }

    /// Takes over everything `old` holds.
    pub fn take_from(&mut self, old: &mut Self) {
        let empty = Self::new(old.bounds);
        let bounds = self.bounds;
        *self = Self {
            bounds,
            ..core::mem::replace(old, empty)
        };
    }

    pub fn is_empty(&self) -> bool {
        self.by_ip.is_empty()
    }

    /// The address that is known for `ip`, and since when.
    pub fn known(&self, ip: Ipv4Addr, now: u64) -> Option<([u8; 6], u64)> {
        let entry = self.by_ip.get(&ip)?;
        let fresh = !self.is_expired(entry.live_ns, now);
        entry.mac.filter(|_| fresh).map(|mac| (mac, entry.live_ns))
    }

    /// True if there is an entry for `ip`.
    pub fn contains(&self, ip: Ipv4Addr) -> bool {
        self.by_ip.contains_key(&ip)
    }

    fn is_expired(&self, live_ns: u64, now: u64) -> bool {
        let timeout = self.bounds.timeout_ns;
        timeout > 0 && live_ns.saturating_add(timeout) < now
    }

    pub fn remove(&mut self, ip: Ipv4Addr) {
        if let Some(entry) = self.by_ip.remove(&ip) {
            self.by_age.remove(&(entry.live_ns, entry.rank, ip));
            self.waiting -= entry.waiting.len();
            self.drops += entry.waiting.len() as u64;
        }
    }

    pub fn clear(&mut self) {
        while let Some((_, _, ip)) = self.by_age.first().copied() {
            self.remove(ip);
        }
    }

    /// Removes entries that are too old.
    pub fn expire(&mut self, now: u64) {
        while let Some((live_ns, _, ip)) = self.by_age.first().copied() {
            if !self.is_expired(live_ns, now) {
                break;
            }
            self.remove(ip);
        }
    }

    /// When to look for old entries again.
    pub fn next_expiry(&self, now: u64) -> Option<u64> {
        let timeout = self.bounds.timeout_ns;
        (timeout > 0).then(|| now.saturating_add(timeout.saturating_add(SECOND)))
    }

    /// The entry of an address; when the table is full the oldest one makes room.
    fn ensure(&mut self, ip: Ipv4Addr, now: u64) -> &mut Entry {
        if !self.by_ip.contains_key(&ip) {
            let most = match self.growth.takes_entry() {
                true => self.bounds.entries,
                false => self.by_ip.len(),
            };
            while self.by_ip.len() >= most.max(1) {
                let Some((_, _, oldest)) = self.by_age.first().copied() else {
                    break;
                };
                self.remove(oldest);
            }
            self.last_rank += 1;
            self.by_age.insert((now, self.last_rank, ip));
        }
        let rank = self.last_rank;
        self.by_ip.entry(ip).or_insert_with(|| Entry {
            live_ns: now,
            rank,
            ..Entry::default()
        })
    }

    /// Gives an entry another age; `rank` says where it is among entries of that age.
    fn set_age(&mut self, ip: Ipv4Addr, live_ns: u64, rank: i64) {
        if let Some(entry) = self.by_ip.get_mut(&ip) {
            self.by_age.remove(&(entry.live_ns, entry.rank, ip));
            (entry.live_ns, entry.rank) = (live_ns, rank);
            self.by_age.insert((live_ns, rank, ip));
        }
    }

    /// Notes the address of a host; returns the packets that waited for it.
    pub fn insert(&mut self, ip: Ipv4Addr, mac: [u8; 6], now: u64) -> Batch {
        let entry = self.ensure(ip, now);
        (entry.mac, entry.queried_ns, entry.queries) = (Some(mac), None, 0);
        let ready = core::mem::take(&mut entry.waiting);
        self.waiting -= ready.len();
        self.last_rank += 1;
        self.set_age(ip, now, self.last_rank);
        ready
    }

    /// Lets packets go on waiting.
    fn put_back(&mut self, ip: Ipv4Addr, mut waiting: Batch) {
        if let Some(entry) = self.by_ip.get_mut(&ip) {
            self.waiting += waiting.len();
            entry.waiting.append(&mut waiting);
        }
    }

    /// Lets a packet wait for an address; returns whether to ask for it.
    pub fn wait(&mut self, ip: Ipv4Addr, packet: Packet, now: u64) -> bool {
        let live_ns = self.ensure(ip, now).live_ns;
        // an address that is asked for is no older than the oldest that are good
        if self.is_expired(live_ns, now) {
            self.first_rank -= 1;
            self.set_age(ip, now - self.bounds.timeout_ns, self.first_rank);
        }
        let entry = self.by_ip.get(&ip).expect("ensured above");
        if entry.waiting.len() >= self.bounds.packets_per_entry {
            self.drops += 1;
            return false;
        }
        self.waiting += 1;
        if self.waiting > self.bounds.packets {
            self.slim(now);
        }
        self.ensure(ip, now).waiting.push_back(packet);
        self.may_query(ip, now)
    }

    /// Makes room for packets: those for the oldest entries go.
    fn slim(&mut self, now: u64) {
        self.expire(now);
        let Bounds {
            packets,
            slim_factor,
            ..
        } = self.bounds;
        let kept = (packets - packets / slim_factor).max(1);
        let ages = self.by_age.iter();
        let oldest: Vec<_> = ages.map(|(_, _, ip)| *ip).collect();
        for ip in oldest {
            let excess = self.waiting.saturating_sub(kept);
            let Some(entry) = self.by_ip.get_mut(&ip).filter(|_| excess > 0) else {
                break;
            };
            let dropped = entry.waiting.drain_front(excess).count();
            self.waiting -= dropped;
            self.drops += dropped as u64;
        }
    }

    /// True if it is time to ask for an address (again); if so, that is noted.
    pub fn may_query(&mut self, ip: Ipv4Addr, now: u64) -> bool {
        let entry = self.ensure(ip, now);
        let interval = match entry.queries {
            PATIENT_QUERIES.. => PATIENT_INTERVAL_NS,
            _ => QUERY_INTERVAL_NS,
        };
        let due = entry
            .queried_ns
            .is_none_or(|at| now.saturating_sub(at) >= interval);
        if due {
            entry.queried_ns = Some(now);
            entry.queries = entry.queries.saturating_add(1);
        }
        due
    }

    fn text(&self, limits: &Limits, now: u64) -> String {
        let line = |(live, _, ip): &(u64, i64, Ipv4Addr)| {
            let known = u8::from(self.known(*ip, now).is_some());
            let mac = EtherAddr(self.by_ip[ip].mac.unwrap_or(ether::BROADCAST));
            let age_us = now.saturating_sub(*live) / 1000;
            format!(
                "{ip} {known} {mac} {}.{:06}\n",
                age_us / 1_000_000,
                age_us % 1_000_000
            )
        };
        listing(limits, self.by_age.iter().map(line))
    }

    /// Packets that were dropped while they waited, or because too many did.
    pub fn drops(&self) -> u64 {
        self.drops
    }
}

/// The handler `table`.
pub const fn table<T: Part<Shared>>() -> Handler<T> {
    read("table", |me, view| {
        let limits = &view.arg_context().environment.limits;
        Ok(me.part().borrow().text(limits, view.now_ns()))
    })
}

/// The first line of a table's state.
const HEAD: &str = "arp 1";

/// The handler `state`: the addresses that are known.
pub const fn state<T: Part<Shared>>() -> Handler<T> {
    read_command(
        "state",
        |me, view| Ok(me.part().borrow().state_text(view)),
        |me, _, value| {
            let known = carried::parse(HEAD, value, |words| {
                let [ip, mac, age_ms] = words else {
                    return None;
                };
                let ip: Ipv4Addr = ip.parse().ok()?;
                Some((ip, carried::mac(mac)?, carried::number(age_ms)?))
            })?;
            on_write(me, move |me, ctx| {
                let mut table = me.part_mut().borrow_mut();
                for (ip, mac, age_ms) in known {
                    let at_ns = carried::at_ns(ctx.now_ns(), age_ms);
                    let ready = table.insert(ip, mac, at_ns);
                    table.put_back(ip, ready);
                }
            })
        },
    )
}

impl Table {
    fn state_text(&self, view: &View<'_>) -> String {
        let line = |(live_ns, _, ip): &(u64, i64, Ipv4Addr)| {
            let mac = EtherAddr(self.by_ip[ip].mac?);
            let age_ms = carried::age_ms(view.now_ns(), *live_ns);
            Some(format!("{ip} {mac} {age_ms}"))
        };
        carried::render(HEAD, view, self.by_age.iter().rev().filter_map(line))
    }
}

/// The handler `count`.
pub const fn count<T: Part<Shared>>() -> Handler<T> {
    read("count", |me, _| text(me.part().borrow().by_ip.len()))
}

/// The handler `length`.
pub const fn length<T: Part<Shared>>() -> Handler<T> {
    read("length", |me, _| text(me.part().borrow().waiting))
}

/// The handler `delete`.
pub const fn delete<T: Part<Shared>>() -> Handler<T> {
    edit(
        "delete",
        set!(|me, ip, _| {
            me.part_mut().borrow_mut().remove(ip);
        }),
    )
}

/// The value of a handler `insert`: `IP ETH`.
pub fn insertion(view: &View<'_>, value: &str) -> Result<(Ipv4Addr, [u8; 6]), HandlerError> {
    match split_words(value).as_slice() {
        [ip, mac] => Ok((view.parse(ip)?, view.parse::<EtherAddr>(mac)?.0)),
        _ => Err(HandlerError::rejected(expected("IP ETH", value))),
    }
}

/// The element that only holds a table.
pub struct ARPTable {
    pub table: Shared,
}

part!(ARPTable, table: Shared);

impl ARPTable {
    /// Handlers of elements that only hold a table.
    pub const HANDLERS: [Handler<Self>; 8] = [
        table(),
        state(),
        count(),
        length(),
        read("drops", |me, _| text(me.table.borrow().drops())),
        edit("insert", Self::insert),
        delete(),
        command("clear", run!(|me, _| me.table.borrow_mut().clear())),
    ];

    fn insert(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let (ip, mac) = insertion(view, value)?;
        Ok(Change::of(move |me: &mut Self, ctx| {
            let mut table = me.table.borrow_mut();
            // the element that put packets there sends them
            let waiting = table.insert(ip, mac, ctx.now_ns());
            table.put_back(ip, waiting);
        }))
    }
}

impl Element for ARPTable {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.run_timer(ctx);
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let mut table = self.table.borrow_mut();
        table.expire(ctx.now_ns());
        if let Some(at) = table.next_expiry(ctx.now_ns()) {
            ctx.set_timer(at);
        }
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            if ctx.is_reconfigured() {
                // ARPQueriers share it
                let bounds = self.table.borrow().bounds;
                self.table = Rc::clone(&old.table);
                self.table.borrow_mut().bounds = bounds;
                return;
            }
            self.table
                .borrow_mut()
                .take_from(&mut old.table.borrow_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_core::PacketPool;

    fn table(entries: usize, packets: usize) -> Table {
        Table::new(Bounds {
            timeout_ns: 100,
            packets,
            slim_factor: 2,
            packets_per_entry: 3,
            entries,
        })
    }

    fn ip(n: u32) -> Ipv4Addr {
        Ipv4Addr::from(n)
    }

    #[test]
    fn the_oldest_entry_makes_room() {
        let mut t = table(3, 9);
        for n in 1..=4 {
            t.insert(ip(n), [1; 6], u64::from(n));
        }
        assert_eq!(t.by_ip.len(), 3);
        assert_eq!(
            (t.known(ip(1), 5), t.known(ip(4), 5)),
            (None, Some(([1; 6], 4)))
        );
        assert_eq!(t.known(ip(4), 104), Some(([1; 6], 4)));
        assert_eq!(t.known(ip(4), 105), None, "entries expire");
        assert_eq!(t.by_age.len(), 3);
        t.expire(104);
        assert_eq!(t.by_ip.len(), 1);
    }

    #[test]
    fn waiting_packets_are_bounded_and_come_out_in_order() {
        let (mut t, mut pool) = (table(9, 4), PacketPool::new(100));
        for n in 1..=5u8 {
            let packet = pool.packet_from(&[n]).unwrap();
            t.wait(ip(u32::from(n % 2) + 1), packet, 1);
        }
        // the fifth, for entry 2, was one too many: half of four stay, the youngest entry's
        assert_eq!((t.waiting, t.drops, pool.in_use()), (2, 3, 2));
        let ready = t.insert(ip(2), [2; 6], 2).into_iter();
        assert_eq!(ready.map(|p| p.data()[0]).collect::<Vec<_>>(), [5]);
        t.clear();
        assert_eq!((t.waiting, pool.in_use()), (0, 0));
    }

    #[test]
    fn queries_are_limited() {
        let mut t = table(9, 9);
        assert!(t.may_query(ip(1), 5));
        assert!(!t.may_query(ip(1), 5 + QUERY_INTERVAL_NS - 1));
        let asked = (1..100).filter(|n| t.may_query(ip(1), 5 + n * QUERY_INTERVAL_NS));
        // nine more in the first second, then one every two seconds
        assert_eq!(asked.count(), 9 + 4);
    }
}
