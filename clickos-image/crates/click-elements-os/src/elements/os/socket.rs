// SPDX-License-Identifier: Apache-2.0
//! Exchanges packets with another program, or another machine, through a socket.
//!
//! # Synopsis
//! `Socket(TYPE, ADDR [, PORT, LOCAL_ADDR, LOCAL_PORT, keywords])`:
//! TYPE is TCP or UDP with an address, a port and those of this side (`LOCAL_ADDR`, `LOCAL_PORT`), or UNIX (a stream) or
//! UNIX_DGRAM with a file (`ADDR`) and a file of this side (in the place of `PORT`). Keywords: CLIENT (whether it connects
//! to the address, or waits there for one connection at a time; default: it connects if it has no output, or an address of this side), SNAPLEN
//! (octets of a packet at most, default 2048), TIMESTAMP (default true: packets are stamped), NODELAY (default true: TCP
//! sends at once), SNDBUF and RCVBUF (octets of the socket's buffers), ALLOW and DENY (tables of routes; a server takes
//! packets only of machines that ALLOW has, or that DENY has not), VERBOSE (default false: reports connections),
//! HEADROOM (octets in front of packets, at most 128, which all packets have), PROPER (only false).
//! # Ports
//! 0-1/0-1, input agnostic, output push. Packets at the input are sent: by a client of
//! datagrams whose address is 0.0.0.0 to each packet's destination annotation, by a server of
//! datagrams to whom it last received from. Received data leave by the output; each read of a
//! stream makes a packet.
//! # Handlers
//! * `count` (read): packets received. `drops` (read): packets that could not be sent, or had no buffer.
//! # Differences from Click
//! If a socket does not accept a pushed packet immediately, the element drops and counts it
//! (`drops`); Click waits. It keeps the rest of a packet that a stream accepts in part. Ports are
//! numbers. The file of a server is removed with the server. The element polls an idle socket every
//! millisecond. `count` and `drops` are ours; PROPER is refused.
//! # Example
//! `in :: Socket(UDP, 0.0.0.0, 4000) -> Print -> in;`
use crate::socket::{ARGS, HANDLERS, build};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Socket",
    ports: "0-1/0-1",
    processing: "a/h",
    flow: "x/y",
    args: &ARGS,
    handlers: &HANDLERS,
    build: |a| build(a, None),
    task: true,
    ..Class::DEFAULT
};
