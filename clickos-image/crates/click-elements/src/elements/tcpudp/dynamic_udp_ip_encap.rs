// SPDX-License-Identifier: Apache-2.0
//! Puts UDP and IP headers in front of packets, with other ports from time to time.
//!
//! # Synopsis
//! `DynamicUDPIPEncap(SRC, SPORT, DST, DPORT [, CHECKSUM, INTERVAL])`: as `UDPIPEncap`; behind each INTERVAL packets
//! (default 0: never) both ports are counted up.
//! # Ports
//! 1/1, agnostic. Packets too long for the headers are dropped.
//! # Handlers
//! * `src`, `sport`, `dst`, `dport` (read, write): what the next packet gets.
//! # Differences from Click
//! `dst` reads `DST_ANNO` if that was given.
//! # Example
//! `RatedSource -> DynamicUDPIPEncap(10.0.0.1, 1234, 10.0.0.2, 5678, true, 10) -> arp;`
use crate::prelude::*;
use crate::standard::udp_encap;

pub static ELEMENT: Class = Class {
    name: "DynamicUDPIPEncap",
    args: &[
        mandatory("SRC"),
        mandatory("SPORT"),
        mandatory("DST"),
        mandatory("DPORT"),
        optional("CHECKSUM"),
        optional("INTERVAL"),
    ],
    handlers: &udp_encap::HANDLERS,
    build: |a| {
        let interval = a.or("INTERVAL", 0);
        udp_encap::build(a, interval?)
    },
    ..Class::DEFAULT
};
