// SPDX-License-Identifier: Apache-2.0
//! Sends packets of a host that sends too much to output 1.
//!
//! # Synopsis
//! `Block(THRESH)`: packets whose forward rate annotation (four bytes at 20) is above THRESH leave by
//! output 1; 0 means none; mandatory.
//! # Ports
//! 1/2, agnostic. Output 1 is push.
//! # Handlers
//! * `thresh` (read, write): THRESH.
//! # Differences from Click
//! Where packets are pulled, output 1 is push.
//! # Example
//! `... -> b :: Block(1000) -> ...; b[1] -> Discard;`
use crate::prelude::*;
use crate::standard::rate_anno::FORWARD;

pub static ELEMENT: Class = Class {
    name: "Block",
    ports: "1/2",
    processing: "a/ah",
    args: &[mandatory("THRESH")],
    handlers: &[read_write(
        "thresh",
        |me: &mut Block, _| text(me.thresh),
        set!(|me, thresh, _| me.thresh = thresh),
    )],
    build: |a| {
        Some(Box::new(Block {
            thresh: a.need("THRESH")?,
        }))
    },
    ..Class::DEFAULT
};

struct Block {
    thresh: i64,
}

impl InPlace for Block {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let blocked = self.thresh != 0 && FORWARD.of(packet) > self.thresh;
        usize::from(blocked)
    }
}

impl Element for Block {
    in_place!(plain);
}
