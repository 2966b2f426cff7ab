// SPDX-License-Identifier: Apache-2.0
//! Spreads packets over its outputs in proportion to tickets.
//!
//! # Synopsis
//! `StrideSwitch(TICKETS, ...)`: one number per output, 0 to 32768.
//! # Ports
//! 1/1 or more, push. An output without tickets gets nothing; if none has any, packets are dropped.
//! # Handlers
//! * `tickets0`, `tickets1` ... (read, write): TICKETS of that output.
//! # Example
//! `FromDevice(0) -> s :: StrideSwitch(2, 1); s[0] -> ToDevice(1); s[1] -> ToDevice(2);`
use crate::prelude::*;
use crate::standard::stride::{self, Stride};

pub static ELEMENT: Class = Class {
    name: "StrideSwitch",
    ports: "1/1-",
    processing: "h/h",
    args: &[rest("TICKETS")],
    families: &[Family::PerOutput(&[stride::tickets::<StrideSwitch>()])],
    build: |a| {
        let outputs = a.outputs();
        let stride = Stride::from_args(a, outputs)?;
        Some(Box::new(StrideSwitch { stride }))
    },
    live: true,
    ..Class::DEFAULT
};

struct StrideSwitch {
    stride: Stride,
}

impl InPlace for StrideSwitch {
    fn output_port(&mut self, _ctx: &mut Context<'_>, _packet: &mut Packet) -> usize {
        match self.stride.turn(Some) {
            Some(output) => output,
            None => DROPPED,
        }
    }
}

part!(StrideSwitch, stride: Stride);

impl Element for StrideSwitch {
    in_place!(plain);

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.stride.take_passes(&old.stride);
        }
    }
}
