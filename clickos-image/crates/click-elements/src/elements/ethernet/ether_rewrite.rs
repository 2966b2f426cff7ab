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
    handlers: &[read_write("src"), read_write("dst")],
    build: |a| {
        let (src, dst) = (a.need("SRC"), a.need("DST"));
        Some(Box::new(EtherRewrite {
            src: src?,
            dst: dst?,
        }))
    },
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

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "src" => text(self.src),
            "dst" => text(self.dst),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "src" => on_value(view, value, |me: &mut Self, v, _| me.src = v),
            "dst" => on_value(view, value, |me: &mut Self, v, _| me.dst = v),
            _ => undeclared(handler),
        }
    }
}
