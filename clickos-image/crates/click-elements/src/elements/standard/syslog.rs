// SPDX-License-Identifier: Apache-2.0
//! Sends what elements log as messages of syslog (RFC 5424) over UDP (RFC 5426).
//!
//! # Synopsis
//! `Syslog(SRC, NAME [, RATE])`: packets come from the address SRC, which is the messages' host name, and port 514. NAME is their application name. At
//! most RATE messages a second are sent (default 100). Elements such as PortBlockMapper name this one as their LOG. At most 256 messages
//! wait; others, and those above 1,400 bytes, are lost. Without a target nothing is logged. The facility is local0.
//! # Ports
//! 0/1, push. Output 0: packets of IPv4, their destination annotations set.
//! # Handlers
//! * `target` (read, write): `ADDRESS [PORT]` of the receiver, port 514 without one; empty or `0.0.0.0` for none.
//! * `sent`, `lost`, `waiting` (read): messages sent, lost, and those that wait.
//! # Example
//! `log :: Syslog(203.0.113.2, cgn) -> arp; blocks :: PortBlockMapper(100.64.0.0/24, 203.0.113.1/32, LOG log); rw :: IPRewriter(blocks, drop);`
use crate::prelude::*;
use crate::syslog;

pub static ELEMENT: Class = Class {
    name: "Syslog",
    ports: "0/1",
    processing: "h/h",
    args: &[mandatory("SRC"), mandatory("NAME"), keyword("RATE")],
    handlers: syslog::HANDLERS,
    build: syslog::build,
    ..Class::DEFAULT
};
