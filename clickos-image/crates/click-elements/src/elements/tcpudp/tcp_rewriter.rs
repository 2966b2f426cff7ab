// SPDX-License-Identifier: Apache-2.0
//! Gives TCP flows other addresses and ports, and their answers the original ones; FTPPortMapper may change their sequence numbers.
//!
//! # Synopsis
//! `TCPRewriter(INPUTSPEC, ... [, TCP_TIMEOUT, TCP_DONE_TIMEOUT, TCP_NODATA_TIMEOUT, TCP_GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, DST_ANNO,
//! REPLY_ANNO])`. The INPUTSPECs are IPRewriter's.
//! TCP_TIMEOUT (24 hours; TIMEOUT is the same): of connections that both sides have acknowledged; TCP_NODATA_TIMEOUT (5 minutes): of others;
//! TCP_DONE_TIMEOUT (4 minutes): of those that ended. TCP_GUARANTEE (5 s; GUARANTEE is the same): how long a flow is not thrown out for another.
//! REAP_INTERVAL (default 15 minutes; REAP_TIME is the same): how often flows that timed out are removed. MAPPING_CAPACITY, or CAPACITY
//! (default: what the router allows): the most flows there may be, or the name of a rewriter whose capacity is shared.
//! When it is reached the flow goes that would time out first; if all are guaranteed, the new flow is refused.
//! DST_ANNO (default true): the destination annotation becomes the new destination. REPLY_ANNO: answers get this one-byte
//! annotation of the flow's first packet.
//! # Ports
//! 1 or more/1 or more, push. Packets need a marked IP header. Others than TCP, and later fragments, are dropped
//! unless the INPUTSPEC is `pass`.
//! # Handlers
//! * `table` (read; `mappings` is the same): the flows, a line for each direction, with both outputs, the one taken marked with a star, the
//!   input and the seconds left. `lookup` (read with `SADDR SPORT DADDR DPORT`): what that becomes.
//! * `table_size`, `nmappings` (read): flows of this element. `size` (read), `capacity` (read, write): flows of all elements
//!   that share the capacity, and their limit. `mapping_failures` (read): packets for which no flow could be opened.
//! * `patterns` (read): the INPUTSPECs, with the flows they opened in brackets. `pattern0`, `pattern1` ... (read, write): one of
//!   them, as it can be written; its flows are forgotten when another one is written. `clear` (write): forgets all flows that share the capacity.
//! * `state` (read, write): what was learned, the newest that fits; a guest that moves to another host takes it along.
//!   Read with a number, it has the flows of this part of the table, 0 the first; after the last part it is empty.
//! * `changes` (read): with a number of bytes, new and changed flows since the last reading; with `all`, all count as changed. `VRRP` reads it.
//! * `merge` (write): adds the flows of another guest's `state`. The one heard of last stays, if two have the same addresses and ports.
//! * `merge_lost` (read): flows that ended at a merge, or were not added.
//! * `block_new_flows` (write): a time in which no flow opens. `hold` is its name before 1.0.
//! # Differences from Click
//! See `IPRewriter`.
//! # Example
//! `rw :: TCPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop); in -> [0] rw [0] -> out; back -> [1] rw [1] -> home;`
use crate::prelude::*;
use crate::rewrite::build::{CLASS, build, rewriter_args, rewriter_handlers};
use crate::rewrite::kind::Kind;
use crate::rewrite::rewriter::{lookup, table};

pub static ELEMENT: Class = Class {
    name: "TCPRewriter",
    args: rewriter_args!(
        "DST_ANNO",
        "TCP_TIMEOUT",
        "TCP_DONE_TIMEOUT",
        "TCP_NODATA_TIMEOUT",
        "TCP_GUARANTEE"
    ),
    handlers: rewriter_handlers!(table("table"), table("mappings"), lookup("lookup")),
    build: |a| build(a, Kind::Tcp),
    ..CLASS
};
