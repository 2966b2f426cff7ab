// SPDX-License-Identifier: Apache-2.0
//! Puts an Ethernet header in front of packets.
//!
//! # Synopsis
//! `EtherEncap(ETHERTYPE, SRC, DST)`: all mandatory.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `ethertype`, `src`, `dst` (read, write): the arguments; `etht` is `ethertype`.
//! # Example
//! `... -> EtherEncap(0x0800, vif0, 2:0:0:0:0:1) -> ToDevice(0);`
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EtherEncap",
    args: &[mandatory("ETHERTYPE"), mandatory("SRC"), mandatory("DST")],
    handlers: &[
        read_write(
            "ethertype",
            |me: &mut EtherEncap, _| text(me.header.ethertype),
            |me, view, value| on_header(me, view, value, |header, kind| header.ethertype = kind),
        ),
        read_write(
            "etht",
            |me, _| text(me.header.ethertype),
            |me, view, value| on_header(me, view, value, |header, kind| header.ethertype = kind),
        ),
        read_write(
            "src",
            |me, _| text(EtherAddr(me.header.source)),
            |me, view, value| {
                on_header(me, view, value, |header, EtherAddr(mac)| {
                    header.source = mac
                })
            },
        ),
        read_write(
            "dst",
            |me, _| text(EtherAddr(me.header.destination)),
            |me, view, value| {
                on_header(me, view, value, |header, EtherAddr(mac)| {
                    header.destination = mac;
                })
            },
        ),
    ],
    build: |a| {
        let kind = a.need("ETHERTYPE");
        let (src, dst) = (a.need::<EtherAddr>("SRC"), a.need::<EtherAddr>("DST"));
        Some(Box::new(EtherEncap::new(ether::Repr {
            ethertype: kind?,
            source: src?.0,
            destination: dst?.0,
        })))
    },
    live: true,
    ..Class::DEFAULT
};

struct EtherEncap {
    header: ether::Repr,
    /// The same as a packet gets it.
    bytes: [u8; ether::HEADER],
}

impl EtherEncap {
    fn new(header: ether::Repr) -> Self {
        let bytes = header.bytes();
        Self { header, bytes }
    }
}

impl InPlace for EtherEncap {
    const USE: Use = Use::Writes;

    #[inline]
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(packet.prepend_mac(&self.bytes))
    }
}

/// Changes the header as `set` does.
fn on_header<T: FromArg + 'static>(
    me: &EtherEncap,
    view: &View<'_>,
    value: &str,
    set: fn(&mut ether::Repr, T),
) -> Result<Change, HandlerError> {
    on_value(me, view, value, move |me, value, _| {
        set(&mut me.header, value);
        *me = EtherEncap::new(me.header);
    })
}

impl Element for EtherEncap {
    in_place!(plain);
}
