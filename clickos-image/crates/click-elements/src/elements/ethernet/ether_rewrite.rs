// SPDX-License-Identifier: Apache-2.0
//! Replaces the addresses of Ethernet headers.
//!
//! # Synopsis
//! `EtherRewrite(SRC, DST)`: both mandatory.
//! # Ports
//! 1/1, agnostic. Frames too short for an Ethernet header are dropped.
//! # Handlers
//! * `src`, `dst` (read, write): the arguments.
//! # Example
//! `FromDevice(0) -> EtherRewrite(vif1, 2:0:0:0:0:9) -> ToDevice(1);`
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EtherRewrite",
    args: &[mandatory("SRC"), mandatory("DST")],
    handlers: &[
        read_write(
            "src",
            |me: &mut EtherRewrite, _| text(me.src),
            set!(|me, v, _| me.src = v),
        ),
        read_write("dst", |me, _| text(me.dst), set!(|me, v, _| me.dst = v)),
    ],
    build: |a| {
        let (src, dst) = (a.need("SRC"), a.need("DST"));
        Some(Box::new(EtherRewrite {
            src: src?,
            dst: dst?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct EtherRewrite {
    src: EtherAddr,
    dst: EtherAddr,
}

impl InPlace for EtherRewrite {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Ok(header) = ether::Repr::parse(packet.data()) else {
            return DROPPED;
        };
        ether::Repr {
            destination: self.dst.0,
            source: self.src.0,
            ..header
        }
        .emit(packet.data_mut());
        0
    }
}

impl Element for EtherRewrite {
    in_place!(plain);
}
