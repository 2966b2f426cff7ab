// SPDX-License-Identifier: Apache-2.0
//! Makes UDP packets of many flows with random ports, on each pull.
//!
//! # Synopsis
//! `FastUDPFlows(RATE, LIMIT, LENGTH, SRCETH, SRCIP, DSTETH, DSTIP, FLOWS, FLOWSIZE [, CHECKSUM, ACTIVE])`: at most RATE packets a second
//! (0: any number) and LIMIT in all (-1: no limit), frames of LENGTH bytes (at least 60), each of one of FLOWS flows, drawn at
//! random. After FLOWSIZE packets (0: never) a flow ends and another takes its place. The UDP checksum is computed unless
//! CHECKSUM is false. Only while ACTIVE (default true).
//! # Ports
//! 0/1, pull.
//! # Handlers
//! * `count` (read): packets made. `rate` (read): those of a second between the first and the last one, once LIMIT is reached, else 0.
//! * `rate`, `limit` (write), `length` (read, write): the arguments. `reset` (write): begins again with `count` 0.
//! * `active` (write): ACTIVE; true begins again.
//! # Differences from Click
//! Packets are made on demand.
//! # Example
//! `FastUDPFlows(0, 1000000, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 100, 10) -> ToDevice(0);`
use crate::fast_udp::{Flow, HANDLERS, Ports, build};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FastUDPFlows",
    ports: "0/1",
    processing: "l/l",
    args: &[
        mandatory("RATE"),
        mandatory("LIMIT"),
        mandatory("LENGTH"),
        mandatory("SRCETH"),
        mandatory("SRCIP"),
        mandatory("DSTETH"),
        mandatory("DSTIP"),
        mandatory("FLOWS"),
        mandatory("FLOWSIZE"),
        optional("CHECKSUM"),
        optional("ACTIVE"),
    ],
    handlers: &HANDLERS,
    build: |a| {
        let (flows, size) = (a.need::<usize>("FLOWS"), a.need::<u32>("FLOWSIZE"));
        let (flows, most) = (flows?, a.environment().limits.flows);
        if !(1..=most).contains(&flows) {
            a.error(
                "FLOWS",
                format!("{flows} is out of range, it is 1 to {most}"),
            );
            return None;
        }
        build(a, Ports::Drawn(vec![Flow::NEW; flows], size?))
    },
    ..Class::DEFAULT
};
