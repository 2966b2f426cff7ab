// SPDX-License-Identifier: Apache-2.0
//! Lets only IPv6 packets pass that a link can carry.
//!
//! # Synopsis
//! `IP6Fragmenter(MTU)`: packets of at most MTU bytes pass. Routers do not divide IPv6 packets (RFC 8200, section 5), so
//! longer ones are for an element that tells their sender.
//! # Ports
//! 1/1-2, push. Longer packets leave by output 1; they are dropped if it is not connected.
//! # Handlers
//! * `drops` (read): longer packets. `fragments` (read): 0.
//! # Differences from Click
//! Long packets leave by output 1, as Click documents (its code drops them).
//! # Example
//! `... -> fr :: IP6Fragmenter(1500) -> Queue -> ToDevice(0); fr[1] -> ICMP6Error(2001:db8::1, 2, 0) -> ...`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IP6Fragmenter",
    ports: "1/1-2",
    processing: "h/h",
    args: &[mandatory("MTU")],
    handlers: &[
        read("drops", |me: &mut IP6Fragmenter, _| text(me.drops)),
        read("fragments", |_, _| text(0)),
    ],
    build: |a| {
        Some(Box::new(IP6Fragmenter {
            mtu: a.need("MTU")?,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

struct IP6Fragmenter {
    mtu: usize,
    drops: u64,
}

impl InPlace for IP6Fragmenter {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let long = packet.len() > self.mtu;
        self.drops += u64::from(long);
        usize::from(long)
    }
}

impl Element for IP6Fragmenter {
    in_place!(plain);

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
