// SPDX-License-Identifier: Apache-2.0
//! Gives each subscriber of a carrier-grade NAT its own block of ports of a public address (RFC 7422).
//!
//! # Synopsis
//! `PortBlockMapper(SUBSCRIBERS, PUBLIC [, FIRST_PORT, LAST_PORT, BLOCK, FLOWS, LOG])`: SUBSCRIBERS and PUBLIC are prefixes, such as
//! `100.64.0.0/22` and `203.0.113.0/30`. Subscriber number N gets block number N, of BLOCK ports. Blocks begin at
//! FIRST_PORT (default 1024) and end at LAST_PORT (default 65535) of each public address. BLOCK is by default as many as
//! fit. So the place of a block needs no log. A subscriber has at most FLOWS flows (default: any number) that it opened, of all rewriters
//! and protocols; more are refused (RFC 6888, REQ-5). LOG, a `Syslog`, gets a message when a subscriber's first flow begins, and within
//! 10 s after its last one has ended (RFC 6888, REQ-12). Blocks in use that the log does not have are written within 10 s, too: after
//! the log got its target or another one, after a swap of configurations, and at a guest that took flows of another one over, from its first new flow on. After a swap to other blocks, which ends
//! the flows outside them, it gets messages that those before are free.
//! # Ports
//! 0/0. A rewriter has the element's name as its INPUTSPEC; flows leave by the rewriter's output 0, answers by its
//! output 1. A flow gets a random free port of its subscriber's block, an even one for an even one if one is left. A port serves one flow at a time,
//! for TCP and for UDP each, or one inside address and port with ENDPOINTS. So a subscriber has at most BLOCK ports in use of a protocol, and more are
//! refused. A block uses memory from its first flow until 10 s after its last one.
//! # Handlers
//! * `table` (read): each subscriber with flows, its address, its ports, how many flows got a port and how many were refused since its first flow.
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
        keyword("FLOWS"),
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
