// SPDX-License-Identifier: Apache-2.0
//! Chooses a packet's output by some of its bytes.
//!
//! # Synopsis
//! `HashSwitch(OFFSET, LENGTH)`: the LENGTH bytes from OFFSET on, both mandatory, LENGTH at least 1.
//! Packets with the same bytes leave by the same output, those that are too short by output 0.
//! # Ports
//! 1/1 or more, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> h :: HashSwitch(26, 8); h[0] -> ToDevice(1); h[1] -> ToDevice(2);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "HashSwitch",
    ports: "1/1-",
    processing: "h/h",
    args: &[mandatory("OFFSET"), mandatory("LENGTH")],
    build: |a| {
        let (offset, length) = (a.need::<u16>("OFFSET"), a.need::<u16>("LENGTH"));
        let (offset, length) = (usize::from(offset?), usize::from(length?));
        if length == 0 {
            a.error("LENGTH", "expected at least 1, got 0");
        }
        Some(Box::new(HashSwitch {
            offset,
            end: offset + length,
        }))
    },
    ..Class::DEFAULT
};

struct HashSwitch {
    offset: usize,
    end: usize,
}

/// The output for these bytes: their sum, spread over `outputs` as Click does.
fn output(bytes: &[u8], outputs: usize) -> usize {
    let sum: usize = bytes.iter().map(|b| usize::from(*b)).sum();
    match outputs {
        2 | 4 | 8 => (sum ^ (sum >> 4)) & (outputs - 1),
        _ => sum % outputs,
    }
}

impl InPlace for HashSwitch {
    fn way(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let bytes = packet.data().get(self.offset..self.end);
        bytes.map_or(0, |bytes| output(bytes, ctx.outputs()))
    }
}

impl Element for HashSwitch {
    in_place!();
}
