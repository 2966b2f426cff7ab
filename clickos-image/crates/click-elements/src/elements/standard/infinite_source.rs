// SPDX-License-Identifier: Apache-2.0
//! Makes packets as fast as they are taken.
//!
//! # Synopsis
//! `InfiniteSource([DATA, LIMIT, BURST, ACTIVE, LENGTH, STOP, TIMESTAMP, END_CALL])`: packets with content DATA (default
//! 64 bytes) cut or filled with zeros to LENGTH; at most LIMIT (default -1: no limit), BURST (default 1)
//! each time, only while ACTIVE (default true). With STOP the router stops behind the last one.
//! TIMESTAMP (default true) sets the timestamp annotation.
//! END_CALL (`HANDLER VALUE`) is written behind the last one.
//! # Ports
//! 0/1, agnostic. It rests while a queue it pushes to is full.
//! # Handlers
//! * `count` (read): packets made. `reset` (write): sets it to 0, so that LIMIT more are made.
//! * `data`, `length`, `limit`, `burst`, `active` (read, write): the arguments.
//! # Example
//! `InfiniteSource(LENGTH 60, LIMIT 1000, STOP true) -> Counter -> Discard;`
use crate::handler_call::HandlerCall;
use crate::prelude::*;
use crate::standard::default_data;

pub static ELEMENT: Class = Class {
    name: "InfiniteSource",
    ports: "0/1",
    args: &[
        optional("DATA"),
        optional("LIMIT"),
        optional("BURST"),
        optional("ACTIVE"),
        keyword("LENGTH"),
        keyword("STOP"),
        keyword("TIMESTAMP"),
        keyword("END_CALL"),
    ],
    handlers: &[
        read("count"),
        write("reset"),
        read_write("data"),
        read_write("length"),
        read_write("limit"),
        read_write("burst"),
        read_write("active"),
    ],
    build: |a| {
        let (data, limit, burst) = (
            a.or("DATA", default_data()),
            a.or("LIMIT", -1i64),
            a.or("BURST", 1usize),
        );
        let (active, length) = (a.or("ACTIVE", true), a.or("LENGTH", -1i64));
        let (stop, timestamp) = (a.or("STOP", false), a.or("TIMESTAMP", true));
        let end_call = a.opt("END_CALL");
        let mut source = InfiniteSource {
            data: data?.0,
            length: length?,
            limit: limit?,
            burst: burst?,
            active: active?,
            stop: stop?,
            timestamp: timestamp?,
            end_call: end_call?,
            content: Vec::new(),
            count: 0,
        };
        source.fill();
        Some(Box::new(source))
    },
    ..Class::DEFAULT
};

struct InfiniteSource {
    data: Vec<u8>,
    length: i64,
    limit: i64,
    burst: usize,
    active: bool,
    stop: bool,
    timestamp: bool,
    end_call: Option<HandlerCall>,
    content: Vec<u8>,
    count: u64,
}

impl InfiniteSource {
    fn fill(&mut self) {
        self.content.clone_from(&self.data);
        if let Ok(length) = usize::try_from(self.length) {
            self.content.resize(length.min(click_core::MAX_PACKET), 0);
        }
    }

    fn allowance(&self) -> usize {
        let Ok(limit) = u64::try_from(self.limit) else {
            return self.burst;
        };
        self.burst
            .min(usize::try_from(limit.saturating_sub(self.count)).unwrap_or(usize::MAX))
    }

    fn make(&mut self, ctx: &mut Context<'_>, most: usize) -> Batch {
        let mut batch = ctx.batch();
        for _ in 0..most {
            let Some(mut packet) = ctx.pool().packet_from(&self.content) else {
                break;
            };
            if self.timestamp {
                packet.set_timestamp_ns(ctx.now_ns());
            }
            batch.push_back(packet);
        }
        self.count += batch.len() as u64;
        if !batch.is_empty() && u64::try_from(self.limit).is_ok_and(|limit| self.count >= limit) {
            self.end(ctx);
        }
        batch
    }
}

impl InfiniteSource {
    /// LIMIT was reached.
    fn end(&mut self, ctx: &mut Context<'_>) {
        if let Some(call) = self.end_call.clone() {
            call.make(ctx);
        }
        if self.stop {
            ctx.stop();
        }
    }
}

impl Element for InfiniteSource {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.end_call.iter().try_for_each(|c| c.check(ctx))?;
        if ctx.output_is_push(0) {
            ctx.schedule();
        }
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let most = self.allowance();
        if !self.active || most == 0 || !ctx.output_is_push(0) || !ctx.writable(0) {
            return false;
        }
        let batch = self.make(ctx, most);
        let worked = !batch.is_empty();
        ctx.push(0, batch);
        ctx.schedule();
        worked
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let most = if self.active {
            self.allowance().min(max)
        } else {
            0
        };
        self.make(ctx, most)
    }

    fn signal(&self) -> Signal {
        Signal::Always
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "count" => text(self.count),
            "data" => text(String::from_utf8_lossy(&self.data)),
            "length" => text(self.length),
            "limit" => text(self.limit),
            "burst" => text(self.burst),
            "active" => text(self.active),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        let change = |set: Box<dyn FnOnce(&mut Self)>| {
            Ok(Change::of(move |me: &mut Self, ctx| {
                set(me);
                me.fill();
                ctx.schedule();
            }))
        };
        match handler {
            "reset" => change(Box::new(|me| me.count = 0)),
            "data" => {
                let data = view.parse::<Bytes>(value)?.0;
                change(Box::new(|me| me.data = data))
            }
            "length" => {
                let length = view.parse(value)?;
                change(Box::new(move |me| me.length = length))
            }
            "limit" => {
                let limit = view.parse(value)?;
                change(Box::new(move |me| me.limit = limit))
            }
            "burst" => {
                let burst = view.parse(value)?;
                change(Box::new(move |me| me.burst = burst))
            }
            "active" => {
                let active = view.parse(value)?;
                change(Box::new(move |me| me.active = active))
            }
            _ => undeclared(handler),
        }
    }
}
