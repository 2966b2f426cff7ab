// SPDX-License-Identifier: Apache-2.0
//! Numbers TCP and UDP flows: every packet gets the number of its flow as its aggregate annotation.
//!
//! # Synopsis
//! `AggregateIPFlows([TCP_TIMEOUT, TCP_DONE_TIMEOUT, UDP_TIMEOUT, FRAGMENT_TIMEOUT, REAP, ICMP, FRAGMENTS, CAPACITY])`: numbers begin with 1. The
//! paint annotation is 0 for packets that go as the flow's first one did and 1 for the others. A flow without packets for
//! TCP_TIMEOUT (default 24 hours), TCP_DONE_TIMEOUT (30 s; both sides have sent FIN) or UDP_TIMEOUT (1 minute) is over, and so is one
//! that is done when a SYN comes; a later packet has another number. Times are those of packets that have one. REAP (20 minutes): how
//! often flows that are over are removed. With ICMP (default false) ICMP errors get the number of the packet they quote, and its paint plus 2.
//! With FRAGMENTS (default: whether it is push) later fragments wait for the first one, at most FRAGMENT_TIMEOUT (30 s), and packets
//! between the same addresses wait behind them; at most 128 packets wait. CAPACITY (default: what the router allows): the most flows
//! that are known; when there are more the one that would be over first is forgotten.
//! # Ports
//! 1/1-2, agnostic. Packets need a marked IP header. Others than TCP and UDP, those too short for ports, and fragments of no known
//! flow leave by the second output, or are dropped.
//! # Handlers
//! * `clear` (write): forgets all flows and lets what waits go. `size` (read): flows that are known.
//! # Differences from Click
//! TRACEINFO and SOURCE are missing. A fragment leaves as soon as its first fragment is known, and
//! at most 128 packets wait, by the router's clock. Other elements are not notified of new flows.
//! # Example
//! `FromDump(in.pcap, STOP true) -> af :: AggregateIPFlows -> AggregateCounter -> Discard; DriverManager(pause, write af.clear);`
use alloc::collections::VecDeque;

use click_core::anno;
use click_core::sort;
use click_wire::ipv4;

use crate::flow_key::{Key, UDP_MAP, Whole, is_fragment, key_of, quoted, whole_of};
use crate::flows::{At, Flow, FlowTable, Keys, MAX_FLOWS, Times};
use crate::prelude::*;
use crate::rewrite::kind::is_later_fragment;

pub static ELEMENT: Class = Class {
    name: "AggregateIPFlows",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        keyword("TCP_TIMEOUT"),
        keyword("TCP_DONE_TIMEOUT"),
        keyword("UDP_TIMEOUT"),
        keyword("FRAGMENT_TIMEOUT"),
        keyword("REAP"),
        keyword("ICMP"),
        keyword("FRAGMENTS"),
        keyword("CAPACITY"),
    ],
    handlers: &[
        command("clear", AggregateIPFlows::set_clear),
        read("size", |me, _| text(me.table.len())),
    ],
    build,
    ..Class::DEFAULT
};

const SECOND_NS: u64 = 1_000_000_000;
/// Packets that wait for a first fragment, and first fragments that are remembered.
const WAITING: usize = 128;
/// Flows that are looked at for one batch, when it is time, for those that are over.
const REAPED: usize = 64;
/// A table with this number of flows is beyond the cache.
const FAR: usize = 4096;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
/// Flags of a flow both sides of which have ended.
const DONE: u8 = 3;

fn build(a: &mut Args<'_>) -> Built {
    let mut span = |name: &str, default_s: u64| {
        let default = Span {
            ns: default_s * SECOND_NS,
        };
        Some(a.or(name, default)?.ns)
    };
    let timeouts = [
        span("TCP_TIMEOUT", 86_400),
        span("TCP_DONE_TIMEOUT", 30),
        span("UDP_TIMEOUT", 60),
    ];
    let (fragment_ns, reap_ns) = (span("FRAGMENT_TIMEOUT", 30), span("REAP", 1200));
    let (errors, fragments) = (a.or("ICMP", false), a.opt("FRAGMENTS"));
    let most = a.environment().limits.flows.min(MAX_FLOWS);
    let capacity = a.or("CAPACITY", most)?;
    if !(1..=most).contains(&capacity) {
        a.error(
            "CAPACITY",
            format!("{capacity} is out of range, it is 1 to {most}"),
        );
        return None;
    }
    let mut table = FlowTable::new(capacity, Keys([1; 4]));
    table.add_owners(1)?;
    let [tcp, done, udp] = timeouts;
    let mut times = |timeout_ns: Option<u64>| {
        let rest = table.add_list(timeout_ns?, false)?;
        Some(Times {
            guaranteed: None,
            rest,
        })
    };
    let times = [times(tcp)?, times(done)?, times(udp)?];
    Some(Box::new(AggregateIPFlows {
        table,
        times,
        fragment_ns: fragment_ns?,
        reap_ns: reap_ns?,
        errors: errors?,
        fragments: fragments?,
        next: 1,
        reap_at_ns: 0,
        clock_ns: 0,
        waiting: VecDeque::new(),
        firsts: VecDeque::new(),
        keys: Vec::new(),
        ways: Vec::new(),
    }))
}

/// The number and direction of a flow.
type Mark = (u32, u8);

/// A packet that waits.
struct Waiting {
    whole: Whole,
    mark: Option<Mark>,
    until_ns: u64,
    packet: Packet,
}

struct AggregateIPFlows {
    table: FlowTable,
    /// Timeouts of TCP flows, of finished ones, of UDP flows.
    times: [Times; 3],
    fragment_ns: u64,
    reap_ns: u64,
    errors: bool,
    fragments: Option<bool>,
    next: u32,
    reap_at_ns: u64,
    /// The latest time of a packet.
    clock_ns: u64,
    waiting: VecDeque<Waiting>,
    firsts: VecDeque<(Whole, Mark)>,
    keys: Vec<Option<(u64, Key)>>,
    ways: Vec<usize>,
}

fn set_mark(packet: &mut Packet, (number, paint): Mark) {
    packet.anno_mut().set_u32(anno::AGGREGATE, number);
    packet.anno_mut().set_u8(anno::PAINT, paint);
}

impl AggregateIPFlows {
    fn key(&self, packet: &Packet) -> Option<Key> {
        let bytes = packet
            .network()
            .filter(|bytes| bytes.len() >= ipv4::HEADER)?;
        match self.errors && bytes[9] == ipv4::ICMP && !is_later_fragment(bytes) {
            true => key_of(quoted(bytes)?, 2),
            false => key_of(bytes, 0),
        }
    }

    /// True if a known flow is over, so that its number does not count any more.
    fn is_over(&self, at: At, key: Key, now_ns: u64) -> bool {
        let done = self.table.flow(at).flags == DONE && key.flags & SYN != 0;
        done || self.table.end_ns(at.slot()) < now_ns
    }

    fn open(&mut self, key: Key, now_ns: u64) -> Option<At> {
        let mut flow = Flow::new(key.map, [key.id, key.id.reverse()]);
        flow.number = self.next;
        self.next = self.next.wrapping_add(1).max(1);
        self.table.insert(
            flow,
            self.times[if key.map == UDP_MAP { 2 } else { 0 }],
            now_ns,
        )
    }

    /// The mark of a packet.
    #[inline]
    fn mark(&mut self, hash: u64, key: Key, now_ns: u64) -> Option<Mark> {
        let known = self.table.find(hash, &key.id, key.map);
        let at = match known {
            Some(at) if self.is_over(at, key, now_ns) => {
                self.table.remove(at.slot());
                self.open(key, now_ns)?
            }
            Some(at) => at,
            None => self.open(key, now_ns)?,
        };
        let flow = self.table.flow_mut(at);
        let side = u8::from(at.is_reply() && flow.ids[0] != flow.ids[1]);
        flow.flags = match key.flags {
            flags if flags & RST != 0 => DONE,
            flags if flags & FIN != 0 => flow.flags | 1 << side,
            flags if flags & SYN != 0 => 0,
            _ => flow.flags,
        };
        let class = match (key.map, flow.flags) {
            (UDP_MAP, _) => 2,
            (_, DONE) => 1,
            _ => 0,
        };
        let mark = (flow.number, key.paint + side);
        self.table.touch(at, self.times[class], now_ns);
        Some(mark)
    }

    /// Gives a packet its mark and returns its way; `None` if it has to wait.
    fn pass(
        &mut self,
        ctx: &Context<'_>,
        packet: &mut Packet,
        key: Option<(u64, Key)>,
    ) -> Option<u16> {
        let packet_ns = match packet.timestamp_ns() {
            0 => ctx.now_ns(),
            ns => ns,
        };
        self.clock_ns = self.clock_ns.max(packet_ns);
        let mark = key.and_then(|(hash, key)| self.mark(hash, key, packet_ns));
        if let Some(mark) = mark {
            set_mark(packet, mark);
        }
        let waits =
            self.fragments == Some(true) && (!self.waiting.is_empty() || is_fragment(packet));
        match (waits, mark) {
            (true, _) => self.pass_fragment(packet, mark),
            (false, Some(_)) => Some(0),
            (false, None) => Some(1),
        }
    }

    /// The same for a packet that is a fragment, or may have to wait behind one.
    fn pass_fragment(&mut self, packet: &mut Packet, mark: Option<Mark>) -> Option<u16> {
        let Some(whole) = whole_of(packet) else {
            return Some(if mark.is_some() { 0 } else { 1 });
        };
        let first = self
            .firsts
            .iter()
            .find(|(w, _)| *w == whole)
            .map(|(_, mark)| *mark);
        if let (true, None, Some(mark)) = (is_fragment(packet), first, mark) {
            self.remember(whole, mark);
        }
        if mark.is_none() {
            packet.anno_mut().set_u32(anno::AGGREGATE, 0);
        }
        if self.waiting.iter().any(|w| w.whole.is_beside(&whole)) {
            return None;
        }
        let mark = mark.or_else(|| first.filter(|_| is_fragment(packet)));
        set_mark(packet, mark?);
        Some(0)
    }

    /// Remembers a first fragment, and gives its mark to those that wait for it.
    fn remember(&mut self, whole: Whole, mark: Mark) {
        if self.firsts.len() >= WAITING {
            self.firsts.pop_front();
        }
        self.firsts.push_back((whole, mark));
        for waiting in self.waiting.iter_mut().filter(|w| w.whole == whole) {
            waiting.mark = Some(mark);
        }
    }

    /// Lets a packet wait.
    fn wait(&mut self, ctx: &mut Context<'_>, packet: Packet) {
        let Some(whole) = whole_of(&packet) else {
            return;
        };
        if self.waiting.len() >= WAITING {
            self.let_go(ctx, 0);
        }
        let marked = packet.anno().u32(anno::AGGREGATE) != 0;
        let mark = (
            packet.anno().u32(anno::AGGREGATE),
            packet.anno().u8(anno::PAINT),
        );
        let until_ns = ctx.now_ns().saturating_add(self.fragment_ns);
        self.waiting.push_back(Waiting {
            whole,
            mark: marked.then_some(mark),
            until_ns,
            packet,
        });
        self.release(ctx);
        if let Some(first) = self.waiting.front() {
            ctx.set_timer(first.until_ns);
        }
    }

    /// Sends a packet that waited.
    fn let_go(&mut self, ctx: &mut Context<'_>, n: usize) {
        let Some(Waiting {
            mark, mut packet, ..
        }) = self.waiting.remove(n)
        else {
            return;
        };
        match mark {
            Some(mark) => {
                set_mark(&mut packet, mark);
                ctx.push_one(0, packet);
            }
            None => ctx.push_one(1, packet),
        }
    }

    /// Lets those go whose mark is known and that have none to wait for.
    fn release(&mut self, ctx: &mut Context<'_>) {
        let mut n = 0;
        while let Some(waiting) = self.waiting.get(n) {
            let mut before = self.waiting.iter().take(n);
            let free = waiting.mark.is_some() && !before.any(|w| w.whole.is_beside(&waiting.whole));
            match free {
                true => self.let_go(ctx, n),
                false => n += 1,
            }
        }
    }

    fn look_ahead(&mut self, batch: &Batch) {
        let mut keys = core::mem::take(&mut self.keys);
        keys.clear();
        keys.extend(batch.iter().map(|packet| {
            let key = self.key(packet)?;
            Some((self.table.hash(&key.id, key.map), key))
        }));
        if self.table.len() >= FAR && batch.len() > 1 {
            self.table
                .warm(keys.iter().flatten().map(|(hash, _)| *hash));
        }
        self.keys = keys;
    }

    /// Marks a batch; returns true if some packets have to wait.
    fn mark_all(&mut self, ctx: &Context<'_>, batch: &mut Batch) -> bool {
        self.look_ahead(batch);
        batch.uniqueify();
        let (keys, mut ways) = (
            core::mem::take(&mut self.keys),
            core::mem::take(&mut self.ways),
        );
        ways.clear();
        let mut all = true;
        for (packet, key) in batch.iter_mut().zip(&keys) {
            let way = self.pass(ctx, packet, *key);
            all &= way.is_some();
            ways.push(way.map_or(DROPPED, usize::from));
            if !all {
                break;
            }
        }
        (self.keys, self.ways) = (keys, ways);
        all
    }

    fn reap(&mut self) {
        if self.clock_ns >= self.reap_at_ns && self.table.reap(self.clock_ns, REAPED) {
            self.reap_at_ns = self.clock_ns.saturating_add(self.reap_ns);
        }
    }
}

impl InPlace for AggregateIPFlows {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let key = self.key(packet);
        let key = key.map(|key| (self.table.hash(&key.id, key.map), key));
        let way = self.pass(ctx, packet, key);
        self.reap();
        way.map_or(1, usize::from)
    }
}

impl AggregateIPFlows {
    fn set_clear(&self, _view: &View<'_>, _value: &str) -> Result<Change, HandlerError> {
        on_write(self, |me, ctx| {
            while !me.waiting.is_empty() {
                me.let_go(ctx, 0);
            }
            me.firsts.clear();
            me.table.clear();
        })
    }
}

impl Element for AggregateIPFlows {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        pull_in_place(self, ctx, max)
    }

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let keys = Keys([ctx.random(), ctx.random(), ctx.random(), ctx.random()]);
        self.table.set_keys(keys);
        let pull = ctx.input_is_pull(0);
        if pull && self.fragments == Some(true) {
            return Err("FRAGMENTS: packets can wait only where they are pushed".to_string());
        }
        self.fragments.get_or_insert(!pull);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        loop {
            let all = self.mark_all(ctx, &mut batch);
            let ways = core::mem::take(&mut self.ways);
            if all {
                ctx.push_runs(batch, &ways);
                self.ways = ways;
                break;
            }
            // what came before the waiting packet continues; what came after it is judged again
            let mut before = ctx.batch();
            before.extend(batch.drain_front(ways.len() - 1));
            ctx.push_runs(before, &ways[..ways.len() - 1]);
            self.ways = ways;
            if let Some(packet) = batch.pop_front() {
                self.wait(ctx, packet);
            }
        }
        self.reap();
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        while self
            .waiting
            .front()
            .is_some_and(|w| w.until_ns <= ctx.now_ns())
        {
            self.let_go(ctx, 0);
            self.release(ctx);
        }
        if let Some(first) = self.waiting.front() {
            ctx.set_timer(first.until_ns);
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            let mut known: Vec<_> = old
                .table
                .iter()
                .map(|(slot, flow)| (old.table.touched_ns(slot), *flow))
                .collect();
            sort::by_key(&mut known, |(touched_ns, _)| *touched_ns);
            for (touched_ns, flow) in known {
                let class = if flow.map == UDP_MAP {
                    2
                } else {
                    usize::from(flow.flags == DONE)
                };
                self.table.insert(flow, self.times[class], touched_ns);
            }
            self.next = old.next;
        }
    }
}
