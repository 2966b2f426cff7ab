// SPDX-License-Identifier: Apache-2.0
//! Passes flows that one side begins, with their answers and the errors about them, for IPv4 and IPv6.
//!
//! # Synopsis
//! `FlowGuard([CAPACITY, TCP_TIMEOUT, TCP_TRANSITORY_TIMEOUT, UDP_TIMEOUT, ICMP_TIMEOUT])`: at most CAPACITY flows (default
//! 4096, at most the router's limit), as far as the memory takes them. A TCP connection is forgotten after TCP_TIMEOUT seconds of silence (default 7,440, RFC 5382, REQ-5); before it is
//! open, and after it is over, after TCP_TRANSITORY_TIMEOUT (240). UDP and other protocols after UDP_TIMEOUT (300, RFC 4787,
//! REQ-5), pings after ICMP_TIMEOUT (60, RFC 5508, REQ-2). Packets stay as they are.
//!
//! Packets of a TCP connection pass if they are in its windows (RFC 9293, section 3.4). One that was open before the
//! element began is not judged so. ICMP errors pass to the sender of the packet that they quote, if that
//! is of a known flow. Later fragments pass behind
//! their first one, for 30 s, at most 256 packets at a time.
//!
//! When all places are taken, a new flow replaces one of a host that began more than an eighth of all and more than its own
//! host. Without such a host it replaces the flow that was silent longest, for at least 5 s, but no open connection. A host with an
//! eighth of all replaces only its own flows so. A host is an address of the inside, or outside an address of IPv4 or a /64 of IPv6.
//! # Ports
//! 3/2-3, push. The header annotation must be set. Input 0: packets of the inside, which may begin flows; output 0 gets
//! them. Input 1: packets of the outside, which may not; input 2: packets of the outside that may. Output 1 gets what passes
//! of both. Other packets of inputs 0 and 1 leave by output 2, or are dropped if it is not connected.
//! # Handlers
//! * `table` (read): the flows, a line each: protocol, addresses and ports, `out` or `in` by who began, milliseconds of silence.
//! * `table_size`, `capacity` (read): flows, and how many there may be. `mapping_failures` (read): packets for which no flow
//!   could be opened. `drops` (read): packets that did not pass, by reason. `clear` (write): forgets all flows.
//! * `tcp_timeout`, `tcp_transitory_timeout`, `udp_timeout`, `icmp_timeout` (read, write): the arguments of these names. What is written
//!   counts for known flows, too.
//! * `log` (read): flows of packets that did not pass, the newest first, at most 128: milliseconds since the last packet,
//!   packets, protocol, addresses and ports, reason; `log_lost` (read): packets beyond a hundred a second, which are not in it.
//!   `reset_log` (write): forgets it.
//! * `state` (read, write): the flows, the newest that fit; a guest that moves to another host takes it along.
//!   Read with a number, it has the flows of this part of the table, 0 the first; after the last part it is empty.
//! * `changes` (read): with a number of bytes, new and changed flows since the last reading; with `all`, all count as changed. `VRRP` reads it.
//!   A TCP connection counts as changed every 4 MiB of a side.
//! * `merge` (write): adds the flows of another guest's `state`. The one heard of last stays, if two have the same addresses and ports.
//!   Until a side of a connection sends a packet here, it may be 128 MiB beyond its window.
//! * `merge_lost` (read): flows that ended at a merge, or were not added. `block_new_flows` (write): a time in which no flow opens; `hold` is its name before 1.0.
//! # Example
//! `g :: FlowGuard; FromDevice(0) -> Strip(14) -> CheckIPHeader -> g -> q :: Queue -> ToDevice(1); FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]g[1] -> Discard; Idle -> [2]g;`
use crate::flow_guard::element;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FlowGuard",
    ports: "3/2-3",
    processing: "h/h",
    args: &[
        element::CAPACITY,
        element::TIMEOUTS[0],
        element::TIMEOUTS[1],
        element::TIMEOUTS[2],
        element::TIMEOUTS[3],
    ],
    handlers: element::HANDLERS,
    build: element::build,
    ..Class::DEFAULT
};
