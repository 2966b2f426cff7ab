// SPDX-License-Identifier: Apache-2.0
//! Puts UDP and IP headers in front of packets.
//!
//! # Synopsis
//! `UDPIPEncap(SRC, SPORT, DST, DPORT [, CHECKSUM])`: ports are numbers or names; DST may be `DST_ANNO`, the destination
//! annotation. The UDP checksum is computed unless CHECKSUM is false. The time to live is 250; identifications count up
//! from 0. Header and destination annotations are set.
//! # Ports
//! 1/1, agnostic. Packets too long for the headers are dropped.
//! # Handlers
//! * `src`, `sport`, `dst`, `dport` (read, write): the arguments.
//! # Differences from Click
//! `dst` reads `DST_ANNO` if that was given.
//! # Example
//! `RatedSource -> UDPIPEncap(10.0.0.1, 1234, 10.0.0.2, 5678) -> arp;`
use crate::prelude::*;
use crate::standard::udp_encap;

pub static ELEMENT: Class = Class {
    name: "UDPIPEncap",
    args: &[
        mandatory("SRC"),
        mandatory("SPORT"),
        mandatory("DST"),
        mandatory("DPORT"),
        optional("CHECKSUM"),
    ],
    handlers: &udp_encap::HANDLERS,
    build: |a| udp_encap::build(a, 0),
    live: true,
    ..Class::DEFAULT
};
