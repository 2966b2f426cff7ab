// SPDX-License-Identifier: Apache-2.0
//! The element behind all rewriters.
use alloc::rc::Rc;
use core::cell::RefCell;

use click_wire::ipv4;

use super::clocks::{AllTimeouts, CLOCKS, Clock, Clocks};
use super::header;
use super::kind::{Key, Kind};
use super::pattern::{Draw, Outputs};
use super::pools::Pools;
use super::spec::Spec;
use crate::flows::{At, Delta, Flow, FlowId, FlowTable, Keys, Seconds};
use crate::prelude::*;

/// Flows that are looked at in one go for those that have timed out.
const REAPED_AT_ONCE: usize = 1024;
/// How long it takes until the next ones are looked at.
const REAP_PAUSE_NS: u64 = 1_000_000;
/// A table with this number of flows is beyond the cache.
const FAR: usize = 4096;

/// The output port of a packet that is dropped: no rewriter has that many.
const DROP: u16 = u16::MAX;

/// An input.
pub struct Input {
    pub spec: Spec,
    pub failures: u64,
    /// Choices of its pattern that are taken.
    pub pools: Pools,
}

impl Input {
    /// An input that no packet came to.
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            failures: 0,
            pools: Pools::default(),
        }
    }
}

/// The annotations that packets get.
#[derive(Clone, Copy, Debug)]
pub struct Annos {
    /// The destination annotation becomes the new destination.
    pub destination: bool,
    /// Answers get this annotation of the flow's first packet.
    pub reply: Option<usize>,
}

/// Where the capacity comes from.
#[derive(Clone, Debug)]
pub enum Capacity {
    Own,
    /// From the element of this name, with whose flows ours are together.
    Of(String),
}

/// A rewriter.
pub struct Rewriter {
    pub(super) kind: Kind,
    pub(super) inputs: Vec<Input>,
    pub(super) flows: Rc<RefCell<FlowTable>>,
    pub(super) capacity: Capacity,
    pub(super) timeouts: AllTimeouts,
    pub(super) clocks: Clocks,
    /// Time-outs that handlers have set.
    pub(super) live_ns: [Option<u64>; CLOCKS],
    pub(super) annos: Annos,
    /// Mappings do not depend on the other side (RFC 4787, REQ-1).
    pub(super) endpoints: bool,
    pub(super) reap_ns: u64,
    pub(super) first_owner: u16,
    pub(super) first_map: u16,
    pub(super) outputs: u16,
    pub(super) keys: Vec<Option<(u64, Key)>>,
    pub(super) ways: Vec<usize>,
    /// No flow opens before this time.
    pub(super) blocked_until_ns: u64,
    /// Flows that ended at a merge, or did not come.
    pub(super) merge_lost: u64,
}

impl Rewriter {
    /// True if an owner is one of our inputs.
    pub(super) fn owns(&self, owner: u16) -> bool {
        (self.first_owner..self.first_owner + self.inputs.len() as u16).contains(&owner)
    }

    fn owner(&self, input: usize) -> u16 {
        self.first_owner + u16::try_from(input).expect("ports are counted in 16 bits")
    }

    /// Flows an input has opened.
    pub(super) fn count(&self, input: usize) -> u32 {
        self.flows.borrow().count(self.owner(input))
    }

    /// The mapping of a new flow, or the output of a packet without one.
    fn decide(
        &mut self,
        table: &FlowTable,
        input: usize,
        id: FlowId,
        map: u16,
        draw: Draw<'_>,
    ) -> Result<(FlowId, Outputs), u16> {
        let kind = self.kind;
        let taken = |id: &FlowId| {
            let is_taken = |id: FlowId| table.find_id(&id.reverse(), map).is_some();
            let public = (id.source, id.sport);
            table.inside_of(map, public).is_some() || kind.settle(*id).is_none_or(is_taken)
        };
        let public = table.public_of(map, (id.source, id.sport));
        let as_before = public.map(|(source, sport)| FlowId {
            source,
            sport,
            ..id
        });
        let Input { spec, pools, .. } = &mut self.inputs[input];
        let decided = match spec {
            Spec::Drop | Spec::Named(..) => return Err(DROP),
            Spec::Pass(port) => return Err(*port),
            Spec::Keep(outputs) => Some((id, *outputs)),
            Spec::Bound(outputs, by_address) => {
                let public = (id.destination, id.dport);
                let passes = !*by_address || table.has_peer(map, public, id.source);
                let inside = table.inside_of(map, public).filter(|_| passes);
                inside.map(|(destination, dport)| {
                    let new = FlowId {
                        destination,
                        dport,
                        ..id
                    };
                    (new, *outputs)
                })
            }
            Spec::Mapper(mapper, _) if !mapper.borrow_mut().admits(&id) => None,
            Spec::Pattern(_, outputs) | Spec::Mapper(_, Some(outputs)) if as_before.is_some() => {
                as_before.map(|new| (new, *outputs))
            }
            Spec::Pattern(pattern, outputs) => {
                let pools = table.freed().map(|freed| {
                    pools.follow(freed, |id| pattern.choice_of(id));
                    (map, pools)
                });
                let new = pattern.rewrite(id, draw, taken, pools);
                new.map(|new| (new, *outputs))
            }
            Spec::Mapper(mapper, outputs) => {
                let new = mapper.borrow_mut().rewrite(id, map, draw, &taken);
                new.map(|(new, own)| (new, outputs.unwrap_or(own)))
            }
        };
        decided.ok_or(DROP)
    }

    /// True if an input has opened half of the flows that there may be.
    fn has_many(&self, table: &FlowTable, input: usize) -> bool {
        table.count(self.owner(input)) as usize >= table.capacity().div_ceil(2)
    }

    /// Remembers a new flow; or says which way its packet goes without.
    #[inline(never)]
    fn open(
        &mut self,
        table: &mut FlowTable,
        input: usize,
        key: Key,
        now_ns: u64,
        draw: Draw<'_>,
    ) -> Result<At, u16> {
        let id = self.kind.opening(key.id);
        let map = self.kind.map(self.first_map, key.protocol);
        let is_bound = matches!(self.inputs[input].spec, Spec::Bound(..));
        let has_many = is_bound && self.has_many(table, input);
        let opened = match self.decide(table, input, id, map, draw) {
            Err(DROP) => None,
            Err(way) => return Err(way),
            Ok(_) if now_ns < self.blocked_until_ns => None,
            Ok(_) if has_many => {
                self.inputs[input].failures += 1;
                None
            }
            Ok((new, outputs)) => self.kind.settle(new).and_then(|new| {
                let mut flow = self.flow(map, id, new);
                (flow.outputs, flow.owner, flow.protocol) =
                    (outputs, self.owner(input), key.protocol);
                table.insert(flow, self.clocks.of(self.kind, &flow), now_ns)
            }),
        };
        let drops = is_bound || matches!(self.inputs[input].spec, Spec::Drop);
        self.inputs[input].failures += u64::from(opened.is_none() && !drops);
        opened.ok_or(DROP)
    }

    /// The flow of TCP packets `id`, which is opened as if one had come in at `input` if there is none.
    pub fn entry(&mut self, input: usize, id: FlowId, now_ns: u64, draw: Draw<'_>) -> Option<At> {
        let flows = Rc::clone(&self.flows);
        let mut table = flows.borrow_mut();
        let (key, protocol) = match self.kind {
            Kind::Address | Kind::Pair => (
                FlowId {
                    sport: 0,
                    dport: 0,
                    ..id
                },
                0,
            ),
            _ => (id, ipv4::TCP),
        };
        let key = Key {
            id: key,
            protocol,
            opens: true,
        };
        let known = self.flow_lookup().find(&table, ipv4::TCP, &id);
        known.or_else(|| self.open(&mut table, input, key, now_ns, draw).ok())
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// True if sequence numbers can be moved.
    pub fn is_tcp(&self) -> bool {
        matches!(self.kind, Kind::Ip | Kind::Tcp)
    }

    /// A flow of packets with addresses and ports `id` that become `new`.
    pub(super) fn flow(&self, map: u16, id: FlowId, new: FlowId) -> Flow {
        let mut flow = Flow::new(map, [id, new.reverse()]);
        flow.ip = Delta::of_addresses(&id, &new);
        flow.transport = match self.kind {
            Kind::Ping => Delta::between(id.sport.into(), new.sport.into()),
            _ => flow.ip.and(Delta::of_ports(&id, &new)),
        };
        flow
    }

    /// The way of a packet that has no key, or could not open a flow.
    fn unknown(&self, input: usize) -> u16 {
        match self.inputs[input].spec {
            Spec::Pass(port) => port,
            _ => DROP,
        }
    }

    /// Rewrites a packet; returns its way.
    #[inline]
    fn rewrite(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut FlowTable,
        input: usize,
        packet: &mut Packet,
        key: Option<(u64, Key)>,
    ) -> u16 {
        let Some((hash, key)) = key else {
            return self.unknown(input);
        };
        let map = self.kind.map(self.first_map, key.protocol);
        let at = match self.kind.find(table, hash, &key.id, map) {
            Some(at) => at,
            None if !key.opens => return self.unknown(input),
            None => match self.open(table, input, key, ctx.now_ns(), &mut |most| {
                ctx.random_range(0, most)
            }) {
                Ok(at) => {
                    let anno = self.annos.reply.map_or(0, |anno| packet.anno().u8(anno));
                    table.flow_mut(at).reply_anno = anno;
                    at
                }
                Err(way) => return way,
            },
        };
        self.apply(table, at, packet, ctx.now_ns())
    }

    /// Rewrites a packet of a flow.
    #[inline]
    fn apply(&self, table: &mut FlowTable, at: At, packet: &mut Packet, now_ns: u64) -> u16 {
        let reply = at.is_reply();
        let (flow, shifts) = table.parts_mut(at);
        if let Some(bytes) = packet.network_mut() {
            header::rewrite(self.kind, bytes, flow, reply, shifts);
        }
        self.annotate(packet, flow, reply);
        let (way, times) = (
            flow.outputs[usize::from(reply)],
            self.clocks.of(self.kind, flow),
        );
        table.touch(at, times, now_ns);
        way
    }

    #[inline]
    fn annotate(&self, packet: &mut Packet, flow: &Flow, reply: bool) {
        if self.annos.destination && (reply || self.kind != Kind::Address) {
            packet
                .anno_mut()
                .set_dst_ip(flow.rewritten(reply).destination.octets());
        }
        if let (true, Some(anno)) = (reply, self.annos.reply) {
            packet.anno_mut().set_u8(anno, flow.reply_anno);
        }
    }

    /// Finds the keys of a batch and brings what the search for them needs near.
    fn look_ahead(&mut self, table: &FlowTable, batch: &Batch) {
        let (kind, first_map) = (self.kind, self.first_map);
        let key = |packet: &Packet| {
            let key = kind.key(packet)?;
            Some((
                table.hash(&kind.opening(key.id), kind.map(first_map, key.protocol)),
                key,
            ))
        };
        self.keys.clear();
        self.keys.extend(batch.iter().map(key));
        if table.len() >= FAR && batch.len() > 1 {
            table.warm(self.keys.iter().flatten().map(|(hash, _)| *hash));
        }
    }

    fn set_spec(&mut self, input: usize, spec: Spec) {
        let owner = self.owner(input);
        let mut flows = self.flows.borrow_mut();
        flows.remove_of(owner..owner + 1);
        match spec {
            Spec::Pattern(..) => flows.track_freed(),
            Spec::Bound(_, true) => flows.track_peers(),
            _ => {}
        }
        drop(flows);
        self.inputs[input] = Input::new(spec);
    }
}

/// A handler with all mappings.
pub const fn table(name: &'static str) -> Handler<Rewriter> {
    read(name, |me, view| Ok(me.table_text(view, None)))
}

/// A handler with the mappings of TCP.
pub const fn tcp_table(name: &'static str) -> Handler<Rewriter> {
    read(name, |me, view| Ok(me.table_text(view, Some(ipv4::TCP))))
}

/// A handler with the mappings of UDP.
pub const fn udp_table(name: &'static str) -> Handler<Rewriter> {
    read(name, |me, view| Ok(me.table_text(view, Some(ipv4::UDP))))
}

/// A handler that looks up a mapping.
pub const fn lookup(name: &'static str) -> Handler<Rewriter> {
    read(name, |me, view| me.lookup_text(view, view.param()))
}

impl Rewriter {
    /// The handler `pattern` of an input.
    pub const PATTERN: Handler<Self> = read_write(
        "pattern",
        |me, view| Ok(me.inputs[view.port].spec.text()),
        Self::set_pattern,
    );
    pub const TABLE_SIZE: Handler<Self> = read("table_size", |me, _| me.flows_opened());
    pub const NMAPPINGS: Handler<Self> = read("nmappings", |me, _| me.flows_opened());
    pub const MAPPING_FAILURES: Handler<Self> = read("mapping_failures", |me, _| {
        text(me.inputs.iter().map(|i| i.failures).sum::<u64>())
    });
    pub const PATTERNS: Handler<Self> = read("patterns", |me, _| {
        Ok((0..me.inputs.len()).map(|n| me.input_text(n)).collect())
    });
    pub const SIZE: Handler<Self> = read("size", |me, _| text(me.flows.borrow().len()));
    pub const CAPACITY: Handler<Self> = read_write(
        "capacity",
        |me, _| text(me.flows.borrow().capacity()),
        Self::write_capacity,
    );
    pub const CLEAR: Handler<Self> = command("clear", run!(|me, _| me.flows.borrow_mut().clear()));

    pub const TCP_TIMEOUT: Handler<Self> = read_write(
        "tcp_timeout",
        |me, _| me.timeout(Clock::Established),
        set!(|me: &mut Self, time: Seconds, _| me.set_timeout(Clock::Established, time.ns())),
    );
    pub const TCP_TRANSITORY_TIMEOUT: Handler<Self> = read_write(
        "tcp_transitory_timeout",
        |me, _| me.timeout(Clock::Transitory),
        set!(|me: &mut Self, time: Seconds, _| me.set_timeout(Clock::Transitory, time.ns())),
    );
    pub const UDP_TIMEOUT: Handler<Self> = read_write(
        "udp_timeout",
        |me, _| me.timeout(Clock::Other),
        set!(|me: &mut Self, time: Seconds, _| me.set_timeout(Clock::Other, time.ns())),
    );
    pub const TIMEOUT: Handler<Self> = read_write(
        "timeout",
        |me, _| me.timeout(Clock::Other),
        set!(|me: &mut Self, time: Seconds, _| me.set_timeout(Clock::Other, time.ns())),
    );

    fn timeout(&self, clock: Clock) -> Text {
        let set_ns = self.live_ns[clock as usize];
        Seconds::text(set_ns.unwrap_or(self.timeouts.get(clock)))
    }

    fn set_timeout(&mut self, clock: Clock, timeout_ns: u64) {
        self.live_ns[clock as usize] = Some(timeout_ns);
        let mut table = self.flows.borrow_mut();
        self.clocks.set(clock, timeout_ns, &mut table);
    }

    /// Keeps the time-outs that handlers have set in the configuration before.
    pub(super) fn keep_timeouts(&mut self, old: &Self) {
        for clock in [Clock::Established, Clock::Transitory, Clock::Other] {
            if let Some(timeout_ns) = old.live_ns[clock as usize] {
                self.set_timeout(clock, timeout_ns);
            }
        }
    }

    fn flows_opened(&self) -> Text {
        text((0..self.inputs.len()).map(|n| self.count(n)).sum::<u32>())
    }

    fn set_pattern(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let input = view.port;
        let value = without_count(value);
        let spec = &self.inputs[input].spec;
        // What is in force, also as guests of earlier releases read it, stays with its flows.
        if value == spec.text() || value == spec.to_string() {
            return on_write(self, |_, _| {});
        }
        let spec = Spec::parse(value, view.ports().1, view.arg_context());
        match spec.map_err(HandlerError::rejected)? {
            Spec::Named(name, _) => Err(HandlerError::rejected(format!(
                "\"{}\" is a mapper, which cannot be set while the router runs",
                name.shown()
            ))),
            spec => on_write(self, move |me, _| me.set_spec(input, spec)),
        }
    }

    fn write_capacity(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let most = view.arg_context().environment.limits.flows;
        let capacity: usize = view.parse(value)?;
        if capacity > most {
            return Err(HandlerError::rejected(format!(
                "{capacity} is out of range, the most is {most}"
            )));
        }
        on_write(self, move |me, ctx| {
            me.flows.borrow_mut().set_capacity(capacity, ctx.now_ns());
        })
    }
}

/// A specification without the number of flows that `patterns` has behind it.
fn without_count(value: &str) -> &str {
    let value = value.trim_end();
    let found = value.strip_suffix(']').and_then(|v| v.rsplit_once(" ["));
    match found {
        Some((spec, count)) if count.bytes().all(|digit| digit.is_ascii_digit()) => spec,
        _ => value,
    }
}

impl Element for Rewriter {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        match self.capacity.clone() {
            Capacity::Own => {
                let keys = Keys([ctx.random(), ctx.random(), ctx.random(), ctx.random()]);
                self.flows.borrow_mut().set_keys(keys);
            }
            Capacity::Of(name) => self.flows = Self::shared_flows(ctx, &name)?,
        }
        self.register()
            .ok_or("too many rewriters share a capacity")?;
        for input in 0..self.inputs.len() {
            self.resolve(ctx, input)?;
        }
        if self.reap_ns > 0 {
            ctx.set_timer(ctx.now_ns() + self.reap_ns);
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, input: usize, mut batch: Batch) {
        let flows = Rc::clone(&self.flows);
        let mut table = flows.borrow_mut();
        self.look_ahead(&table, &batch);
        batch.uniqueify();
        let (keys, mut ways) = (
            core::mem::take(&mut self.keys),
            core::mem::take(&mut self.ways),
        );
        ways.clear();
        for (packet, key) in batch.iter_mut().zip(&keys) {
            ways.push(self.rewrite(ctx, &mut table, input, packet, *key).into());
        }
        ctx.push_runs(batch, &ways);
        (self.keys, self.ways) = (keys, ways);
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let now_ns = ctx.now_ns();
        let all = self.flows.borrow_mut().reap(now_ns, REAPED_AT_ONCE);
        ctx.set_timer(now_ns + if all { self.reap_ns } else { REAP_PAUSE_NS });
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.adopt(old);
        }
    }
}
