// SPDX-License-Identifier: Apache-2.0
//! Receives packets from another program, or another machine, through a socket.
//!
//! # Synopsis
//! `FromSocket(TYPE, ADDR [, PORT, LOCAL_ADDR, LOCAL_PORT, keywords])`: a Socket that waits for others to connect.
//! TYPE is TCP or UDP with an address, a port and those of this side (`LOCAL_ADDR`, `LOCAL_PORT`), or UNIX (a stream) or
//! UNIX_DGRAM with a file (`ADDR`) and a file of this side (in the place of `PORT`). Keywords: CLIENT (whether it connects
//! to the address, or waits there for one connection at a time, the default), SNAPLEN
//! (octets of a packet at most, default 2048), TIMESTAMP (default true: packets are stamped), NODELAY (default true: TCP
//! sends at once), SNDBUF and RCVBUF (octets of the socket's buffers), ALLOW and DENY (tables of routes; a server takes
//! packets only of machines that ALLOW has, or that DENY has not), VERBOSE (default false: reports connections),
//! HEADROOM (octets in front of packets, at most 128, which all packets have), PROPER (only false).
//! # Ports
//! 0/1, push. A stream's packets are what one read gives.
//! # Handlers
//! * `count` (read): packets received. `drops` (read): packets that could not be sent, or had no buffer.
//! # Differences from Click
//! See `Socket`.
//! # Example
//! `FromSocket(UNIX_DGRAM, /run/in.sock) -> Print -> Discard;`
use crate::socket::{ARGS, HANDLERS, build};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromSocket",
    ports: "0/1",
    processing: "h/h",
    args: &ARGS,
    handlers: &HANDLERS,
    build: |a| build(a, Some(false)),
    task: true,
    ..Class::DEFAULT
};
