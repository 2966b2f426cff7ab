// SPDX-License-Identifier: Apache-2.0
//! What an IP router does to Ethernet frames that come in.
//!
//! # Synopsis
//! `IPInputCombo(COLOR [, BADSRC, INTERFACES, GOODDST])`: as `Paint(COLOR) -> Strip(14) -> CheckIPHeader(...)` with the same
//! arguments. BADSRC given by position, as OLDBADSRC, adds 0.0.0.0 and 255.255.255.255.
//! # Ports
//! 1/1, agnostic. Wrong packets are dropped, the first with a message.
//! # Handlers
//! * `drops` (read): wrong packets.
//! # Example
//! `FromDevice(0) -> c :: Classifier(12/0800, -); c[0] -> IPInputCombo(1, INTERFACES 10.0.0.1/24) -> rt;`
use click_core::anno;
use click_wire::ether;

use crate::header_check::{Drops, drops};
use crate::ip_header_check::{Checker, REASONS, Sources, UNROUTED};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPInputCombo",
    args: &[
        mandatory("COLOR"),
        optional("OLDBADSRC"),
        keyword("BADSRC"),
        keyword("INTERFACES"),
        keyword("GOODDST"),
    ],
    handlers: &[drops::<IPInputCombo>()],
    build: |a| {
        let (color, mut sources) = (a.need("COLOR"), Sources::of(a));
        if let Some(old) = a.opt::<String>("OLDBADSRC")? {
            sources.add_old(a, &old);
        }
        Some(Box::new(IPInputCombo {
            color: color?,
            checker: Checker::new(0, true, &sources),
            drops: Drops::new("IP", &REASONS[..UNROUTED], false),
        }))
    },
    ..Class::DEFAULT
};

struct IPInputCombo {
    color: u8,
    checker: Checker,
    drops: Drops,
}

impl InPlace for IPInputCombo {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        packet.anno_mut().set_u8(anno::PAINT, self.color);
        packet.pull(ether::HEADER);
        match self.checker.run(packet) {
            Ok(()) => 0,
            Err(reason) => {
                self.drops.note(ctx, reason);
                DROPPED
            }
        }
    }
}

part!(IPInputCombo, drops: Drops);

impl Element for IPInputCombo {
    in_place!();

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops.take_from(&old.drops);
        }
    }
}
