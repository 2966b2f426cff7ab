// SPDX-License-Identifier: Apache-2.0
//! Puts an Ethernet header in front of packets.
//!
//! # Synopsis
//! `EtherEncap(ETHERTYPE, SRC, DST)`: all mandatory.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `ethertype`, `src`, `dst` (read, write): the arguments.
//! # Example
//! `... -> EtherEncap(0x0800, vif0, 2:0:0:0:0:1) -> ToDevice(0);`
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EtherEncap",
    args: &[mandatory("ETHERTYPE"), mandatory("SRC"), mandatory("DST")],
    handlers: &[
        read_write("ethertype"),
        read_write("src"),
        read_write("dst"),
    ],
    build: |a| {
        let (kind, src, dst) = (a.need("ETHERTYPE"), a.need("SRC"), a.need("DST"));
        Some(Box::new(EtherEncap {
            ethertype: kind?,
            src: src?,
            dst: dst?,
        }))
    },
    ..Class::DEFAULT
};

struct EtherEncap {
    ethertype: u16,
    src: EtherAddr,
    dst: EtherAddr,
}

impl InPlace for EtherEncap {
    const USE: Use = Use::Writes;

    fn way(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !packet.push(ether::HEADER) {
            return DROPPED;
        }
        packet.set_mac_offset(0);
        let header = ether::Repr {
            destination: self.dst.0,
            source: self.src.0,
            ethertype: self.ethertype,
        };
        header.emit(packet.data_mut());
        0
    }
}

impl Element for EtherEncap {
    in_place!();

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "ethertype" => text(self.ethertype),
            "src" => text(self.src),
            "dst" => text(self.dst),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "ethertype" => on_value(view, value, |me: &mut Self, v, _| me.ethertype = v),
            "src" => on_value(view, value, |me: &mut Self, v, _| me.src = v),
            "dst" => on_value(view, value, |me: &mut Self, v, _| me.dst = v),
            _ => undeclared(handler),
        }
    }
}
