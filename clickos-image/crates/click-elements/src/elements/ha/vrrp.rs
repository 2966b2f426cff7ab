// SPDX-License-Identifier: Apache-2.0
//! One of a pair of routers, of which one is active: VRRP version 3 (RFC 9568), and copies of flows.
//!
//! # Synopsis
//! `VRRP(SIDE, ... [, PRIORITY, INTERVAL, PREEMPT, KEY])`: each SIDE is a network, `VRID IP ETH PEER PEER_ETH ADDRESS ...`.
//! VRID (1 to 255) is the number of the virtual router there, and each ADDRESS (at most 16) one of its addresses; its
//! Ethernet address is 00-00-5E-00-01-VRID, or 00-00-5E-00-02-VRID where IP is of IPv6. Then IP, PEER and the first ADDRESS
//! are link-local. Where IP is of IPv4, so is the first ADDRESS; others may be of IPv6, and are not advertised, but announced.
//! IP and ETH are this router's own addresses, PEER and PEER_ETH those of the other router, or `- -`. A `VRRPPort` for each
//! side and a `VRRPGate` in front of each device name this element.
//!
//! All sides have one state: the router gives way if it hears a higher PRIORITY (1 to 255, default 100) on any side. It
//! becomes active when it hears nothing on all sides for three INTERVALs (10 ms to 40.95 s, default 1 s) and a part of one.
//! On a side with a PEER no other station is heard. On one without, the router hears each station that sends with hop limit 255,
//! VRID, and the virtual router's Ethernet address (RFC 9568, sections 7.1 and 7.2): leave PEER out only where others cannot
//! send from that address, as under port security. keepalived needs `use_vmac` there. With PREEMPT false (default true) a router that is active stays active
//! while it lives. With KEY, 32 bytes in Base64 and equal at both, the flows of all elements with the handlers `changes` and
//! `merge` are copied to the other router, on the first side with a PEER: those of rewriters and of FlowGuard, and which
//! servers of a ServerPool answer. The sum of advertisements covers a pseudo-header if that of the other router does.
//! # Ports
//! 0/0.
//! # Handlers
//! * `state` (read): `active` or `backup`. `transitions` (read): how often it changed.
//! * `priority` (read, write): PRIORITY, 255 for the owner of the addresses, which becomes active at the start and whatever it
//!   hears. `resign` (write): gives way to the other router. With PREEMPT false a router that resigned, also the owner, becomes
//!   active again only if the other one resigns or is silent, or after a start; with PREEMPT true the higher one takes over again.
//! * `copies` (read): whether the other router hears, messages with flows sent, received and waiting, texts that an element
//!   refused, and the numbers of both ends of the connection. The other router has all flows if none waits and it has the same
//!   numbers, the other way round: one that began again just now has others.
//! * `wake` (write): does what is due; the ports use it.
//! # Example
//! `vrrp :: VRRP(1 10.0.0.2 vif0 - - 10.0.0.1, PRIORITY 200, INTERVAL 0.2);`
use crate::prelude::*;
use crate::vrrp::router::{self, Vrrp};

pub static ELEMENT: Class = Class {
    name: "VRRP",
    ports: "0/0",
    args: &[
        rest("SIDE"),
        keyword("PRIORITY"),
        keyword("INTERVAL"),
        keyword("PREEMPT"),
        secret("KEY"),
    ],
    handlers: &Vrrp::HANDLERS,
    build: router::build,
    ..Class::DEFAULT
};
