// SPDX-License-Identifier: Apache-2.0
//! Counts packets or bytes by aggregate annotation.
//!
//! # Synopsis
//! `AggregateCounter([BYTES, IP_BYTES, MULTIPACKET, EXTRA_LENGTH, AGGREGATE_STOP, AGGREGATE_FREEZE, AGGREGATE_CALL, COUNT_STOP, COUNT_FREEZE,
//! COUNT_CALL, BANNER, CAPACITY])`. BYTES (default false) counts bytes, with IP_BYTES (default false) without what is in front of
//! the network header, with EXTRA_LENGTH (default true) those that were cut off, too. MULTIPACKET is accepted; a packet counts one.
//! When another aggregate comes after N of them, AGGREGATE_STOP N stops the router, AGGREGATE_FREEZE N takes no further ones in, and
//! AGGREGATE_CALL `N HANDLER [VALUE]` writes a handler; when the total reaches N, COUNT_STOP, COUNT_FREEZE and COUNT_CALL do. BANNER is put
//! into files. CAPACITY (default: as many as the router allows flows): groups of 16 numbers that can be counted; others are not.
//! # Ports
//! 1-2/1-2, agnostic; what comes in at input 1 counts only for aggregates that are known. If there are two outputs and it is
//! push, packets that do not count leave by the second.
//! # Handlers
//! * `write_text_file`, `write_ascii_file`, `write_ip_file`, `write_pdf_file`, `write_file` (write): writes the counts to a file, `-` is standard
//!   output: as text, as text with aggregates as addresses, as shares of the total, as pairs of 32-bit numbers.
//! * `count` (read): the total. `nagg` (read): how many aggregates. `freeze` (read, write): whether no further ones are taken in.
//!   `active` (read, write): whether anything is counted. `banner` (read, write): BANNER. `aggregate_call`, `count_call` (read, write).
//! * `stop` (write): stops counting and the router. `clear` (write): forgets all. `reaggregate_counts`, `counts_pdf` (write): counts become aggregates.
//! # Differences from Click
//! Counts have 64 bits (32 in binary files); MULTIPACKET has no effect.
//! # Example
//! `FromDump(in.pcap, STOP true) -> AggregateIPFlows -> a :: AggregateCounter -> Discard; DriverManager(pause, write a.write_text_file -);`
use crate::flows::Counts;
use crate::handler_call::HandlerCall;
use crate::prelude::*;
use click_core::anno;
use click_core::text::shift_word;

pub static ELEMENT: Class = Class {
    name: "AggregateCounter",
    ports: "1-2/1-2",
    args: &[
        keyword("BYTES"),
        keyword("IP_BYTES"),
        keyword("MULTIPACKET"),
        keyword("EXTRA_LENGTH"),
        keyword("AGGREGATE_STOP"),
        keyword("AGGREGATE_FREEZE"),
        keyword("AGGREGATE_CALL"),
        keyword("COUNT_STOP"),
        keyword("COUNT_FREEZE"),
        keyword("COUNT_CALL"),
        keyword("BANNER"),
        keyword("CAPACITY"),
    ],
    handlers: &[
        command(
            "write_text_file",
            set!(|me: &mut AggregateCounter, path: String, ctx| {
                me.write_file(ctx, &path, Format::Text);
            }),
        ),
        command(
            "write_ascii_file",
            set!(|me, path: String, ctx| me.write_file(ctx, &path, Format::Text)),
        ),
        command(
            "write_ip_file",
            set!(|me, path: String, ctx| me.write_file(ctx, &path, Format::Addresses)),
        ),
        command(
            "write_pdf_file",
            set!(|me, path: String, ctx| me.write_file(ctx, &path, Format::Shares)),
        ),
        command(
            "write_file",
            set!(|me, path: String, ctx| me.write_file(ctx, &path, Format::Binary)),
        ),
        read("count", |me, _| text(me.counts.total())),
        read("nagg", |me, _| text(me.counts.distinct())),
        read_write(
            "freeze",
            |me, _| text(me.frozen),
            set!(|me, frozen, _| me.frozen = frozen),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, _| me.active = active),
        ),
        read_write(
            "banner",
            |me, _| text(&me.banner),
            set!(|me, banner, _| me.banner = banner),
        ),
        read_write(
            "aggregate_call",
            |me, _| shown(me.aggregates.as_ref()),
            |me, view, value| {
                let limit = limit_of(view, value)?;
                on_write(me, move |me, _| me.aggregates = limit)
            },
        ),
        read_write(
            "count_call",
            |me, _| shown(me.total.as_ref()),
            |me, view, value| {
                let limit = limit_of(view, value)?;
                on_write(me, move |me, _| me.total = limit)
            },
        ),
        command("stop", run!(|me, ctx| me.stop(ctx))),
        command("clear", run!(|me, _| me.counts.clear())),
        command("reaggregate_counts", run!(|me, _| me.reaggregate())),
        command("counts_pdf", run!(|me, _| me.reaggregate())),
    ],
    build,
    ..Class::DEFAULT
};

/// The action at a limit.
#[derive(Clone, Debug)]
enum Event {
    Stop,
    Freeze,
    Call(HandlerCall),
}

/// Something that happens once.
#[derive(Clone, Debug)]
struct Limit {
    at: u64,
    event: Event,
}

impl FromArg for Limit {
    fn from_arg(arg: &str, at: click_core::ArgContext<'_>) -> Result<Self, String> {
        let (count, call) = shift_word(arg);
        Ok(Self {
            at: u64::from_arg(&count, at)?,
            event: Event::Call(HandlerCall::from_arg(&call, at)?),
        })
    }
}

/// The one limit of three that is given; outer `None` if one is wrong or there are more.
fn limit(a: &mut Args<'_>, names: [&str; 3]) -> Option<Option<Limit>> {
    let plain = |event| move |at| Limit { at, event };
    let stop = a.opt(names[0])?.map(plain(Event::Stop));
    let freeze = a.opt(names[1])?.map(plain(Event::Freeze));
    let given: Vec<Limit> = [stop, freeze, a.opt(names[2])?]
        .into_iter()
        .flatten()
        .collect();
    if given.len() > 1 {
        let [stop, freeze, call] = names;
        a.error(
            stop,
            format!("{stop}, {freeze} and {call} are mutually exclusive"),
        );
        return None;
    }
    Some(given.into_iter().next())
}

fn build(a: &mut Args<'_>) -> Built {
    let (bytes, ip_bytes) = (a.or("BYTES", false), a.or("IP_BYTES", false));
    let (multipacket, extra_length) = (a.or("MULTIPACKET", true), a.or("EXTRA_LENGTH", true));
    multipacket?;
    let aggregates = limit(a, ["AGGREGATE_STOP", "AGGREGATE_FREEZE", "AGGREGATE_CALL"]);
    let total = limit(a, ["COUNT_STOP", "COUNT_FREEZE", "COUNT_CALL"]);
    let banner = a.or("BANNER", String::new());
    let most = a.environment().limits.flows;
    let capacity = a.or("CAPACITY", most)?;
    if capacity > most {
        a.error(
            "CAPACITY",
            format!("{capacity} is out of range, the most is {most}"),
        );
    }
    Some(Box::new(AggregateCounter {
        bytes: bytes?,
        ip_bytes: ip_bytes?,
        extra_length: extra_length?,
        aggregates: aggregates?,
        total: total?,
        banner: banner?,
        counts: Counts::new(capacity, 1),
        capacity,
        frozen: false,
        active: true,
        ways: Vec::new(),
    }))
}

#[derive(Default)]
struct AggregateCounter {
    bytes: bool,
    ip_bytes: bool,
    extra_length: bool,
    aggregates: Option<Limit>,
    total: Option<Limit>,
    banner: String,
    counts: Counts,
    capacity: usize,
    frozen: bool,
    active: bool,
    ways: Vec<usize>,
}

/// How counts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Addresses,
    Shares,
    Binary,
}

impl AggregateCounter {
    fn amount(&self, packet: &Packet) -> u64 {
        if !self.bytes {
            return 1;
        }
        let extra = if self.extra_length {
            packet.anno().u32(anno::EXTRA_LENGTH)
        } else {
            0
        };
        let front = packet
            .network_offset()
            .filter(|_| self.ip_bytes)
            .unwrap_or(0);
        let length = (packet.len() as u64).saturating_add_signed(-(front as i64));
        length + u64::from(extra)
    }

    /// Counts a packet; false if it does not count.
    fn count(&mut self, ctx: &mut Context<'_>, packet: &Packet, known_only: bool) -> bool {
        if !self.active {
            return false;
        }
        let (number, amount) = (packet.anno().u32(anno::AGGREGATE), self.amount(packet));
        let limited = known_only || self.frozen || self.aggregates.is_some();
        if limited && amount > 0 && self.counts.get(number) == 0 {
            let limit = self
                .aggregates
                .take_if(|limit| self.counts.distinct() >= limit.at);
            limit
                .into_iter()
                .for_each(|limit| self.reach(ctx, limit.event));
            if known_only || self.frozen || !self.active {
                return false;
            }
        }
        let counted = self.counts.add(number, amount);
        let limit = self.total.take_if(|limit| self.counts.total() >= limit.at);
        limit
            .into_iter()
            .for_each(|limit| self.reach(ctx, limit.event));
        counted
    }

    fn reach(&mut self, ctx: &mut Context<'_>, event: Event) {
        match event {
            Event::Freeze => self.frozen = true,
            Event::Stop => self.stop(ctx),
            Event::Call(call) => call.make_from(ctx, self),
        }
    }

    fn stop(&mut self, ctx: &mut Context<'_>) {
        self.active = false;
        ctx.stop();
    }

    /// The file of all counts.
    fn file(&self, format: Format) -> Vec<u8> {
        let line_end = if self.banner.is_empty() || self.banner.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let head = format!(
            "!IPAggregate 1.0\n{}{line_end}!num_nonzero {}\n",
            self.banner,
            self.counts.distinct()
        );
        let mut file = head.into_bytes();
        file.extend(match format {
            Format::Binary => "!packed_le\n".as_bytes(),
            Format::Addresses => "!ip\n".as_bytes(),
            _ => &[],
        });
        let total = self.counts.total() as f64;
        for (number, count) in self.counts.sorted() {
            let line = match format {
                Format::Text => format!("{number} {count}\n"),
                Format::Addresses => format!("{} {count}\n", Ipv4Addr::from(number)),
                Format::Shares => format!("{number} {}\n", count as f64 / total),
                Format::Binary => {
                    file.extend(number.to_le_bytes());
                    file.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
                    continue;
                }
            };
            file.extend(line.as_bytes());
        }
        file
    }

    fn write_file(&self, ctx: &mut Context<'_>, path: &str, format: Format) {
        let (file, host) = (self.file(format), ctx.host());
        let written = match host {
            None => Err(format!("{path}: there are no files here")),
            Some(_) if path == "-" && format != Format::Binary => {
                ctx.print_out(&String::from_utf8_lossy(&file));
                Ok(())
            }
            Some(host) => host.write_file(path, false, &file),
        };
        if let Err(message) = written {
            let line = format!("{}: {message}", ctx.name());
            ctx.print(&line);
        }
    }

    /// Counts how often each count occurs.
    fn reaggregate(&mut self) {
        let counts = self.counts.sorted();
        self.counts.clear();
        for (_, count) in counts {
            self.counts.add(u32::try_from(count).unwrap_or(u32::MAX), 1);
        }
    }
}

fn shown(limit: Option<&Limit>) -> Text {
    match limit {
        Some(Limit {
            at,
            event: Event::Call(call),
        }) => Ok(format!("{at} {call}")),
        _ => Ok(String::new()),
    }
}

/// The value of a handler with a limit; nothing means none.
fn limit_of(view: &View<'_>, value: &str) -> Result<Option<Limit>, HandlerError> {
    match value {
        "" => Ok(None),
        _ => Ok(Some(view.parse(value)?)),
    }
}

impl Element for AggregateCounter {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.counts = Counts::new(self.capacity, ctx.random());
        for limit in [&self.aggregates, &self.total].into_iter().flatten() {
            if let Event::Call(call) = &limit.event {
                call.check(ctx)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        let mut ways = core::mem::take(&mut self.ways);
        ways.clear();
        let other = usize::from(ctx.outputs() > 1);
        let output_port = |counted| if counted { 0 } else { other };
        ways.extend(
            batch
                .iter()
                .map(|packet| output_port(self.count(ctx, packet, port == 1))),
        );
        ctx.push_runs(batch, &ways);
        self.ways = ways;
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        let batch = ctx.pull(port.min(ctx.inputs() - 1), max);
        for packet in batch.iter() {
            self.count(ctx, packet, port == 1);
        }
        batch
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            core::mem::swap(&mut self.counts, &mut old.counts);
            (self.frozen, self.active) = (old.frozen, old.active);
        }
    }
}
