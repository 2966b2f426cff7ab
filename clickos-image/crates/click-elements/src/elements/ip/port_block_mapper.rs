// SPDX-License-Identifier: Apache-2.0
//! Gives each subscriber of a carrier-grade NAT its own block of ports of a public address (RFC 7422).
//!
//! # Synopsis
//! `PortBlockMapper(SUBSCRIBERS, PUBLIC [, FIRST_PORT, LAST_PORT, BLOCK, LOG])`: SUBSCRIBERS and PUBLIC are prefixes, such as
//! `100.64.0.0/22` and `203.0.113.0/30`. Subscriber number N gets block number N, of BLOCK ports. Blocks begin at
//! FIRST_PORT (default 1024) and end at LAST_PORT (default 65535) of each public address. BLOCK is by default as many as
//! fit. So the place of a block needs no log. LOG, a `Syslog`, gets a message when a subscriber's first flow begins, and within 10 s
//! after its last one has ended (RFC 6888, REQ-12).
//! # Ports
//! 0/0. A rewriter has the element's name as its INPUTSPEC; flows leave by the rewriter's output 0, answers by its
//! output 1. A flow gets a random free port of its subscriber's block. A port serves one flow at a time, for TCP and
//! for UDP each. So a subscriber has at most BLOCK flows of a protocol, and more are refused. Once 64 ports are taken in a
//! row, a flow is refused, too.
//! # Handlers
//! * `table` (read): each subscriber that had flows, its address, its ports, how many flows began and how many were refused.
//! * `lookup` (read): the subscriber of the parameter `ADDRESS PORT`.
//! # Example
//! `cgn :: PortBlockMapper(100.64.0.0/24, 203.0.113.1/32); rw :: IPRewriter(cgn, drop);`
use crate::prelude::*;
use crate::rewrite::port_blocks::{self, PortBlockMapper};

pub static ELEMENT: Class = Class {
    name: "PortBlockMapper",
    ports: "0/0",
    args: &[
        mandatory("SUBSCRIBERS"),
        mandatory("PUBLIC"),
        keyword("FIRST_PORT"),
        keyword("LAST_PORT"),
        keyword("BLOCK"),
        keyword("LOG"),
    ],
    handlers: &[
        read("table", |me: &mut PortBlockMapper, view| {
            Ok(me.table_text(&view.arg_context().environment.limits))
        }),
        read("lookup", |me, view| me.lookup_text(view)),
    ],
    build: port_blocks::build,
    ..Class::DEFAULT
};
