// SPDX-License-Identifier: Apache-2.0
//! Computes the checksum of IP headers.
//!
//! # Synopsis
//! `SetIPChecksum()`: the header is the marked one, or begins with the packet if none is marked.
//! # Ports
//! 1/1, agnostic. Packets too short for their header are dropped.
//! # Handlers
//! * `drops` (read): packets that were dropped.
//! # Example
//! `... -> StoreIPAddress(10.0.0.1, 12) -> SetIPChecksum -> ...`
use click_wire::ipv4::{HEADER, View as Header};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetIPChecksum",
    handlers: &[read("drops", |me: &mut SetIPChecksum, _| text(me.drops))],
    build: |_| Some(Box::new(SetIPChecksum { drops: 0 })),
    ..Class::DEFAULT
};

struct SetIPChecksum {
    drops: u64,
}

/// Fills in the checksum; `None` if the header is incomplete.
fn fill(packet: &mut Packet) -> bool {
    let bytes = match packet.network_offset() {
        Some(_) => packet.network_mut().unwrap_or_default(),
        None => packet.data_mut(),
    };
    let length = bytes.first().map_or(0, |b| usize::from(b & 15) * 4);
    let whole = (HEADER..=bytes.len()).contains(&length);
    if whole {
        Header::new_unchecked(bytes).fill_checksum();
    }
    whole
}

impl InPlace for SetIPChecksum {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if fill(packet) {
            return 0;
        }
        if self.drops == 0 {
            let line = format!("{}: bad input packet", ctx.name());
            ctx.print(&line);
        }
        self.drops += 1;
        DROPPED
    }
}

impl Element for SetIPChecksum {
    in_place!();

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
