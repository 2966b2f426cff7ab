// SPDX-License-Identifier: Apache-2.0
//! The element behind FlowGuard and IP6Balancer.
use click_core::class::Arg;
use click_core::listing;

use super::balance::Balance;
use crate::flow_log::{self, FlowLog};
use crate::flows::{self, Seconds};
use crate::guard::fragments::Fragments;
use crate::guard::seen::{Fragment, Seen};
use crate::guard::table::{Table, Verdict, Way};
use crate::guard::targets::Target;
use crate::headers::Headers;
use crate::outputs::distribute;
use crate::prelude::*;

/// Its arguments.
pub const CAPACITY: Arg = optional("CAPACITY");
pub const TIMEOUTS: [Arg; 4] = [
    keyword("TCP_TIMEOUT"),
    keyword("TCP_TRANSITORY_TIMEOUT"),
    keyword("UDP_TIMEOUT"),
    keyword("ICMP_TIMEOUT"),
];

/// A handler for the time-out of a kind of flows.
macro_rules! timeout {
    ($name:literal, $kind:literal) => {
        read_write(
            $name,
            |me: &mut Guard, _| Seconds::text(me.table.timeout_ns($kind)),
            set!(|me: &mut Guard, time: Seconds, _| me.set_timeout($kind, time.ns())),
        )
    };
}

/// Its handlers.
pub const HANDLERS: &[Handler<Guard>; 19] = &[
    read("table", |me: &mut Guard, view| {
        let (now_ns, limits) = (view.now_ns(), &view.arg_context().environment.limits);
        Ok(listing(
            limits,
            me.table.iter().map(|f| me.table.text(f, now_ns) + "\n"),
        ))
    }),
    read("table_size", |me, _| text(me.table.len())),
    read("capacity", |me, _| text(me.table.capacity())),
    read("mapping_failures", |me, _| text(me.drops[2])),
    read("drops", |me, _| Ok(me.drops_text())),
    timeout!("tcp_timeout", 3),
    timeout!("tcp_transitory_timeout", 0),
    timeout!("udp_timeout", 2),
    timeout!("icmp_timeout", 1),
    flow_log::log(),
    flow_log::log_lost(),
    flow_log::reset_log(),
    command("clear", run!(|me: &mut Guard, _| me.table.clear())),
    read_command(
        "state",
        |me, view| flows::state(&me.table, view),
        Guard::set_state,
    ),
    read("changes", |me, view| flows::changes(&mut me.table, view)),
    command("merge", Guard::merge),
    read("merge_lost", |me, _| text(me.merge_lost)),
    BLOCK_NEW_FLOWS,
    // Its name before 1.0, for one more release.
    Handler {
        name: "hold",
        ..BLOCK_NEW_FLOWS
    },
];

/// A time in which no flow opens.
const BLOCK_NEW_FLOWS: Handler<Guard> = command(
    "block_new_flows",
    set!(|me: &mut Guard, lease: Span, ctx| {
        me.blocked_until_ns = ctx.now_ns().saturating_add(lease.ns);
    }),
);

/// Time between two looks for flows whose time is over, and most of each kind that are forgotten then.
const REAP_NS: u64 = 1_000_000_000;
const MAX_REAPED: usize = 256;
/// The input of the outside's packets that may begin a flow, and the output of those that do not pass.
const MAY_BEGIN: usize = 2;
pub(super) const REFUSED: usize = 2;
/// Flows, if no number is given, and the most of them.
const USUAL: usize = 4096;
const MAX: usize = 1 << 20;
/// Why packets do not pass, in the order of the counts.
const REASONS: [&str; 4] = ["no flow", "beyond the window", "table full", "unreadable"];

/// The places of reasons.
pub(super) const NO_FLOW: usize = 0;
const BEYOND_WINDOW: usize = 1;
const FULL: usize = 2;
pub(super) const UNREADABLE: usize = 3;

/// Builds a firewall.
pub fn build(a: &mut Args<'_>) -> Built {
    Some(Box::new(Guard::new(a, None)?))
}

/// Builds a balancer.
pub fn build_balancer(a: &mut Args<'_>) -> Built {
    let balance = Balance::new(a);
    let guard = Guard::new(a, balance);
    guard
        .filter(|guard| guard.balance.is_some())
        .map(|guard| Box::new(guard) as Box<dyn Element>)
}

/// The element.
pub struct Guard {
    pub(super) table: Table,
    /// What a balancer does to packets.
    pub(super) balance: Option<Balance>,
    /// The outputs of packets whose first fragment passed, and their servers.
    pub(super) fragments: Fragments<(usize, u128)>,
    drops: [u64; REASONS.len()],
    log: FlowLog,
    /// No flow opens before this time.
    pub(super) blocked_until_ns: u64,
    /// Flows that ended at a merge, or did not come.
    merge_lost: u64,
    /// Time-outs that handlers have set, by kind of flow.
    live_ns: [Option<u64>; TIMEOUTS.len()],
}

part!(Guard, log: FlowLog);

impl Guard {
    /// An element with the arguments; `balance` makes it a balancer.
    fn new(a: &mut Args<'_>, balance: Option<Balance>) -> Option<Self> {
        let most = a.environment().limits.flows.min(MAX);
        let capacity = a.or("CAPACITY", USUAL.min(most));
        let seconds = [
            a.or("TCP_TRANSITORY_TIMEOUT", 240u32),
            a.or("ICMP_TIMEOUT", 60),
            a.or("UDP_TIMEOUT", 300),
            a.or("TCP_TIMEOUT", 7440),
        ];
        let capacity = capacity?;
        if !(1..=most).contains(&capacity) {
            a.error(
                "CAPACITY",
                format!("{capacity} is out of range, expected 1 to {most}"),
            );
        }
        let mut timeouts_ns = [0; 4];
        for (timeout_ns, seconds) in timeouts_ns.iter_mut().zip(seconds) {
            *timeout_ns = u64::from(seconds?.max(1)) * 1_000_000_000;
        }
        let mut table = Table::new(capacity, timeouts_ns);
        table.targets = balance.as_ref().map(Balance::targets);
        Some(Self {
            table,
            balance,
            fragments: Fragments::default(),
            drops: [0; REASONS.len()],
            log: FlowLog::default(),
            blocked_until_ns: 0,
            merge_lost: 0,
            live_ns: [None; TIMEOUTS.len()],
        })
    }

    fn set_timeout(&mut self, kind: usize, timeout_ns: u64) {
        self.live_ns[kind] = Some(timeout_ns);
        self.table.set_timeout(kind, timeout_ns);
    }

    fn drops_text(&self) -> String {
        let line = |(reason, count): (&&str, &u64)| format!("{count}\t{reason}\n");
        REASONS.iter().zip(&self.drops).map(line).collect()
    }

    fn set_state(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let flows = self.table.parse(value, view.now_ns())?;
        on_write(self, move |me, ctx| {
            me.table.set(flows, ctx.now_ns());
        })
    }

    fn merge(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let flows = self.table.parse(value, view.now_ns())?;
        on_write(self, move |me, ctx| {
            me.merge_lost += me.table.merge(flows, ctx.now_ns());
        })
    }

    /// The output of a packet that came by an input.
    fn way(&mut self, input: usize, packet: &Packet, now_ns: u64) -> usize {
        let headers = Headers::of(packet);
        let port = usize::from(input > 0);
        let fragment = Fragment::of(&headers);
        if let Some(later) = fragment.filter(|fragment| !fragment.is_first) {
            return match self.fragments.find(&later, now_ns) {
                Some((known, _)) if known == port => port,
                _ => self.refuse(&headers, NO_FLOW, now_ns),
            };
        }
        let verdict = match Seen::of(&headers) {
            None => return self.refuse(&headers, UNREADABLE, now_ns),
            // to another host it would bring bytes without a flow (RFC 5508, REQ-3)
            Some(Seen::Error { about, to }) if to != about.source => Verdict::NoFlow,
            Some(Seen::Error { about, .. }) => match self.table.is_of(&about, input > 0, now_ns) {
                true => Verdict::Passes(0),
                false => Verdict::NoFlow,
            },
            Some(Seen::Part { ends, tcp, answers }) => {
                let way = Way {
                    opens: input != 1 && now_ns >= self.blocked_until_ns,
                    answers,
                    outside: input > 0,
                    server: &mut || None,
                };
                self.table.judge(ends, tcp, way, now_ns)
            }
        };
        self.settle(verdict, &headers, port, now_ns)
            .map_or(REFUSED, |_| port)
    }

    /// What a verdict brings: the target of the packet, if it passes by a port.
    pub(super) fn settle(
        &mut self,
        verdict: Verdict,
        headers: &Headers<'_>,
        port: usize,
        now_ns: u64,
    ) -> Option<Target> {
        let reason = match verdict {
            Verdict::Passes(target) => {
                if let Some(first) = Fragment::of(headers) {
                    let server = self.table.address(target).map_or(0, |(server, _)| server);
                    self.fragments.keep(first, (port, server), now_ns);
                }
                return Some(target);
            }
            Verdict::NoFlow => NO_FLOW,
            Verdict::BeyondWindow => BEYOND_WINDOW,
            Verdict::Full => FULL,
        };
        self.refuse(headers, reason, now_ns);
        None
    }

    /// Counts a packet that does not pass; returns its way.
    pub(super) fn refuse(&mut self, headers: &Headers<'_>, reason: usize, now_ns: u64) -> usize {
        self.drops[reason] += 1;
        if self.log.has_time(now_ns) {
            self.log.note(headers, REASONS[reason], now_ns);
        }
        REFUSED
    }
}

impl Element for Guard {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let keys = core::array::from_fn(|_| ctx.random());
        self.table.set_keys(keys);
        if let Some(balance) = &mut self.balance {
            balance.resolve(ctx, self.table.targets.as_ref())?;
        }
        ctx.set_timer(ctx.now_ns() + REAP_NS);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        distribute(ctx, batch, |ctx, batch, ways| {
            let (now_ns, ports) = (ctx.now_ns(), ctx.outputs());
            if self.balance.is_some() {
                batch.uniqueify();
                ways.extend(
                    batch
                        .iter_mut()
                        .map(|packet| self.balanced(port, packet, now_ns)),
                );
                return;
            }
            let way = |packet: &Packet| match self.way(port, packet, now_ns) {
                REFUSED if port == MAY_BEGIN => DROPPED,
                way if way < ports => way,
                _ => DROPPED,
            };
            ways.extend(batch.iter().map(way));
        });
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.table.reap(MAX_REAPED, ctx.now_ns());
        ctx.set_timer(ctx.now_ns() + REAP_NS);
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.drops, self.merge_lost) = (old.drops, old.merge_lost);
            self.log = core::mem::take(&mut old.log);
            for (kind, set_ns) in old.live_ns.into_iter().enumerate() {
                if let Some(timeout_ns) = set_ns {
                    self.set_timeout(kind, timeout_ns);
                }
            }
            if let (Some(new), Some(old)) = (&self.balance, &old.balance)
                && !new.is_like(old)
            {
                return;
            }
            self.fragments = core::mem::take(&mut old.fragments);
            for flow in old.table.by_silence() {
                if let Some(flow) = self.table.renumbered(flow, &old.table) {
                    self.table.add(flow, ctx.now_ns());
                }
            }
        }
    }
}
