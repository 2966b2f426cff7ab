// SPDX-License-Identifier: Apache-2.0
//! Makes a packet now and then.
//!
//! # Synopsis
//! `TimedSource([INTERVAL, DATA, LIMIT, ACTIVE, STOP, HEADROOM])`: every INTERVAL seconds (default 0.5, at least
//! 1 ms) a packet with content DATA (default 69 bytes) and HEADROOM bytes free in front of it; at most
//! LIMIT (default -1: no limit), only while ACTIVE (default true). With STOP (default false) the router
//! stops when the packet after the last would be due.
//! # Ports
//! 0/1, push.
//! # Handlers
//! * `count` (read): packets made. `reset` (write): sets it to 0, so that LIMIT more are made.
//! * `interval`, `data`, `limit`, `active`, `headroom` (read, write): the arguments.
//! # Differences from Click
//! Intervals are at least 1 ms, and late events are not made up for. Default packets hold 69
//! letters.
//! # Example
//! `TimedSource(0.2, \<00112233>) -> ToDevice(0);`
use click_core::{HEADROOM, MAX_PACKET};

use crate::prelude::*;
use crate::standard::default_data;
use crate::standard::interval::{Interval, interval};

pub static ELEMENT: Class = Class {
    name: "TimedSource",
    ports: "0/1",
    processing: "h/h",
    args: &[
        optional("INTERVAL"),
        optional("DATA"),
        keyword("LIMIT"),
        keyword("ACTIVE"),
        keyword("STOP"),
        keyword("HEADROOM"),
    ],
    handlers: &[
        read("count", |me: &mut TimedSource, _| text(me.count)),
        command(
            "reset",
            run!(|me, ctx| {
                me.count = 0;
                me.wake(ctx);
            }),
        ),
        read_write(
            "interval",
            |me, _| text(interval(me.interval)),
            set!(|me, Interval(interval), _| {
                me.interval = interval;
            }),
        ),
        read_write(
            "data",
            |me, _| text(String::from_utf8_lossy(&me.data)),
            set!(|me, data: Bytes, _| me.data = data.0),
        ),
        read_write(
            "limit",
            |me, _| text(me.limit),
            set!(|me, limit, _| me.limit = limit),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                me.wake(ctx);
            }),
        ),
        read_write(
            "headroom",
            |me, _| text(me.headroom),
            TimedSource::set_headroom,
        ),
    ],
    build: |a| {
        let interval = a.or("INTERVAL", Interval::HALF_SECOND);
        let (data, limit) = (a.or("DATA", default_data()), a.or("LIMIT", -1i64));
        let (active, stop) = (a.or("ACTIVE", true), a.or("STOP", false));
        let headroom = a.or("HEADROOM", HEADROOM)?;
        if headroom > MAX_PACKET {
            a.error("HEADROOM", too_much(headroom));
        }
        Some(Box::new(TimedSource {
            interval: interval?.0,
            data: data?.0,
            limit: limit?,
            active: active?,
            stop: stop?,
            headroom,
            count: 0,
            timer_ns: None,
        }))
    },
    ..Class::DEFAULT
};

fn too_much(headroom: usize) -> String {
    format!("{headroom} is out of range, the most is {MAX_PACKET}")
}

struct TimedSource {
    interval: Span,
    data: Vec<u8>,
    limit: i64,
    active: bool,
    stop: bool,
    headroom: usize,
    count: u64,
    timer_ns: Option<u64>,
}

impl TimedSource {
    fn at_limit(&self) -> bool {
        u64::try_from(self.limit).is_ok_and(|limit| self.count >= limit)
    }

    fn set_timer(&mut self, ctx: &mut Context<'_>, at_ns: u64) {
        self.timer_ns = Some(at_ns);
        ctx.set_timer(at_ns);
    }

    /// Continues now, unless it does so anyway.
    fn wake(&mut self, ctx: &mut Context<'_>) {
        if self.active && self.timer_ns.is_none() {
            self.set_timer(ctx, ctx.now_ns());
        }
    }

    fn make(&mut self, ctx: &mut Context<'_>) {
        self.count += 1;
        let packet = ctx.pool().alloc_with(self.headroom, self.data.len());
        if let Some(mut packet) = packet {
            packet.data_mut().copy_from_slice(&self.data);
            packet.set_timestamp_ns(ctx.now_ns());
            ctx.push_one(0, packet);
        }
    }
}

impl TimedSource {
    fn set_headroom(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let headroom = view.parse(value)?;
        if headroom > MAX_PACKET {
            return Err(HandlerError::rejected(too_much(headroom)));
        }
        Ok(Change::of(move |me: &mut Self, _| me.headroom = headroom))
    }
}

impl Element for TimedSource {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        if self.active {
            self.set_timer(ctx, ctx.now_ns().saturating_add(self.interval.ns));
        }
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let due = self.timer_ns.take();
        if !self.active {
            return;
        }
        if self.at_limit() {
            if self.stop {
                ctx.stop();
            }
            return;
        }
        self.make(ctx);
        let next = due.unwrap_or(0).saturating_add(self.interval.ns);
        self.set_timer(ctx, next.max(ctx.now_ns()));
    }
}
