// SPDX-License-Identifier: Apache-2.0
//! Makes UDP packets with static Ethernet, IP and UDP headers, on each pull.
//!
//! # Synopsis
//! `FastUDPSource(RATE, LIMIT, LENGTH, SRCETH, SRCIP, SPORT, DSTETH, DSTIP, DPORT [, CHECKSUM, INTERVAL, ACTIVE])`: at most RATE packets
//! a second (0: any number) and LIMIT in all (-1: no limit), frames of LENGTH bytes (at least 60). The UDP checksum is computed
//! unless CHECKSUM is false. After INTERVAL packets (default 0: never) both ports are counted up. Only while ACTIVE (default true).
//! # Ports
//! 0/1, pull.
//! # Handlers
//! * `count` (read): packets made. `rate` (read): those of a second between the first and the last one, once LIMIT is reached, else 0.
//! * `rate`, `limit` (write), `length` (read, write): the arguments. `reset` (write): begins again with `count` 0.
//! * `active` (write): ACTIVE; true begins again.
//! # Differences from Click
//! Packets are made on demand.
//! # Example
//! `FastUDPSource(100000, -1, 60, 0:0:0:0:0:1, 1.0.0.1, 1234, 0:0:0:0:0:2, 2.0.0.2, 1234) -> ToDevice(0);`
use click_wire::udp;

use crate::fast_udp::{HANDLERS, Ports, build};
use crate::numbers::UdpPort;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FastUDPSource",
    ports: "0/1",
    processing: "l/l",
    args: &[
        mandatory("RATE"),
        mandatory("LIMIT"),
        mandatory("LENGTH"),
        mandatory("SRCETH"),
        mandatory("SRCIP"),
        mandatory("SPORT"),
        mandatory("DSTETH"),
        mandatory("DSTIP"),
        mandatory("DPORT"),
        optional("CHECKSUM"),
        optional("INTERVAL"),
        optional("ACTIVE"),
    ],
    handlers: &HANDLERS,
    build: |a| {
        let (source, destination) = (a.need::<UdpPort>("SPORT"), a.need::<UdpPort>("DPORT"));
        let interval = a.or("INTERVAL", 0);
        let ports = udp::Repr {
            source: source?.0,
            destination: destination?.0,
        };
        build(a, Ports::Fixed(ports, interval?))
    },
    ..Class::DEFAULT
};
