// SPDX-License-Identifier: Apache-2.0
//! Gives pairs of hosts other addresses, and their answers the original ones.
//!
//! # Synopsis
//! `IPAddrPairRewriter(INPUTSPEC, ... [, TIMEOUT, GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, REPLY_ANNO])`.
//! INPUTSPEC, one for each input, says what becomes of a packet of no known flow: `drop`; `pass OUTPUT` (default 0):
//! leaves unchanged, nothing is remembered; `keep FOUTPUT ROUTPUT`: a flow whose packets leave unchanged at FOUTPUT and whose
//! answers do at ROUTPUT; `pattern SADDR DADDR FOUTPUT ROUTPUT`: a flow that gets these addresses, where `-` leaves what there is. SADDR may be a
//! range `L-H` or a prefix, from which a random free address is chosen, or with a `#` behind the next one; `pattern NAME FOUTPUT ROUTPUT`: one that IPRewriterPatterns defines; or the name of a mapper
//! element such as RoundRobinIPMapper.
//! TIMEOUT (default 2 hours): how long a pair is remembered. GUARANTEE (default 5 s): how long it is not thrown out for another.
//! REAP_INTERVAL (default 15 minutes; REAP_TIME is the same): how often flows that timed out are removed. MAPPING_CAPACITY, or CAPACITY
//! (default: what the router allows): the most flows there may be, or the name of a rewriter whose capacity is shared.
//! When it is reached the flow goes that would time out first; if all are guaranteed, the new flow is refused.
//! REPLY_ANNO: answers get this one-byte annotation of the first packet.
//! # Ports
//! 1 or more/1 or more, push. Packets need a marked IP header. The destination annotation becomes the new destination.
//! # Handlers
//! * `table` (read; `mappings` is the same): the pairs, a line for each direction, with both outputs, the one taken marked with a star, the
//!   input and the seconds left.
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
//! `rw :: IPAddrPairRewriter(pattern 203.0.113.0/24 - 0 1, drop); in -> [0] rw [0] -> out; back -> [1] rw [1] -> home;`
use crate::prelude::*;
use crate::rewrite::build::{CLASS, build, rewriter_args, rewriter_handlers};
use crate::rewrite::kind::Kind;
use crate::rewrite::rewriter::table;

pub static ELEMENT: Class = Class {
    name: "IPAddrPairRewriter",
    args: rewriter_args!(),
    handlers: rewriter_handlers!(table("table"), table("mappings")),
    build: |a| build(a, Kind::Pair),
    ..CLASS
};
