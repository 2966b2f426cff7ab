// SPDX-License-Identifier: Apache-2.0
//! Measures how long numbered packets took from a RecordTimestamp to here.
//!
//! # Synopsis
//! `TimestampDiff(RECORDER [, OFFSET, N, MAXDELAY, NANO, SAMPLE, VERBOSE, TC_OFFSET, TC_MASK])`: reads a packet's number
//! at OFFSET (default 40). It keeps the time since RECORDER, a RecordTimestamp, noted that number: in microseconds, with
//! NANO (default false) in nanoseconds. It keeps N delays; the default 0 means the router's limit of flows. A delay above
//! MAXDELAY milliseconds (default 1000) is not kept, and with VERBOSE (default false) reported. Packets whose number is no
//! multiple of SAMPLE (default 1) do not count. The byte at TC_OFFSET (default -1: none), masked with TC_MASK (default
//! 255), is a packet's class for `avg_tc`.
//! # Ports
//! 1/1-2, push. Output 1 gets packets whose time is not known.
//! # Handlers
//! * `average`, `avg`, `min`, `max`, `stddev` (read; the parameter is the first delay that counts, default 0).
//! * `avg_tc` (read; the parameter is a class, and the first delay).
//! * `median`, `perc00`, `perc01`, `perc05`, `perc10`, `perc25`, `perc75`, `perc90`, `perc95`, `perc99`, `perc100`
//!   (read; likewise): percentiles. `perc` (read; the parameter is a percentage, and the first delay).
//! * `last` (read): the last delay. `index` (read): its place, -1 without one.
//! * `dump` (read): all delays, `PLACE: DELAY` a line. `dump_list` (read): without places.
//! # Differences from Click
//! See `NumberPacket`.
//! # Example
//! `n :: NumberPacket(0) -> r :: RecordTimestamp(OFFSET 0) -> TimestampDiff(r, OFFSET 0) -> Discard;`
use click_core::listing;
use click_core::memory::{RESERVE, has_room};
use click_core::text::shift_word;

use crate::decimal;
use crate::packet_number::PacketNumber;
use crate::prelude::*;
use crate::recorded_times::{Recorder, Shared};

pub static ELEMENT: Class = Class {
    name: "TimestampDiff",
    ports: "1/1-2",
    processing: "h/h",
    args: &[
        mandatory("RECORDER"),
        keyword("OFFSET"),
        keyword("N"),
        keyword("MAXDELAY"),
        keyword("NANO"),
        keyword("SAMPLE"),
        keyword("VERBOSE"),
        keyword("TC_OFFSET"),
        keyword("TC_MASK"),
    ],
    handlers: &[
        read("average", |me: &mut TimestampDiff, v| {
            me.average(v, v.param())
        }),
        read("avg", |me, v| me.average(v, v.param())),
        read("avg_tc", |me, v| me.average_of_class(v)),
        read("min", |me, v| me.percentile(v, 0.0, v.param())),
        read("max", |me, v| me.percentile(v, 100.0, v.param())),
        read("stddev", |me, v| me.deviation(v)),
        read("median", |me, v| me.percentile(v, 50.0, v.param())),
        read("perc00", |me, v| me.percentile(v, 0.0, v.param())),
        read("perc01", |me, v| me.percentile(v, 1.0, v.param())),
        read("perc05", |me, v| me.percentile(v, 5.0, v.param())),
        read("perc10", |me, v| me.percentile(v, 10.0, v.param())),
        read("perc25", |me, v| me.percentile(v, 25.0, v.param())),
        read("perc75", |me, v| me.percentile(v, 75.0, v.param())),
        read("perc90", |me, v| me.percentile(v, 90.0, v.param())),
        read("perc95", |me, v| me.percentile(v, 95.0, v.param())),
        read("perc99", |me, v| me.percentile(v, 99.0, v.param())),
        read("perc100", |me, v| me.percentile(v, 100.0, v.param())),
        read("perc", |me, v| me.any_percentile(v)),
        read("last", |me, _| {
            text(me.delays.last().map_or(0, |d| d.delay))
        }),
        read("index", |me, _| text(me.delays.len() as i64 - 1)),
        read("dump", |me, view| me.dump(view, true)),
        read("dump_list", |me, view| me.dump(view, false)),
    ],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (recorder, number) = (a.need("RECORDER"), PacketNumber::offset(a));
    let (n, max_ms) = (a.or("N", 0usize), a.or("MAXDELAY", 1000u32));
    let (nano, sample) = (a.or("NANO", false), a.or("SAMPLE", 1u32));
    let verbose = a.or("VERBOSE", false);
    let (class_at, class_mask) = (a.or("TC_OFFSET", -1i64), a.or("TC_MASK", 255u8));
    let (most, n) = (a.environment().limits.flows, n?);
    if n > most {
        a.error("N", format!("{n} is out of range, the most is {most}"));
    }
    Some(Box::new(TimestampDiff {
        recorder: recorder?,
        times: None,
        number: number?,
        most: if n == 0 { most } else { n },
        max_ns: u64::from(max_ms?) * 1_000_000,
        unit_ns: if nano? { 1 } else { 1000 },
        sample: u64::from(sample?.max(1)),
        verbose: verbose?,
        class_at: usize::try_from(class_at?).ok(),
        class_mask: class_mask?,
        delays: Vec::new(),
    }))
}

/// Delays that the first one makes room for.
const FIRST_DELAYS: usize = 64;

#[derive(Clone, Copy)]
struct Delay {
    delay: u32,
    class: u8,
}

struct TimestampDiff {
    recorder: String,
    /// Known once the router starts.
    times: Option<Shared>,
    number: PacketNumber,
    most: usize,
    max_ns: u64,
    unit_ns: u64,
    sample: u64,
    verbose: bool,
    class_at: Option<usize>,
    class_mask: u8,
    delays: Vec<Delay>,
}

/// The fault of a packet.
enum Fault {
    Unknown,
    TooLate { number: u64, ms: u64 },
}

impl TimestampDiff {
    fn measure(&mut self, packet: &Packet, now_ns: u64) -> Result<(), Fault> {
        let number = self.number.of(packet).ok_or(Fault::Unknown)?;
        if number % self.sample != 0 {
            return Ok(());
        }
        let then = self
            .times
            .as_ref()
            .and_then(|t| t.borrow_mut().take(number));
        let ns = now_ns.saturating_sub(then.ok_or(Fault::Unknown)?);
        if ns > self.max_ns {
            let ms = ns / 1_000_000;
            return Err(Fault::TooLate { number, ms });
        }
        self.keep(packet, ns);
        Ok(())
    }

    fn keep(&mut self, packet: &Packet, ns: u64) {
        if self.delays.len() >= self.most || !self.grow() {
            return;
        }
        let byte = self.class_at.and_then(|at| packet.data().get(at));
        self.delays.push(Delay {
            delay: u32::try_from(ns / self.unit_ns).unwrap_or(u32::MAX),
            class: byte.map_or(0, |byte| byte & self.class_mask),
        });
    }

    /// True if there is room for one more delay. A list that grows is copied.
    fn grow(&mut self) -> bool {
        let length = self.delays.len();
        if length < self.delays.capacity() {
            return true;
        }
        let more = length.max(FIRST_DELAYS).min(self.most - length);
        let bytes = (length + more) * size_of::<Delay>();
        if !has_room(bytes + RESERVE) {
            return false;
        }
        self.delays.reserve_exact(more);
        true
    }

    fn report(&self, ctx: &mut Context<'_>, number: u64, ms: u64) {
        let (name, limit) = (ctx.name(), self.max_ns / 1_000_000);
        let line = format!("{name}: packet {number} took {ms} ms, MAXDELAY is {limit} ms");
        ctx.print(&line);
    }

    /// The delays from the place that a handler's parameter names.
    fn from(&self, view: &View<'_>, param: &str) -> Result<&[Delay], HandlerError> {
        let first: usize = match param.trim() {
            "" => 0,
            number => view.parse(number)?,
        };
        Ok(self.delays.get(first..).unwrap_or(&[]))
    }

    fn average(&self, view: &View<'_>, param: &str) -> Text {
        text(mean(self.from(view, param)?.iter()))
    }

    fn average_of_class(&self, view: &View<'_>) -> Text {
        let (class, param) = shift_word(view.param());
        let class: u8 = view.parse(&class)?;
        let delays = self.from(view, &param)?.iter();
        text(mean(delays.filter(|d| d.class == class)))
    }

    fn deviation(&self, view: &View<'_>) -> Text {
        let delays = self.from(view, view.param())?;
        let mean = mean(delays.iter());
        let squares = delays.iter().map(|d| {
            let off = f64::from(d.delay) - mean;
            off * off
        });
        let variance = squares.sum::<f64>() / delays.len().max(1) as f64;
        text(root(variance))
    }

    fn percentile(&self, view: &View<'_>, percent: f64, param: &str) -> Text {
        let mut delays: Vec<u32> = self.from(view, param)?.iter().map(|d| d.delay).collect();
        let Some(last) = delays.len().checked_sub(1) else {
            return text(0);
        };
        let place = (percent * delays.len() as f64 / 100.0) as usize;
        let (_, delay, _) = delays.select_nth_unstable(place.min(last));
        text(*delay)
    }

    fn any_percentile(&self, view: &View<'_>) -> Text {
        let (percent, param) = shift_word(view.param());
        let wanted = decimal::parse(&percent).filter(|p| (0.0..=100.0).contains(p));
        let Some(wanted) = wanted else {
            let got = percent.shown();
            let message = format!("expected a percentage from 0 to 100, got \"{got}\"");
            return Err(HandlerError::rejected(message));
        };
        self.percentile(view, wanted, &param)
    }

    fn dump(&self, view: &View<'_>, places: bool) -> Text {
        let numbered = self.delays.iter().enumerate();
        let lines = numbered.map(|(place, Delay { delay, .. })| match places {
            true => format!("{place}: {delay}\n"),
            false => format!("{delay}\n"),
        });
        let limits = &view.arg_context().environment.limits;
        Ok(listing(limits, lines))
    }
}

/// The mean; 0 of none.
fn mean<'d>(delays: impl Iterator<Item = &'d Delay>) -> f64 {
    let (mut count, mut sum) = (0u64, 0u64);
    for Delay { delay, .. } in delays {
        (count, sum) = (count + 1, sum + u64::from(*delay));
    }
    sum as f64 / count.max(1) as f64
}

/// The square root by Newton's method, which `core` lacks.
fn root(square: f64) -> f64 {
    if square <= 0.0 {
        return 0.0;
    }
    let mut root = square.max(1.0);
    for _ in 0..ROOT_STEPS {
        root = (root + square / root) / 2.0;
    }
    root
}

/// Enough for a square of 64 bits: each step halves the exponent's error, and the last ones double the digits.
const ROOT_STEPS: usize = 48;

impl InPlace for TimestampDiff {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match self.measure(packet, ctx.now_ns()) {
            Ok(()) => 0,
            Err(Fault::Unknown) => 1,
            Err(Fault::TooLate { number, ms }) => {
                if self.verbose {
                    self.report(ctx, number, ms);
                }
                0
            }
        }
    }
}

impl Element for TimestampDiff {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let times = ctx.peer(&self.recorder, |peer| {
            let recorder: Option<&Recorder> = peer.as_any().downcast_ref();
            recorder.map(|r| Shared::clone(&r.times))
        });
        let recorder = &self.recorder;
        let missing = || format!("RECORDER: \"{recorder}\" is not a RecordTimestamp");
        let times = times.flatten().ok_or_else(missing)?;
        self.number.net_order = times.borrow().net_order;
        self.times = Some(times);
        Ok(())
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            if self.unit_ns == old.unit_ns {
                self.delays = core::mem::take(&mut old.delays);
                self.delays.truncate(self.most);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_exact() {
        for number in [0.0, 1.0, 9.0, 4e9] {
            assert!((root(number * number) - number).abs() <= number * 1e-12 + 1e-9);
        }
    }
}
