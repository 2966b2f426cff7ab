// SPDX-License-Identifier: Apache-2.0
//! Sends ARP replies without a request.
//!
//! # Synopsis
//! `ARPFaker(DSTIP, DSTETH, SRCIP, SRCETH)`: tells DSTIP at DSTETH that SRCIP is at SRCETH, a second after the start and every
//! ten seconds from then on.
//! # Ports
//! 0/1, push.
//! # Handlers
//! None of its own.
//! # Example
//! `ARPFaker(10.0.0.2, 02:00:00:00:00:02, 10.0.0.1, vif0) -> ToDevice(0);`
use click_wire::{arp, ether};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ARPFaker",
    ports: "0/1",
    processing: "h/h",
    args: &[
        mandatory("DSTIP"),
        mandatory("DSTETH"),
        mandatory("SRCIP"),
        mandatory("SRCETH"),
    ],
    build: |a| {
        let (target_ip, target) = (a.need("DSTIP"), a.need::<EtherAddr>("DSTETH"));
        let (sender_ip, sender) = (a.need("SRCIP"), a.need::<EtherAddr>("SRCETH"));
        Some(Box::new(ARPFaker {
            reply: arp::Repr {
                operation: arp::REPLY,
                sender_mac: sender?.0,
                sender_ip: sender_ip?,
                target_mac: target?.0,
                target_ip: target_ip?,
            },
        }))
    },
    ..Class::DEFAULT
};

const FIRST_NS: u64 = 1_000_000_000;
const INTERVAL_NS: u64 = 10_000_000_000;

struct ARPFaker {
    reply: arp::Repr,
}

impl Element for ARPFaker {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_timer(ctx.now_ns().saturating_add(FIRST_NS));
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if let Some(mut packet) = ctx.pool().alloc(ether::HEADER + arp::LENGTH) {
            let arp::Repr {
                sender_mac,
                target_mac,
                ..
            } = self.reply;
            self.reply
                .emit_frame(sender_mac, target_mac, packet.data_mut());
            packet.set_mac_offset(0);
            ctx.push_one(0, packet);
        }
        ctx.set_timer(ctx.now_ns().saturating_add(INTERVAL_NS));
    }
}
