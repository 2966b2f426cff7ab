// SPDX-License-Identifier: Apache-2.0
//! Gives TCP and UDP flows other addresses and ports, and their answers the original ones (NAPT).
//!
//! # Synopsis
//! `IPRewriter(INPUTSPEC, ... [, TCP_TIMEOUT, TCP_DONE_TIMEOUT, TCP_NODATA_TIMEOUT, TCP_GUARANTEE, UDP_TIMEOUT, UDP_STREAMING_TIMEOUT,
//! UDP_GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, DST_ANNO, REPLY_ANNO, ENDPOINTS])`.
//! INPUTSPEC, one for each input, says what becomes of a packet of no known flow: `drop`; `pass OUTPUT` (default 0):
//! leaves unchanged, nothing is remembered; `keep FOUTPUT ROUTPUT`: a flow whose packets leave unchanged at FOUTPUT and whose
//! answers do at ROUTPUT; `pattern SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT`: a flow that gets these addresses and ports, where `-` leaves
//! what there is. SPORT may be a range `L-H`: the packet's own port is taken if it is in it and free, else a random free one, an even one for an even one (RFC 4787, REQ-4);
//! with a `#` behind they are taken in turn, with a `?` at random. 512 ports are tried; `pattern NAME FOUTPUT ROUTPUT`: one that IPRewriterPatterns defines; or the name of a mapper
//! element such as RoundRobinIPMapper, maybe with `FOUTPUT ROUTPUT` behind it; `bound FOUTPUT ROUTPUT [FILTERING]`: with ENDPOINTS, a flow to
//! a public address and port goes to the inside ones that have it. FILTERING (RFC 4787) is `endpoint-independent`, the default, `address-dependent`,
//! by which the inside ones need a flow with the packet's source address, or `address-and-port-dependent`, which drops packets of no known flow. Such an INPUTSPEC opens at most half of the flows that there may be.
//! TCP_TIMEOUT (24 hours; TIMEOUT is the same): of connections that both sides have acknowledged; TCP_NODATA_TIMEOUT (5 minutes): of others;
//! TCP_DONE_TIMEOUT (4 minutes): of those that ended; UDP_TIMEOUT (5 minutes), UDP_STREAMING_TIMEOUT (the same): of those with three
//! packets, not all one way. TCP_GUARANTEE (GUARANTEE is the same), UDP_GUARANTEE (5 s): how long a flow is not thrown out for another.
//! REAP_INTERVAL (default 15 minutes; REAP_TIME is the same): how often flows that timed out are removed. MAPPING_CAPACITY, or CAPACITY
//! (default: what the router allows): the most flows there may be, or the name of a rewriter whose capacity is shared.
//! When it is reached the flow goes that would time out first; if all are guaranteed, the new flow is refused.
//! DST_ANNO (default true): the destination annotation becomes the new destination. REPLY_ANNO: answers get this one-byte
//! annotation of the flow's first packet. With ENDPOINTS (default false), all flows of an inside
//! address and port get the same public address and port (endpoint-independent mapping, RFC 4787). No others get it. `endpoint-independent`
//! and `address-and-port-dependent` are other words for true and false.
//! # Ports
//! 1 or more/1 or more, push. Packets need a marked IP header. Others than TCP and UDP, and later fragments, are
//! dropped unless the INPUTSPEC is `pass`.
//! # Handlers
//! * `tcp_table`, `udp_table` (read; `tcp_mappings` and `udp_mappings` are the same): the flows, a line for each direction, with both outputs,
//!   the one taken marked with a star, the input and the seconds left. `tcp_lookup` (read with `SADDR SPORT DADDR DPORT`): what that becomes.
//! * `table_size`, `nmappings` (read): flows of this element. `size` (read), `capacity` (read, write): flows of all elements
//!   that share the capacity, and their limit. `mapping_failures` (read): packets for which no flow could be opened.
//! * `tcp_timeout`, `udp_timeout` (read, write): TCP_TIMEOUT, UDP_TIMEOUT and UDP_STREAMING_TIMEOUT in whole seconds.
//!   `tcp_transitory_timeout` (read, write): TCP_NODATA_TIMEOUT and TCP_DONE_TIMEOUT; read, it is the latter. What is written counts for known flows, too.
//! * `patterns` (read): the INPUTSPECs, with the flows they opened in brackets. `pattern0`, `pattern1` ... (read, write): one of
//!   them, as it can be written; its flows are forgotten when another one is written. `clear` (write): forgets all flows that share the capacity.
//! * `state` (read, write): what was learned, the newest that fits; a guest that moves to another host takes it along.
//!   Read with a number, it has the flows of this part of the table, 0 the first; after the last part it is empty.
//! * `changes` (read): with a number of bytes, new and changed flows since the last reading; with `all`, all count as changed. `VRRP` reads it.
//! * `merge` (write): adds the flows of another guest's `state`. The one heard of last stays, if two have the same addresses and ports.
//! * `merge_lost` (read): flows that ended at a merge, or were not added.
//! * `block_new_flows` (write): a time in which no flow opens. `hold` is its name before 1.0.
//! # Differences from Click
//! The default capacity is the router's limit. A rewriter tries at most 512 choices of a source
//! range for one packet, and remembers those in use, so later packets reach all of a range of at
//! most 1,048,576 choices. A connection need not carry text to have TCP_TIMEOUT (RFC 5382, REQ-5). It orders flows by the time of their last packet, to within 1 us for
//! each flow in the table. A hot swap takes flows over. A mapper cannot be set by writing
//! `pattern0`. Table handlers end with `...` at 1 MiB. Named patterns are copied, so two rewriters
//! do not share a sequence. A flow's state includes the TCP flags of its packets from the first one
//! on. Packets without a marked IP header are dropped. Ports of TCP packets of less than 18 bytes
//! are changed too.
//! # Example
//! `rw :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop); FromDevice(0) -> Strip(14) -> CheckIPHeader -> [0] rw [0] -> q :: Queue -> ToDevice(1); FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1] rw [1] -> Discard;`
use crate::prelude::*;
use crate::rewrite::build::{CLASS, build, rewriter_args, rewriter_handlers};
use crate::rewrite::kind::Kind;
use crate::rewrite::rewriter::{Rewriter, lookup, tcp_table, udp_table};

pub static ELEMENT: Class = Class {
    name: "IPRewriter",
    args: rewriter_args!(
        "DST_ANNO",
        "ENDPOINTS",
        "TCP_TIMEOUT",
        "TCP_DONE_TIMEOUT",
        "TCP_NODATA_TIMEOUT",
        "TCP_GUARANTEE",
        "UDP_TIMEOUT",
        "UDP_STREAMING_TIMEOUT",
        "UDP_GUARANTEE"
    ),
    handlers: rewriter_handlers!(
        tcp_table("tcp_table"),
        udp_table("udp_table"),
        tcp_table("tcp_mappings"),
        udp_table("udp_mappings"),
        lookup("tcp_lookup"),
        Rewriter::TCP_TIMEOUT,
        Rewriter::TCP_TRANSITORY_TIMEOUT,
        Rewriter::UDP_TIMEOUT
    ),
    build: |a| build(a, Kind::Ip),
    ..CLASS
};
