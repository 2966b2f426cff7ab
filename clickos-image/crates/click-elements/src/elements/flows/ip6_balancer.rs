// SPDX-License-Identifier: Apache-2.0
//! Sends the flows of one IPv6 address to servers: the destination of a client's packets becomes that of a server, and the source of its answers becomes the address.
//!
//! # Synopsis
//! `IP6Balancer(ADDRESS, POOL [, CAPACITY, TCP_TIMEOUT, TCP_TRANSITORY_TIMEOUT, UDP_TIMEOUT, ICMP_TIMEOUT])`: POOL is a `ServerPool`, whose servers of IPv6
//! get the flows of TCP and UDP that clients begin with ADDRESS. A flow stays with its server. At most CAPACITY flows (default
//! 4096, at most the router's limit), for the times of `FlowGuard`. Packets of a TCP connection pass if they are in its windows (RFC 9293,
//! section 3.4). ICMPv6 errors about a flow pass with the addresses that their receiver knows. Later fragments pass behind their first
//! one, for 30 s, at most 256 packets at a time. When all places are taken, new flows replace others as those of `FlowGuard` do; a host is a /64.
//! # Ports
//! 2/2-3, push. The header annotation must be set. Input 0: packets to ADDRESS; output 0 gets them with the address of a server. Input 1:
//! packets of servers; output 1 gets them with ADDRESS as their source. Others leave by output 2 as they are, or are dropped if it is not connected.
//! # Handlers
//! * `table` (read): the flows as `FlowGuard` has them, each with its server at the end.
//! * `table_size`, `capacity` (read): flows, and how many there may be. `mapping_failures` (read): packets for which the table had no place.
//!   `drops` (read): packets that did not pass, by reason. `clear` (write): forgets all flows.
//! * `tcp_timeout`, `tcp_transitory_timeout`, `udp_timeout`, `icmp_timeout` (read, write): as those of `FlowGuard`.
//! * `log`, `log_lost` (read), `reset_log` (write): as those of `FlowGuard`.
//! * `state`, `merge`, `block_new_flows`, `hold` (write), `state`, `changes`, `merge_lost` (read): as those of `FlowGuard`, with the server of each flow.
//! # Example
//! `pool :: ServerPool(10.0.2.1, 2001:db8:2::8, SRC6 2001:db8:2::1) -> q :: Queue -> ToDevice(1); b :: IP6Balancer(2001:db8:1::1, pool); FromDevice(0) -> Strip(14) -> CheckIP6Header -> b -> q; FromDevice(1) -> Strip(14) -> CheckIP6Header -> [1]b[1] -> Queue -> ToDevice(0);`
use crate::flow_guard::element;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IP6Balancer",
    ports: "2/2-3",
    processing: "h/h",
    args: &[
        mandatory("ADDRESS"),
        mandatory("POOL"),
        element::CAPACITY,
        element::TIMEOUTS[0],
        element::TIMEOUTS[1],
        element::TIMEOUTS[2],
        element::TIMEOUTS[3],
    ],
    handlers: element::HANDLERS,
    build: element::build_balancer,
    ..Class::DEFAULT
};
