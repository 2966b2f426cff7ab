// SPDX-License-Identifier: Apache-2.0
//! Drops packets that came in for more than one host.
//!
//! # Synopsis
//! `DropBroadcasts`: packets whose packet type annotation is broadcast or multicast do not pass.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets them; they are dropped if it is not connected.
//! # Handlers
//! * `drops` (read): packets that did not pass.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader -> DropBroadcasts -> ...`
use click_core::anno::PacketType;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "DropBroadcasts",
    ports: "1/1-2",
    processing: "a/ah",
    handlers: &[read("drops", |me: &mut DropBroadcasts, _| text(me.drops))],
    build: |_| Some(Box::new(DropBroadcasts { drops: 0 })),
    ..Class::DEFAULT
};

struct DropBroadcasts {
    drops: u64,
}

impl InPlace for DropBroadcasts {
    #[inline(always)]
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match packet.anno().packet_type() {
            PacketType::Broadcast | PacketType::Multicast => {
                self.drops += 1;
                1
            }
            _ => 0,
        }
    }
}

impl Element for DropBroadcasts {
    in_place!(plain);
}
