// SPDX-License-Identifier: Apache-2.0
//! Decrements the time to live of IP packets.
//!
//! # Synopsis
//! `DecIPTTL([ACTIVE, MULTICAST])`: with ACTIVE false (default true) nothing is changed, with MULTICAST false
//! (default true) multicast packets are not.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets packets whose time is over (1 or less); they are dropped if it is not
//! connected. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! * `drops` (read): packets whose time was over. `active` (read, write): ACTIVE.
//! # Differences from Click
//! A packet without a marked IP header is dropped.
//! # Example
//! `CheckIPHeader -> ttl :: DecIPTTL -> arp; ttl[1] -> ICMPError(10.0.0.1, timeexceeded) -> ...`
use click_wire::ipv4::{HEADER, View as Header};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "DecIPTTL",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[keyword("ACTIVE"), keyword("MULTICAST")],
    handlers: &[
        read("drops", |me: &mut DecIPTTL, _| text(me.drops)),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, _| me.active = active),
        ),
    ],
    build: |a| {
        let (active, multicast) = (a.or("ACTIVE", true), a.or("MULTICAST", true));
        Some(Box::new(DecIPTTL {
            active: active?,
            multicast: multicast?,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

struct DecIPTTL {
    active: bool,
    multicast: bool,
    drops: u64,
}

impl InPlace for DecIPTTL {
    const USE: Use = Use::Writes;

    #[inline(always)]
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let header = packet.network_mut().and_then(|b| b.first_chunk_mut());
        let Some(bytes): Option<&mut [u8; HEADER]> = header else {
            return DROPPED;
        };
        let mut header = Header::new_unchecked(bytes);
        if !self.active || (!self.multicast && header.destination().is_multicast()) {
            return 0;
        }
        match header.ttl() {
            0 | 1 => {
                self.drops += 1;
                1
            }
            _ => {
                header.decrement_ttl();
                0
            }
        }
    }
}

impl Element for DecIPTTL {
    in_place!(plain);

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
