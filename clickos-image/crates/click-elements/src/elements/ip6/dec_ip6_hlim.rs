// SPDX-License-Identifier: Apache-2.0
//! Decrements the hop limit of IPv6 packets.
//!
//! # Synopsis
//! `DecIP6HLIM()`.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets packets that have no hop left (1 or less); they are dropped if it is not
//! connected. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! * `drops` (read): packets without a hop left.
//! # Example
//! `CheckIP6Header -> hops :: DecIP6HLIM -> ...; hops[1] -> ICMP6Error(2001:db8::1, 3, 0) -> ...`
use crate::ip6::{HOP_LIMIT_AT, header_mut};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "DecIP6HLIM",
    ports: "1/1-2",
    processing: "a/ah",
    handlers: &[read("drops", |me: &mut DecIP6HLIM, _| text(me.drops))],
    build: |_| Some(Box::new(DecIP6HLIM { drops: 0 })),
    ..Class::DEFAULT
};

struct DecIP6HLIM {
    drops: u64,
}

impl InPlace for DecIP6HLIM {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match header_mut(packet).map(|header| &mut header[HOP_LIMIT_AT]) {
            None => DROPPED,
            Some(0 | 1) => {
                self.drops += 1;
                1
            }
            Some(hops) => {
                *hops -= 1;
                0
            }
        }
    }
}

impl Element for DecIP6HLIM {
    in_place!(plain);

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
