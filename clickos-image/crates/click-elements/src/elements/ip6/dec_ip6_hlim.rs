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
    handlers: &[read("drops")],
    build: |_| Some(Box::new(DecIP6HLIM { drops: 0 })),
    ..Class::DEFAULT
};

struct DecIP6HLIM {
    drops: u64,
}

impl Element for DecIP6HLIM {
    fn process(&mut self, _ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        match header_mut(&mut packet).map(|header| &mut header[HOP_LIMIT_AT]) {
            None => Out::Drop,
            Some(0 | 1) => {
                self.drops += 1;
                Out::Port(1, packet)
            }
            Some(hops) => {
                *hops -= 1;
                Out::Port(0, packet)
            }
        }
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "drops" => text(self.drops),
            _ => undeclared(handler),
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
