// SPDX-License-Identifier: Apache-2.0
//! Drops or reports packets by rules of an intrusion detection system, in the data that their receivers read.
//!
//! # Synopsis
//! `StreamInspector([RULE, ..., ACTION, CAPACITY, MEMORY, STREAM, WINDOW, POLICY, OTHER_DATA, MIDSTREAM, ALERTS, LOG])`: each RULE is
//! a rule of a subset of Suricata's language (docs/reference/inspection.md), in quotes; without one, a hot swap keeps the
//! rules. ACTION `rule` (default) drops what
//! `drop` rules match, `drop` also what `alert` rules match; `alert` drops nothing. At most CAPACITY flows (default 4096,
//! at most the router's limit), whose streams take at most MEMORY bytes (default 256 for each entry that a table may have).
//! Of each direction of a TCP connection at most STREAM bytes (default 262144) wait to be acknowledged. The contents of a
//! rule may be WINDOW bytes apart (default 2048). POLICY `first` (default) or `last` says which bytes count where a sender
//! sends others in the same place. OTHER_DATA `drop` (default) drops the segment that does so, `alert` only reports it.
//! With MIDSTREAM (default false) connections that were there before are inspected from their next packet on, else
//! their packets do not pass. ALERTS lines are kept (default 256). Each is a message for LOG, a `Syslog`, too.
//!
//! Fragments wait until their packet is whole; those that overlap do not pass. Packets with a wrong checksum, beyond the
//! window, or without connection do not change a stream, and do not pass. Marks of urgent data are removed, and windows are
//! made smaller to STREAM bytes.
//! When the table is full, a host that began more than an eighth of the flows loses one; else, and when the memory is full, the flow that was silent longest is
//! forgotten, but no open connection that had a packet within 5 s, or one of a host with more than twice as many flows in the same VLAN. A VLAN takes no more than
//! seven times what is free. What finds no place does not pass. The fragments of the host that holds most of them go first.
//! # Ports
//! 2/2-3, push. The IP header must be marked. What comes by input 0 leaves by output 0, and 1 by 1. Output 2 gets what
//! does not pass, or it is dropped.
//! # Handlers
//! * `rules` (read, write): all rules, a line each; a wrong one changes nothing. Streams stay.
//! * `action` (read, write): ACTION.
//! * `alerts` (read): the newest alerts as lines of EVE JSON, the newest last; `alert_count`, `alerts_lost` (read): all, and those
//!   that are not there any more. `reset_log` (write): forgets them.
//! * `drops` (read): packets that did not pass, by reason; with ACTION `alert` they would not have.
//! * `rule_count`, `table_size`, `capacity`, `memory`, `held` (read): rules, flows, how many there may be, bytes of their streams,
//!   fragments that wait. `clear` (write): forgets all flows.
//! # Example
//! `i :: StreamInspector("drop tcp any any -> any 80 (msg:\"x\"; content:\"/etc/passwd\"; sid:1;)"); FromDevice(0) -> MarkIPHeader(14) -> i -> Queue -> ToDevice(1); FromDevice(1) -> MarkIPHeader(14) -> [1]i[1] -> Queue -> ToDevice(0);`
use click_core::text::unquote;
use click_core::{ArgContext, Limits, listing};

use crate::inspect::alerts::Alert;
use crate::inspect::fragments::{self, Fragments, Outcome};
use crate::inspect::inspector::Mode;
use crate::inspect::judge::{Judge, Settings, Verdict};
use crate::inspect::rules::{Names, RuleSet, Sizes};
use crate::inspect::segment::{Mend, Origin, REASONS, Reason, mend};
use crate::inspect::stream::Policy;
use crate::inspect::table::Table;
use crate::outputs::Outputs;
use crate::prelude::*;
use crate::syslog::log_of;

pub static ELEMENT: Class = Class {
    name: "StreamInspector",
    ports: "2/2-3",
    processing: "h/h",
    args: &[
        rest("RULE"),
        keyword("ACTION"),
        keyword("CAPACITY"),
        keyword("MEMORY"),
        keyword("STREAM"),
        keyword("WINDOW"),
        keyword("POLICY"),
        keyword("OTHER_DATA"),
        keyword("MIDSTREAM"),
        keyword("ALERTS"),
        keyword("LOG"),
    ],
    handlers: &[
        read_write(
            "rules",
            |me: &mut StreamInspector, _| text(&me.judge.inspector.set.text),
            StreamInspector::set_rules,
        ),
        read_write(
            "action",
            |me, _| text(action_name(me.judge.inspector.mode)),
            set!(|me, Word(mode): Word<Mode>, _| me.judge.inspector.mode = mode),
        ),
        read("alerts", |me, view| {
            Ok(me.alerts(&view.arg_context().environment.limits))
        }),
        read("alert_count", |me, _| text(me.judge.inspector.ring.count)),
        read("alerts_lost", |me, _| text(me.judge.inspector.ring.lost())),
        command(
            "reset_log",
            run!(|me: &mut StreamInspector, _| me.judge.inspector.ring.clear()),
        ),
        read("drops", |me, _| Ok(me.drops())),
        read("rule_count", |me, _| {
            text(me.judge.inspector.set.rules.len())
        }),
        read("table_size", |me, _| text(me.judge.table.len())),
        read("capacity", |me, _| text(me.judge.table.capacity)),
        read("memory", |me, _| text(me.judge.table.bytes)),
        read("held", |me, _| text(me.fragments.held())),
        command(
            "clear",
            run!(|me: &mut StreamInspector, _| me.judge.table.clear()),
        ),
    ],
    build,
    ..Class::DEFAULT
};

/// Time between two looks for what has waited too long, and most flows of a kind that are forgotten then.
const REAP_NS: u64 = 1_000_000_000;
const MAX_REAPED: usize = 256;
/// Flows, if no number is given, and the most of them.
const USUAL: usize = 4096;
const MAX: usize = 1 << 20;
/// Bytes of streams, for each entry that a table may have.
const BYTES_PER_ENTRY: usize = 256;
const MAX_STREAM: usize = 1 << 24;
const MAX_WINDOW: usize = 65_535;
const MAX_ALERTS: usize = 4096;
/// Where what does not pass leaves.
const REFUSED: usize = 2;

/// A word of an argument.
struct Word<T>(T);

/// A value of a few words.
trait Words: Copy + Sized + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

impl Words for Mode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("rule", Self::Rule),
        ("drop", Self::Drop),
        ("alert", Self::Alert),
    ];
}

impl Words for Policy {
    const WORDS: &'static [(&'static str, Self)] = &[("first", Self::First), ("last", Self::Last)];
}

/// Whether segments with other data are dropped.
impl Words for bool {
    const WORDS: &'static [(&'static str, Self)] = &[("drop", true), ("alert", false)];
}

impl<T: Words> FromArg for Word<T> {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let text = unquote(text);
        let found = T::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| Self(*value)).ok_or_else(|| {
            let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
            format!("expected {}, got \"{}\"", words.join(" or "), text.shown())
        })
    }
}

fn action_name(mode: Mode) -> &'static str {
    let found = Mode::WORDS.iter().find(|(_, known)| *known == mode);
    found.map_or("", |(word, _)| word)
}

/// An argument within a range.
fn within(a: &mut Args<'_>, name: &'static str, usual: usize, most: usize) -> Option<usize> {
    let value = a.or(name, usual.min(most))?;
    if !(1..=most).contains(&value) {
        a.error(
            name,
            format!("{value} is out of range, expected 1 to {most}"),
        );
        return None;
    }
    Some(value)
}

fn build(a: &mut Args<'_>) -> Built {
    let limits = a.environment().limits;
    let mode = a.or("ACTION", Word(Mode::Rule));
    let capacity = within(a, "CAPACITY", USUAL, limits.flows.min(MAX));
    let memory = within(
        a,
        "MEMORY",
        BYTES_PER_ENTRY * limits.table_entries,
        usize::MAX,
    );
    let stream_bytes = within(a, "STREAM", 262_144, MAX_STREAM);
    let window = within(a, "WINDOW", 2048, MAX_WINDOW);
    let policy = a.or("POLICY", Word(Policy::First));
    let other_data = a.or("OTHER_DATA", Word(true));
    let midstream = a.or("MIDSTREAM", false);
    let alerts = within(a, "ALERTS", 256, MAX_ALERTS);
    let log = a.or("LOG", String::new());
    let text: Vec<String> = a.rest().iter().map(|rule| unquote(rule)).collect();
    let sizes = Sizes {
        window: window?,
        limits,
    };
    let set = match RuleSet::of(&text.join("\n"), &Names::default(), &sizes) {
        Ok(set) => set,
        Err(faults) => {
            faults.lines().for_each(|fault| a.error("RULE", fault));
            return None;
        }
    };
    let settings = Settings {
        policy: policy?.0,
        drops_other_data: other_data?.0,
        takes_midstream: midstream?,
        stream_bytes: stream_bytes?,
    };
    let mut judge = Judge::new(Table::new(capacity?, memory?), set, settings, alerts?);
    judge.inspector.mode = mode?.0;
    Some(Box::new(StreamInspector {
        judge,
        fragments: Fragments::new(limits.waiting_packets()),
        sizes,
        whole: Vec::new(),
        log: log?,
    }))
}

struct StreamInspector {
    judge: Judge,
    fragments: Fragments,
    sizes: Sizes,
    /// The packet that fragments make.
    whole: Vec<u8>,
    /// The element that sends alerts, or nothing.
    log: String,
}

impl StreamInspector {
    fn set_rules(&self, _: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let names = &self.judge.inspector.set.names;
        let set = RuleSet::of(value, names, &self.sizes).map_err(HandlerError::rejected)?;
        Ok(Change::of(move |me: &mut Self, _| me.judge.set_rules(set)))
    }

    fn drops(&self) -> String {
        let line = |(reason, count): (&&str, &u64)| format!("{count}\t{reason}\n");
        REASONS.iter().zip(&self.judge.drops).map(line).collect()
    }

    /// The newest alerts that fit.
    fn alerts(&self, limits: &Limits) -> String {
        let (ring, mut left) = (&self.judge.inspector.ring, limits.answer_bytes);
        let fits = |alert: &&Alert| {
            let bytes = alert.to_string().len();
            let fits = bytes < left;
            left = left.saturating_sub(bytes);
            fits
        };
        let count = ring.iter().rev().take_while(fits).count();
        let lost = ring.iter().count() - count;
        listing(limits, ring.iter().skip(lost))
    }

    fn take(&mut self, input: usize, packet: Packet, now_ns: u64, out: &mut Outputs) {
        let origin = Origin::of(&packet, input);
        match self.fragments.take(packet, origin, now_ns) {
            Outcome::Whole(packet) => {
                let network = packet.network().unwrap_or_default();
                let verdict = self.judge.judge(origin, network, now_ns);
                send(verdict, input, packet, out);
            }
            Outcome::Held => {}
            Outcome::Complete(packets) => self.complete(origin, packets, now_ns, out),
            Outcome::Refused(packets, reason) => {
                self.tell_about(&packets, reason, now_ns);
                let verdict = self.judge.refuse(reason);
                packets
                    .into_iter()
                    .for_each(|packet| send(verdict, input, packet, out));
            }
        }
    }

    fn complete(&mut self, origin: Origin, packets: Vec<Packet>, now_ns: u64, out: &mut Outputs) {
        let verdict = match fragments::whole(&packets, &mut self.whole) {
            None => self.judge.refuse(Reason::Unreadable),
            Some(()) => match self.judge.judge(origin, &self.whole, now_ns) {
                // its mark is in a fragment, and in the checksum of all
                Verdict::Pass(mend) if mend.clears_urgent => self.judge.refuse(Reason::Urgent),
                Verdict::Pass(_) => Verdict::Pass(Mend::default()),
                verdict => verdict,
            },
        };
        packets
            .into_iter()
            .for_each(|packet| send(verdict, origin.input, packet, out));
    }

    fn tell_about(&mut self, packets: &[Packet], reason: Reason, now_ns: u64) {
        let network = packets
            .first()
            .and_then(Packet::network)
            .unwrap_or_default();
        let Some(ends) = fragments::ends(network) else {
            return;
        };
        let inspector = &mut self.judge.inspector;
        inspector.tell_about(&ends, reason, inspector.blocks(), now_ns);
    }
}

fn send(verdict: Verdict, input: usize, mut packet: Packet, out: &mut Outputs) {
    match verdict {
        Verdict::Pass(change) => {
            if change.is_needed() {
                mend(&mut packet, &change);
            }
            out.put(input, packet);
        }
        Verdict::Drop(_) => out.put(REFUSED, packet),
    }
}

impl Element for StreamInspector {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let keys = core::array::from_fn(|_| ctx.random());
        self.judge.table.set_keys(keys);
        self.fragments.set_key(ctx.random());
        if !self.log.is_empty() {
            self.judge.inspector.ring.log = Some(log_of(ctx, &self.log)?);
        }
        ctx.set_timer(ctx.now_ns() + REAP_NS);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        let (now_ns, mut out) = (ctx.now_ns(), Outputs::new(ctx.outputs()));
        while let Some(packet) = batch.pop_front() {
            self.take(port, packet, now_ns, &mut out);
        }
        ctx.recycle(batch);
        out.flush(ctx);
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.judge.table.reap(MAX_REAPED, ctx.now_ns());
        self.fragments.expire(ctx.now_ns());
        ctx.set_timer(ctx.now_ns() + REAP_NS);
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.fragments = core::mem::take(&mut old.fragments);
            let log = self.judge.inspector.ring.log.take();
            self.judge.take(&mut old.judge, &self.sizes);
            self.judge.inspector.ring.log = log;
        }
    }
}
