// SPDX-License-Identifier: Apache-2.0
//! Sends pings, and counts their answers.
//!
//! # Synopsis
//! `ICMPPingSource(SRC, DST [, INTERVAL, IDENTIFIER, LIMIT, STOP, DATA, ACTIVE, VERBOSE, MIRROR])`: a ping from SRC to DST
//! every INTERVAL (default 1s, at least 1ms), LIMIT (default -1: no limit) in all, with identifier IDENTIFIER (default
//! 0) and content DATA (default none), only while ACTIVE (default true). With STOP (default false) the router stops
//! after the last. With VERBOSE (default true) a line is printed for every answer. With MIRROR (default false) an answer
//! is turned into the next ping at once, beyond LIMIT. Header, destination and timestamp annotations are set.
//! # Ports
//! 0-1/1. The input (push) takes answers, with their IP header marked; what is no answer is dropped. If the output is
//! pulled, every pull gives a ping. Answers to anything but the last 4,096 pings are not counted.
//! # Handlers
//! * `active`, `src`, `dst` (read, write), `limit`, `interval` (write): the arguments.
//! * `count` (read): pings sent. `reset_counts` (write): forgets everything counted.
//! * `summary` (read): pings, answers, losses and times as ping(8) prints them. `rtt_min`, `rtt_avg`, `rtt_max` (read):
//!   round trip times.
//! # Differences from Click
//! Prints no summary; INTERVAL is at least 1 ms. It counts answers to the last 4,096 pings only,
//! and losses do not count duplicates twice. The input's answers need a marked IP header.
//! # Example
//! `ping :: ICMPPingSource(10.0.0.1, 10.0.0.2) -> arp; c[1] -> ping;`
use click_wire::{icmp, ipv4};

use crate::ip_packet::{encapsulate, encapsulate_icmp, header};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ICMPPingSource",
    aliases: &["ICMPSendPings"],
    ports: "0-1/1",
    processing: "h/a",
    flow: "x/y",
    args: &[
        mandatory("SRC"),
        mandatory("DST"),
        keyword("INTERVAL"),
        keyword("IDENTIFIER"),
        keyword("LIMIT"),
        keyword("STOP"),
        keyword("DATA"),
        keyword("ACTIVE"),
        keyword("VERBOSE"),
        keyword("MIRROR"),
    ],
    handlers: &[
        read_write(
            "active",
            |me: &mut ICMPPingSource, _| text(me.active),
            ICMPPingSource::set_active,
        ),
        read_write(
            "src",
            |me, _| text(me.source),
            set!(|me, source, _| me.source = source),
        ),
        read_write(
            "dst",
            |me, _| text(me.destination),
            set!(|me, to, _| me.destination = to),
        ),
        read("count", |me, _| text(me.count)),
        write(
            "limit",
            set!(|me, limit, ctx| {
                me.limit = limit;
                me.start(ctx, me.interval_ns);
            }),
        ),
        write(
            "interval",
            set!(|me, interval: Span, _| {
                me.interval_ns = interval.ns.max(SHORTEST_NS);
            }),
        ),
        command("reset_counts", ICMPPingSource::reset_counts),
        read("summary", |me, _| Ok(me.summary())),
        read("rtt_min", |me, _| Ok(seconds(me.times.least))),
        read("rtt_avg", |me, _| Ok(seconds(me.times.average()))),
        read("rtt_max", |me, _| Ok(seconds(me.times.most))),
    ],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (source, destination) = (a.need("SRC"), a.need("DST"));
    let interval = a.or("INTERVAL", Span { ns: 1_000_000_000 });
    let (identifier, limit) = (a.or("IDENTIFIER", 0u16), a.or("LIMIT", -1i64));
    let (stop, active) = (a.or("STOP", false), a.or("ACTIVE", true));
    let (verbose, mirror) = (a.or("VERBOSE", true), a.or("MIRROR", false));
    let data = a.or("DATA", Bytes::default());
    Some(Box::new(ICMPPingSource {
        source: source?,
        destination: destination?,
        interval_ns: interval?.ns.max(SHORTEST_NS),
        identifier: identifier?,
        limit: limit?,
        stop: stop?,
        active: active?,
        verbose: verbose?,
        mirror: mirror?,
        data: data?.0,
        due_ns: None,
        count: 0,
        sent: Vec::new(),
        times: Times::default(),
    }))
}

const SHORTEST_NS: u64 = 1_000_000;
/// Pings whose answers are waited for.
const REMEMBERED: usize = 4096;
const TTL: u8 = 200;
const ECHO: u8 = 8;

/// A ping that was sent.
#[derive(Clone, Copy, Default)]
struct Sent {
    sequence: u16,
    at_ns: u64,
    answered: bool,
}

/// Round trip times in microseconds.
#[derive(Clone, Copy, Default)]
struct Times {
    answers: u64,
    duplicates: u64,
    least: u64,
    most: u64,
    sum: u64,
    squares: u64,
}

impl Times {
    fn note(&mut self, us: u64) {
        self.least = if self.answers == 0 {
            us
        } else {
            self.least.min(us)
        };
        self.most = self.most.max(us);
        self.sum = self.sum.saturating_add(us);
        self.squares = self.squares.saturating_add(us.saturating_mul(us));
        self.answers += 1;
    }

    fn average(&self) -> u64 {
        self.sum / self.answers.max(1)
    }

    fn deviation(&self) -> u64 {
        let variance = (self.squares / self.answers.max(1)).saturating_sub(self.average().pow(2));
        variance.isqrt()
    }
}

/// Microseconds as seconds, or, if there are few, as such.
fn seconds(us: u64) -> String {
    if (1..1000).contains(&us) {
        return format!("{us}us");
    }
    let digits = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let short = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{short}s")
}

fn millis(us: u64) -> String {
    format!("{}.{:03}", us / 1000, us % 1000)
}

#[expect(clippy::struct_excessive_bools, reason = "the arguments")]
struct ICMPPingSource {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    interval_ns: u64,
    identifier: u16,
    limit: i64,
    stop: bool,
    active: bool,
    verbose: bool,
    mirror: bool,
    data: Vec<u8>,
    /// When the timer is set to expire.
    due_ns: Option<u64>,
    count: u64,
    sent: Vec<Sent>,
    times: Times,
}

impl ICMPPingSource {
    fn may_send(&self) -> bool {
        u64::try_from(self.limit).map_or(true, |limit| self.count < limit)
    }

    /// The identifier in a message; Linux' ping used to write it in the host's byte order, and so does Click.
    fn wire_identifier(&self) -> [u8; 2] {
        self.identifier.to_le_bytes()
    }

    /// Puts the headers of the next ping in front of `packet`.
    fn finish(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Option<Packet> {
        let sequence = u16::try_from(self.count % 0xffff).expect("less than 65,535") + 1;
        let [high, low] = self.wire_identifier();
        let message = icmp::Repr {
            kind: ECHO,
            code: 0,
            rest: u32::from(u16::from_be_bytes([high, low])) << 16 | u32::from(sequence),
        };
        let header = ipv4::Repr {
            tos: 0,
            id: sequence,
            fragment: 0,
            ttl: TTL,
            protocol: ipv4::ICMP,
            source: self.source,
            destination: self.destination,
            payload_len: 0,
        };
        if !encapsulate_icmp(&mut packet, message) || !encapsulate(&mut packet, header) {
            return None;
        }
        packet.set_timestamp_ns(ctx.now_ns());
        if let Some(sent) = self.sent.get_mut(usize::from(sequence) % REMEMBERED) {
            *sent = Sent {
                sequence,
                at_ns: ctx.now_ns(),
                answered: false,
            };
        }
        self.count += 1;
        Some(packet)
    }

    fn make(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let packet = ctx.pool().packet_from(&self.data)?;
        self.finish(ctx, packet)
    }

    /// Sets the timer, unless it is set or the output is pulled.
    fn start(&mut self, ctx: &mut Context<'_>, after_ns: u64) {
        let wanted = self.active && (self.may_send() || self.stop) && ctx.output_is_push(0);
        if wanted && self.due_ns.is_none() {
            self.set(ctx, ctx.now_ns().saturating_add(after_ns));
        }
    }

    fn set(&mut self, ctx: &mut Context<'_>, at_ns: u64) {
        self.due_ns = Some(at_ns);
        ctx.set_timer(at_ns);
    }

    /// Counts an answer; whether the packet is one.
    fn receive(&mut self, ctx: &mut Context<'_>, packet: &Packet) -> bool {
        let Some(header) = header(packet).filter(|h| h.protocol() == ipv4::ICMP) else {
            return false;
        };
        let message = packet.transport().filter(|m| m.len() >= icmp::HEADER);
        let ours = |m: &&[u8]| m[0] == 0 && m[4..6] == self.wire_identifier();
        let Some(message) = message.filter(ours) else {
            return false;
        };
        let sequence = u16::from_be_bytes([message[6], message[7]]);
        let Some(sent) = self.sent.get_mut(usize::from(sequence) % REMEMBERED) else {
            return true;
        };
        if sequence == 0 || sent.sequence != sequence {
            return true;
        }
        self.times.duplicates += u64::from(core::mem::replace(&mut sent.answered, true));
        let arrived = match packet.timestamp_ns() {
            0 => ctx.now_ns(),
            at => at,
        };
        let us = arrived.saturating_sub(sent.at_ns) / 1000;
        self.times.note(us);
        if self.verbose {
            let line = format!(
                "{}: {} bytes from {}: icmp_seq={sequence} ttl={} time={} ms",
                ctx.name(),
                message.len() - icmp::HEADER,
                header.source(),
                header.ttl(),
                millis(us)
            );
            ctx.print(&line);
        }
        true
    }

    /// Turns an answer into the next ping.
    fn mirror(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Option<Packet> {
        let front = usize::try_from(packet.transport_offset()?).ok()? + icmp::HEADER;
        packet.pull(front);
        self.finish(ctx, packet)
    }

    fn summary(&self) -> String {
        let received = self.times.answers - self.times.duplicates;
        let mut text = format!("{} packets transmitted, {received} received", self.count);
        if self.times.duplicates > 0 {
            text += &format!(", +{} duplicates", self.times.duplicates);
        }
        let lost = self.count.saturating_sub(received) * 100;
        if let Some(lost) = lost.checked_div(self.count) {
            text += &format!(", {lost}% packet loss\n");
        }
        if self.times.answers > 0 {
            let times = &self.times;
            let all = [times.least, times.average(), times.most, times.deviation()];
            let all = all.map(millis).join("/");
            text += &format!("rtt min/avg/max/mdev = {all}\n");
        }
        text
    }
}

impl ICMPPingSource {
    fn set_active(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        on_value(self, view, value, |me, active, ctx| {
            me.active = active;
            if !active {
                ctx.clear_timer();
                me.due_ns = None;
            }
            me.start(ctx, 0);
        })
    }

    fn reset_counts(&self, _view: &View<'_>, _value: &str) -> Result<Change, HandlerError> {
        on_write(self, |me, ctx| {
            me.count = 0;
            me.times = Times::default();
            me.sent.fill(Sent::default());
            me.start(ctx, me.interval_ns);
        })
    }
}

impl Element for ICMPPingSource {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        if self.mirror && !ctx.output_is_push(0) {
            return Err("MIRROR: the output is pulled, so that no ping can be sent at once".into());
        }
        if ctx.inputs() > 0 {
            self.sent = alloc::vec![Sent::default(); REMEMBERED];
        }
        self.start(ctx, self.interval_ns);
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let due = self.due_ns.take().unwrap_or_else(|| ctx.now_ns());
        if !self.may_send() {
            if self.stop {
                ctx.stop();
            }
            return;
        }
        if let Some(packet) = self.make(ctx) {
            ctx.push_one(0, packet);
        }
        self.set(ctx, due.saturating_add(self.interval_ns).max(ctx.now_ns()));
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            let is_answer = self.receive(ctx, &packet);
            if !is_answer || !self.mirror {
                continue;
            }
            if let Some(ping) = self.mirror(ctx, packet) {
                ctx.push_one(0, ping);
            }
        }
        ctx.recycle(batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max && self.may_send() {
            let Some(packet) = self.make(ctx) else {
                break;
            };
            batch.push_back(packet);
        }
        if !self.may_send() && self.stop {
            ctx.stop();
        }
        batch
    }

    fn signal(&self) -> Signal {
        Signal::Always
    }
}
