// SPDX-License-Identifier: Apache-2.0
//! Passes flows that one side begins, with their answers and the errors about them, for IPv4 and IPv6.
//!
//! # Synopsis
//! `FlowGuard([CAPACITY, TCP_TIMEOUT, TCP_TRANSITORY_TIMEOUT, UDP_TIMEOUT, ICMP_TIMEOUT])`: at most CAPACITY flows (default
//! 4096, at most the router's limit), as far as the memory takes them. A TCP connection is forgotten after TCP_TIMEOUT seconds of silence (default 7,440, RFC 5382, REQ-5); before it is
//! open, and after it is over, after TCP_TRANSITORY_TIMEOUT (240). UDP and other protocols after UDP_TIMEOUT (300, RFC 4787,
//! REQ-5), pings after ICMP_TIMEOUT (60, RFC 5508, REQ-2). Packets stay as they are.
//!
//! Packets of a TCP connection pass if they are in its windows (RFC 9293, section 3.4). One that was open before the
//! element began is not judged so. ICMP errors pass to the sender of the packet that they quote, if that
//! is of a known flow. Later fragments pass behind
//! their first one, for 30 s, at most 256 packets at a time. When all places are taken, the flow that was silent longest
//! goes, unless that is less than 5 s; open connections stay.
//! # Ports
//! 3/2-3, push. The header annotation must be set. Input 0: packets of the inside, which may begin flows; output 0 gets
//! them. Input 1: packets of the outside, which may not; input 2: packets of the outside that may. Output 1 gets what passes
//! of both. Other packets of inputs 0 and 1 leave by output 2, or are dropped if it is not connected.
//! # Handlers
//! * `table` (read): the flows, a line each: protocol, addresses and ports, `out` or `in` by who began, milliseconds of silence.
//! * `table_size`, `capacity` (read): flows, and how many there may be. `mapping_failures` (read): packets for which no flow
//!   could be opened. `drops` (read): packets that did not pass, by reason. `clear` (write): forgets all flows.
//! * `log` (read): flows of packets that did not pass, the newest first, at most 128: milliseconds since the last packet,
//!   packets, protocol, addresses and ports, reason; `log_lost` (read): packets beyond a hundred a second, which are not in it.
//!   `reset_log` (write): forgets it.
//! * `state` (read, write): the flows, the newest that fit; a guest that moves to another host takes it along.
//!   Read with a number, it has the flows of this part of the table, 0 the first; behind the last part it is empty.
//! * `changes` (read): with a number of bytes, new and changed flows since the last reading; with `all`, all count as changed. `VRRP` reads it.
//!   A TCP connection counts as changed every 4 MiB of a side.
//! * `merge` (write): adds the flows of another guest's `state`. The one heard of last stays, if two have the same addresses and ports.
//!   Until a side of a connection sends a packet here, it may be 128 MiB beyond its window.
//! * `merge_lost` (read): flows that ended at a merge, or were not added. `hold` (write): a time in which no flow opens.
//! # Example
//! `g :: FlowGuard; FromDevice(0) -> Strip(14) -> CheckIPHeader -> g -> q :: Queue -> ToDevice(1); FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]g[1] -> Discard; Idle -> [2]g;`
use alloc::collections::VecDeque;

use click_core::listing;

use crate::carried;
use crate::flow_log::{self, FlowLog};
use crate::flows;
use crate::guard::flow::Flow;
use crate::guard::seen::{Fragment, Seen};
use crate::guard::table::{HEAD, Table, Verdict};
use crate::headers::Headers;
use crate::outputs::distribute;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FlowGuard",
    ports: "3/2-3",
    processing: "h/h",
    args: &[
        optional("CAPACITY"),
        keyword("TCP_TIMEOUT"),
        keyword("TCP_TRANSITORY_TIMEOUT"),
        keyword("UDP_TIMEOUT"),
        keyword("ICMP_TIMEOUT"),
    ],
    handlers: &[
        read("table", |me: &mut FlowGuard, view| {
            let (now_ns, limits) = (view.now_ns(), &view.surroundings().environment.limits);
            Ok(listing(
                limits,
                me.table.iter().map(|f| f.line(now_ns) + "\n"),
            ))
        }),
        read("table_size", |me, _| text(me.table.len())),
        read("capacity", |me, _| text(me.table.capacity())),
        read("mapping_failures", |me, _| text(me.drops[2])),
        read("drops", |me, _| Ok(me.drops_text())),
        flow_log::log(),
        flow_log::log_lost(),
        flow_log::reset_log(),
        command("clear", run!(|me: &mut FlowGuard, _| me.table.clear())),
        read_command(
            "state",
            |me, view| flows::state(&me.table, view),
            FlowGuard::set_state,
        ),
        read("changes", |me, view| flows::changes(&mut me.table, view)),
        command("merge", FlowGuard::merge),
        read("merge_lost", |me, _| text(me.merge_lost)),
        command(
            "hold",
            set!(|me: &mut FlowGuard, hold: Span, ctx| {
                me.held_ns = ctx.now_ns().saturating_add(hold.ns);
            }),
        ),
    ],
    build,
    ..Class::DEFAULT
};

/// Time between two looks for flows whose time is over, and most of each kind that are forgotten then.
const REAP_NS: u64 = 1_000_000_000;
const REAP_MOST: usize = 256;
/// Fragmented packets that are known, and for how long.
const FRAGMENTED: usize = 256;
const FRAGMENTS_NS: u64 = 30_000_000_000;
/// The input of the outside's packets that may begin a flow, and the output of those that do not pass.
const MAY_BEGIN: usize = 2;
const REFUSED: usize = 2;
/// Flows, if no number is given, and the most of them.
const USUAL: usize = 4096;
const MOST: usize = 1 << 20;
/// Why packets do not pass, in the order of the counts.
const REASONS: [&str; 4] = ["no flow", "beyond the window", "table full", "unreadable"];

fn build(a: &mut Args<'_>) -> Built {
    let most = a.environment().limits.flows.min(MOST);
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
    Some(Box::new(FlowGuard {
        table: Table::new(capacity, timeouts_ns),
        fragmented: VecDeque::new(),
        drops: [0; REASONS.len()],
        log: FlowLog::default(),
        held_ns: 0,
        merge_lost: 0,
    }))
}

/// A packet whose first fragment passed.
struct Fragmented {
    first: Fragment,
    port: usize,
    until_ns: u64,
}

struct FlowGuard {
    table: Table,
    fragmented: VecDeque<Fragmented>,
    drops: [u64; REASONS.len()],
    log: FlowLog,
    /// No flow opens before this time.
    held_ns: u64,
    /// Flows that ended at a merge, or did not come.
    merge_lost: u64,
}

part!(FlowGuard, log: FlowLog);

impl FlowGuard {
    fn drops_text(&self) -> String {
        let line = |(reason, count): (&&str, &u64)| format!("{count}\t{reason}\n");
        REASONS.iter().zip(&self.drops).map(line).collect()
    }

    fn flows_of(view: &View<'_>, value: &str) -> Result<Vec<Flow>, HandlerError> {
        let now_ns = view.now_ns();
        carried::parse(HEAD, value, |words| Flow::of(words, now_ns))
    }

    fn set_state(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let flows = Self::flows_of(view, value)?;
        on_write(self, move |me, ctx| {
            for flow in flows {
                me.table.add(flow, ctx.now_ns());
            }
        })
    }

    fn merge(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let flows = Self::flows_of(view, value)?;
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
            let known = self.of_fragment(&later, now_ns);
            return known
                .filter(|known| *known == port)
                .unwrap_or_else(|| self.refuse(&headers, 0, now_ns));
        }
        let verdict = match Seen::of(&headers) {
            None => return self.refuse(&headers, 3, now_ns),
            // to another host it would bring bytes without a flow (RFC 5508, REQ-3)
            Some(Seen::Error { about, to }) if to != about.source => Verdict::NoFlow,
            Some(Seen::Error { about, .. }) => match self.table.is_of(&about, input > 0, now_ns) {
                true => Verdict::Passes,
                false => Verdict::NoFlow,
            },
            Some(Seen::Part { ends, tcp, answers }) => {
                let opens = input != 1 && now_ns >= self.held_ns;
                let how = (opens, answers, input > 0);
                self.table.judge(ends, tcp, how, now_ns)
            }
        };
        match verdict {
            Verdict::Passes => {
                if let Some(first) = fragment {
                    self.keep(first, port, now_ns);
                }
                port
            }
            Verdict::NoFlow => self.refuse(&headers, 0, now_ns),
            Verdict::BeyondWindow => self.refuse(&headers, 1, now_ns),
            Verdict::Full => self.refuse(&headers, 2, now_ns),
        }
    }

    fn refuse(&mut self, headers: &Headers<'_>, reason: usize, now_ns: u64) -> usize {
        self.drops[reason] += 1;
        if self.log.has_time(now_ns) {
            self.log.note(headers, REASONS[reason], now_ns);
        }
        REFUSED
    }

    /// Where the packet of a later fragment goes.
    fn of_fragment(&mut self, later: &Fragment, now_ns: u64) -> Option<usize> {
        let first = Fragment {
            is_first: true,
            ..*later
        };
        let mut known = self.fragmented.iter();
        let found = known.find(|known| known.first == first && known.until_ns > now_ns);
        found.map(|known| known.port)
    }

    fn keep(&mut self, first: Fragment, port: usize, now_ns: u64) {
        self.fragmented
            .retain(|known| known.first != first && known.until_ns > now_ns);
        if self.fragmented.len() == FRAGMENTED {
            self.fragmented.pop_front();
        }
        let until_ns = now_ns.saturating_add(FRAGMENTS_NS);
        self.fragmented.push_back(Fragmented {
            first,
            port,
            until_ns,
        });
    }
}

impl Element for FlowGuard {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let keys = core::array::from_fn(|_| ctx.random());
        self.table.set_keys(keys);
        ctx.set_timer(ctx.now_ns() + REAP_NS);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        distribute(ctx, batch, |ctx, batch, ways| {
            let (now_ns, ports) = (ctx.now_ns(), ctx.outputs());
            let way = |packet: &Packet| match self.way(port, packet, now_ns) {
                REFUSED if port == MAY_BEGIN => DROPPED,
                way if way < ports => way,
                _ => DROPPED,
            };
            ways.extend(batch.iter().map(way));
        });
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.table.reap(REAP_MOST, ctx.now_ns());
        ctx.set_timer(ctx.now_ns() + REAP_NS);
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.drops, self.merge_lost) = (old.drops, old.merge_lost);
            self.log = core::mem::take(&mut old.log);
            self.fragmented = core::mem::take(&mut old.fragmented);
            for flow in old.table.iter() {
                self.table.add(flow.clone(), ctx.now_ns());
            }
        }
    }
}
