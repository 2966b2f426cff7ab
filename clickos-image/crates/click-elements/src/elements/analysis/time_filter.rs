// SPDX-License-Identifier: Apache-2.0
//! Lets packets pass whose timestamps lie in a range.
//!
//! # Synopsis
//! `TimeFilter([START, END, START_DELAY, END_DELAY, START_AFTER, END_AFTER, INTERVAL, STOP, END_CALL])`: from START
//! until before END. `_DELAY` counts from the router's start, `_AFTER` from the first packet's time, INTERVAL from the
//! range's start; at most one is given for each end of the range, 0 is as if it was not given. The first packet behind
//! the range stops the router with STOP (default false), or makes END_CALL (`HANDLER VALUE`; `$t` in VALUE stands
//! for its time): if that moves the end, the packet may pass after all.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets the others; they are dropped if it is not connected.
//! # Handlers
//! * `start`, `end` (read, write): the range.
//! * `interval` (read, write): its length; writing moves the end.
//! * `extend_interval` (write): moves the end by so much.
//! # Example
//! `FromDump(in.pcap) -> TimeFilter(START_AFTER 60, INTERVAL 10, STOP true) -> ToDump(out.pcap);`
use crate::handler_call::HandlerCall;
use crate::prelude::*;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "TimeFilter",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        optional("START"),
        optional("END"),
        keyword("START_DELAY"),
        keyword("END_DELAY"),
        keyword("START_AFTER"),
        keyword("END_AFTER"),
        keyword("INTERVAL"),
        keyword("STOP"),
        keyword("END_CALL"),
    ],
    handlers: &[
        read_write(
            "start",
            |me: &mut TimeFilter, _| text(me.start),
            TimeFilter::set_start,
        ),
        read_write(
            "end",
            |me, _| text(me.end),
            set!(|me, end, _| me.set_end(end)),
        ),
        read_write(
            "interval",
            |me, _| text(me.end.minus(me.start)),
            set!(|me, length, _| {
                me.set_end(me.start.plus(length));
            }),
        ),
        command(
            "extend_interval",
            set!(|me, more, _| {
                (me.end, me.armed) = (me.end.plus(more), true);
            }),
        ),
    ],
    build,
    ..Class::DEFAULT
};

/// The time that a limit of the range counts from.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Base {
    #[default]
    Epoch,
    RouterStart,
    FirstPacket,
    RangeStart,
}

const STARTS: [(&str, Base); 3] = [
    ("START", Base::Epoch),
    ("START_DELAY", Base::RouterStart),
    ("START_AFTER", Base::FirstPacket),
];
const ENDS: [(&str, Base); 4] = [
    ("END", Base::Epoch),
    ("END_DELAY", Base::RouterStart),
    ("END_AFTER", Base::FirstPacket),
    ("INTERVAL", Base::RangeStart),
];

/// The one of `ways` that is given.
fn limit(a: &mut Args<'_>, ways: &[(&'static str, Base)], default: Time) -> Option<(Time, Base)> {
    let mut found = None;
    for (name, base) in ways {
        let time = a.or(name, Time(0))?;
        if !time.is_unset() && found.replace((time, *base)).is_some() {
            let names: Vec<_> = ways.iter().map(|(name, _)| *name).collect();
            a.error(name, format!("at most one of {}", names.join(", ")));
            return None;
        }
    }
    Some(found.unwrap_or((default, Base::Epoch)))
}

fn build(a: &mut Args<'_>) -> Built {
    let start = limit(a, &STARTS, Time(0));
    let end = limit(a, &ENDS, Time(i64::MAX));
    let (stop, call) = (a.or("STOP", false), a.opt::<HandlerCall>("END_CALL"));
    let (stop, call) = (stop?, call?);
    if stop && call.is_some() {
        a.error("STOP", "at most one of STOP, END_CALL");
    }
    let (start, end) = (start?, end?);
    Some(Box::new(TimeFilter {
        start: start.0,
        start_base: start.1,
        end: end.0,
        end_base: end.1,
        seen: false,
        armed: true,
        stop,
        call,
    }))
}

#[derive(Default)]
struct TimeFilter {
    start: Time,
    start_base: Base,
    end: Time,
    end_base: Base,
    /// True if the first packet has come.
    seen: bool,
    /// True if the end is still to be announced.
    armed: bool,
    stop: bool,
    call: Option<HandlerCall>,
}

impl TimeFilter {
    /// Makes limits that count from `base`, which is now known to be `time`, absolute.
    fn fix(&mut self, base: Base, time: Time) {
        if self.start_base == base {
            (self.start, self.start_base) = (self.start.plus(time), Base::Epoch);
        }
        if self.end_base == base {
            (self.end, self.end_base) = (self.end.plus(time), Base::Epoch);
        }
    }

    fn first_packet(&mut self, time: Time) {
        self.seen = true;
        self.fix(Base::FirstPacket, time);
        self.fix(Base::RangeStart, self.start);
    }

    /// Announces the end; the call may move it.
    fn end_reached(&mut self, ctx: &mut Context<'_>, time: Time) {
        self.armed = false;
        if self.stop {
            ctx.stop();
        }
        if let Some(call) = self.call.clone() {
            call.with("t", &time.to_string()).make_from(ctx, self);
        }
    }

    fn is_inside(&mut self, ctx: &mut Context<'_>, time: Time) -> bool {
        if !self.seen {
            self.first_packet(time);
        }
        while time >= self.end.max(self.start) && self.armed {
            let before = self.end;
            self.end_reached(ctx, time);
            if self.end <= before {
                break;
            }
        }
        self.start <= time && time < self.end
    }

    fn set_end(&mut self, end: Time) {
        (self.end, self.end_base, self.armed) = (end, Base::Epoch, true);
    }
}

impl InPlace for TimeFilter {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match self.is_inside(ctx, Time::of(packet)) {
            true => 0,
            false => 1,
        }
    }
}

impl TimeFilter {
    fn set_start(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        on_value(self, view, value, |me, start, _| {
            if !me.seen {
                me.first_packet(start);
            }
            me.start = start;
        })
    }
}

impl Element for TimeFilter {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.fix(Base::RouterStart, Time::now(ctx));
        self.call.iter().try_for_each(|call| call.check(ctx))
    }
}
