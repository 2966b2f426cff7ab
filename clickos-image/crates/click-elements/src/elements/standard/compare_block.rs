// SPDX-License-Identifier: Apache-2.0
//! Sends packets of a host that sends far more than it gets to output 1.
//!
//! # Synopsis
//! `CompareBlock(FWD_WEIGHT, REV_WEIGHT, THRESH)`: all mandatory. A packet leaves by output 1 if one of
//! its rate annotations (forward: four bytes at 20, reverse: at 24; at least 1 each) is above THRESH, and
//! forward times FWD_WEIGHT is more than reverse times REV_WEIGHT.
//! # Ports
//! 1/2, agnostic. Output 1 is push.
//! # Handlers
//! * `fwd_weight`, `rev_weight`, `thresh` (read, write): the arguments.
//! # Differences from Click
//! Where packets are pulled, output 1 is push. The handler `thresh` is ours.
//! # Example
//! `... -> b :: CompareBlock(1, 3, 1000) -> ...; b[1] -> Discard;`
use crate::prelude::*;
use crate::standard::rate_anno::{FORWARD, REVERSE};

pub static ELEMENT: Class = Class {
    name: "CompareBlock",
    ports: "1/2",
    processing: "a/ah",
    args: &[
        mandatory("FWD_WEIGHT"),
        mandatory("REV_WEIGHT"),
        mandatory("THRESH"),
    ],
    handlers: &[
        read_write(
            "fwd_weight",
            |me: &mut CompareBlock, _| text(me.forward),
            set!(|me, w, _| me.forward = w),
        ),
        read_write(
            "rev_weight",
            |me, _| text(me.reverse),
            set!(|me, w, _| me.reverse = w),
        ),
        read_write(
            "thresh",
            |me, _| text(me.thresh),
            set!(|me, thresh, _| me.thresh = thresh),
        ),
    ],
    build: |a| {
        let (forward, reverse) = (a.need("FWD_WEIGHT"), a.need("REV_WEIGHT"));
        let thresh = a.need("THRESH");
        Some(Box::new(CompareBlock {
            forward: forward?,
            reverse: reverse?,
            thresh: thresh?,
        }))
    },
    ..Class::DEFAULT
};

struct CompareBlock {
    forward: i64,
    reverse: i64,
    thresh: i64,
}

impl InPlace for CompareBlock {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let (forward, reverse) = (FORWARD.of(packet).max(1), REVERSE.of(packet).max(1));
        let much = forward > self.thresh || reverse > self.thresh;
        let more = forward.saturating_mul(self.forward) > reverse.saturating_mul(self.reverse);
        usize::from(much && more)
    }
}

impl Element for CompareBlock {
    in_place!(plain);
}
