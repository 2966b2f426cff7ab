// SPDX-License-Identifier: Apache-2.0
//! Sends Ethernet PAUSE frames.
//!
//! # Synopsis
//! `EtherPauseSource(SRC, PAUSETIME [, DST, LIMIT, ACTIVE, INTERVAL])`: asks the other end of the wire to be silent for PAUSETIME
//! times 512 bits (IEEE 802.3, annex 31B). DST is 01:80:C2:00:00:01 unless given. A frame every INTERVAL (default 1s, at
//! least 1ms), at most LIMIT (default -1: no limit), only while ACTIVE (default true).
//! # Ports
//! 0/1, agnostic. If the output is pulled, every pull gives a frame.
//! # Handlers
//! * `count` (read): frames made. `reset_counts` (write): sets it to 0.
//! * `src`, `dst`, `pausetime`, `limit`, `active` (read, write): the arguments.
//! # Example
//! `EtherPauseSource(vif0, 0xffff, INTERVAL 0.5) -> ToDevice(0);`
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EtherPauseSource",
    ports: "0/1",
    args: &[
        mandatory("SRC"),
        mandatory("PAUSETIME"),
        keyword("DST"),
        keyword("LIMIT"),
        keyword("ACTIVE"),
        keyword("INTERVAL"),
    ],
    handlers: &[
        read("count", |me: &mut EtherPauseSource, _| text(me.count)),
        command(
            "reset_counts",
            run!(|me, ctx| {
                me.count = 0;
                me.start(ctx, 0);
            }),
        ),
        read_write(
            "src",
            |me, _| text(EtherAddr(me.header.source)),
            set!(|me, mac: EtherAddr, _| {
                me.header.source = mac.0;
            }),
        ),
        read_write(
            "dst",
            |me, _| text(EtherAddr(me.header.destination)),
            set!(|me, mac: EtherAddr, _| {
                me.header.destination = mac.0;
            }),
        ),
        read_write(
            "pausetime",
            |me, _| text(me.pause),
            set!(|me, pause, _| me.pause = pause),
        ),
        read_write(
            "limit",
            |me, _| text(me.limit),
            set!(|me, limit, ctx| {
                me.limit = limit;
                me.start(ctx, 0);
            }),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                me.start(ctx, 0);
            }),
        ),
    ],
    build: |a| {
        let (source, pause) = (a.need::<EtherAddr>("SRC"), a.need("PAUSETIME"));
        let (destination, limit) = (a.or("DST", EtherAddr(EVERY_BRIDGE)), a.or("LIMIT", -1i64));
        let (active, interval) = (
            a.or("ACTIVE", true),
            a.or("INTERVAL", Span { ns: SECOND_NS }),
        );
        Some(Box::new(EtherPauseSource {
            header: ether::Repr {
                destination: destination?.0,
                source: source?.0,
                ethertype: MAC_CONTROL,
            },
            pause: pause?,
            limit: limit?,
            active: active?,
            interval_ns: interval?.ns.max(SHORTEST_NS),
            due_ns: None,
            count: 0,
        }))
    },
    ..Class::DEFAULT
};

/// The group address of the station at the other end of a wire.
const EVERY_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
const MAC_CONTROL: u16 = 0x8808;
const PAUSE: u16 = 1;
const FRAME: usize = 64;
const SECOND_NS: u64 = 1_000_000_000;
const SHORTEST_NS: u64 = 1_000_000;

struct EtherPauseSource {
    header: ether::Repr,
    pause: u16,
    limit: i64,
    active: bool,
    interval_ns: u64,
    /// When the timer is set to expire.
    due_ns: Option<u64>,
    count: u64,
}

impl EtherPauseSource {
    fn may_send(&self) -> bool {
        self.active && u64::try_from(self.limit).map_or(true, |limit| self.count < limit)
    }

    fn make(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let mut packet = ctx.pool().alloc(FRAME)?;
        let bytes = packet.data_mut();
        bytes.fill(0);
        self.header.emit(bytes);
        bytes[14..16].copy_from_slice(&PAUSE.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.pause.to_be_bytes());
        packet.set_mac_offset(0);
        self.count += 1;
        Some(packet)
    }

    /// Sets the timer, unless it is set or there is nothing to send.
    fn start(&mut self, ctx: &mut Context<'_>, after_ns: u64) {
        if self.due_ns.is_none() && self.may_send() && ctx.output_is_push(0) {
            let at_ns = ctx.now_ns().saturating_add(after_ns);
            self.due_ns = Some(at_ns);
            ctx.set_timer(at_ns);
        }
    }
}

impl Element for EtherPauseSource {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.start(ctx, self.interval_ns);
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.due_ns = None;
        if self.may_send() {
            if let Some(packet) = self.make(ctx) {
                ctx.push_one(0, packet);
            }
        }
        self.start(ctx, self.interval_ns);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max && self.may_send() {
            let Some(packet) = self.make(ctx) else {
                break;
            };
            batch.push_back(packet);
        }
        batch
    }

    fn signal(&self) -> Signal {
        Signal::Always
    }
}
