// SPDX-License-Identifier: Apache-2.0
//! Sends packets to a device.
//!
//! # Synopsis
//! `ToDevice([DEVID, BURST, METHOD, DEBUG])`: DEVID is the number of the device (vif; default 0), or in the program `click` the name
//! of a network interface, which may be a number, too; at most BURST packets at a time (default 32). METHOD is LINUX or PCAP, which are the same here;
//! DEBUG has no effect.
//! # Ports
//! 1/0-2, agnostic to push. Pulling, the element keeps a packet that the device does not take and tries again.
//! Pushed to, it drops the packet, or sends it out of output 1: put a `Queue` in front. Output 0, if it is connected,
//! gets the packets that were sent.
//! # Handlers
//! * `count` (read): packets sent. `drops` (read): packets dropped.
//! * `reset_counts` (write): sets both to 0. `mac` (read): the device's address.
//! # Differences from Click
//! The default BURST is 32. Accepts pushed packets, and then drops and counts packets that the
//! device refuses (`drops`). In a guest the argument is the number of a vif, 0 by default; in the
//! program a network interface, opened as a packet socket. METHOD is LINUX or PCAP, which are the
//! same here; DEBUG has no effect.
//! # Example
//! `... -> Queue(1000) -> ToDevice(1);`
use click_core::DeviceRequest;

use crate::interface::{Interface, check_method};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ToDevice",
    aliases: &["ToClickOS"],
    ports: "1/0-2",
    processing: "a/h",
    args: &[
        optional("DEVID"),
        optional("BURST"),
        keyword("METHOD"),
        keyword("DEBUG"),
    ],
    handlers: &[
        read("count", |me: &mut ToDevice, _| text(me.count)),
        read("drops", |me, _| text(me.drops)),
        command("reset_counts", run!(|me, _| (me.count, me.drops) = (0, 0))),
        read("mac", |me, _| text(me.interface.mac())),
    ],
    build: |a| {
        let (name, burst) = (a.or("DEVID", "0".to_string()), a.or("BURST", 32usize));
        check_method(a)?;
        a.or("DEBUG", false)?;
        let request = DeviceRequest {
            name: name?,
            receives: false,
            promiscuous: false,
            outbound: false,
            exclusive: false,
            snaplen: 0,
        };
        let interface = Interface::from_args(a, request)?;
        let burst = burst?.max(1);
        Some(Box::new(ToDevice {
            interface,
            burst,
            waiting: Batch::new(),
            unflushed: false,
            returns: a.outputs() > 0,
            count: 0,
            drops: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

struct ToDevice {
    interface: Interface,
    burst: usize,
    /// Pulled, but the device was full.
    waiting: Batch,
    /// Something was pushed since the last flush.
    unflushed: bool,
    /// Packets go on behind the device.
    returns: bool,
    count: u64,
    drops: u64,
}

impl ToDevice {
    fn transmit(&mut self, ctx: &mut Context<'_>, batch: &mut Batch) -> usize {
        let Some(device) = self.interface.device() else {
            return 0;
        };
        if self.returns {
            return self.transmit_copies(ctx, batch);
        }
        let sent = device.borrow_mut().transmit(batch, ctx.pool());
        self.count += sent as u64;
        sent
    }

    /// As `transmit`; what was sent leaves by output 0, if the pool has room for copies.
    #[cold]
    fn transmit_copies(&mut self, ctx: &mut Context<'_>, batch: &mut Batch) -> usize {
        let Some(device) = self.interface.device() else {
            return 0;
        };
        let (mut copies, mut gone) = (ctx.batch(), ctx.batch());
        ctx.pool().duplicate_all(batch, &mut copies);
        let sent = device.borrow_mut().transmit(batch, ctx.pool());
        self.count += sent as u64;
        gone.append_front(&mut copies, sent);
        ctx.recycle(copies);
        ctx.push(0, gone);
        sent
    }

    fn flush(&self) {
        if let Some(device) = self.interface.device() {
            device.borrow_mut().flush();
        }
    }

    /// Pulls and sends one burst; returns whether anything was sent.
    fn pull_and_send(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.waiting.is_empty() {
            let fresh = ctx.pull(0, self.burst);
            let empty = core::mem::replace(&mut self.waiting, fresh);
            ctx.recycle(empty);
        }
        if self.waiting.is_empty() {
            if ctx.readable(0) {
                ctx.schedule();
            }
            return false;
        }
        let mut waiting = core::mem::take(&mut self.waiting);
        let sent = self.transmit(ctx, &mut waiting);
        self.waiting = waiting;
        if sent > 0 {
            self.flush();
        }
        ctx.schedule();
        sent > 0
    }
}

impl Element for ToDevice {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.interface.open(ctx)?;
        ctx.schedule();
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        self.transmit(ctx, &mut batch);
        self.drops += batch.len() as u64;
        ctx.push(1, batch);
        // one notification for all batches of this round
        self.unflushed = true;
        ctx.schedule();
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if core::mem::take(&mut self.unflushed) {
            self.flush();
        }
        ctx.input_is_pull(0) && self.pull_and_send(ctx)
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        (self.count, self.drops) = (old.count, old.drops);
        self.unflushed = old.unflushed;
        self.waiting.append(&mut old.waiting);
        ctx.schedule();
    }
}
