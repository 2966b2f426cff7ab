// SPDX-License-Identifier: Apache-2.0
//! Filters IP packets by rules.
//!
//! # Synopsis
//! `IPFilter(ACTION PATTERN, ...)`: the first RULE whose PATTERN matches decides. ACTION is `allow` (output 0), `deny` or
//! `drop`, or the number of an output; PATTERN is as in `IPClassifier`, `all` matches everything. A packet that no
//! rule matches is dropped.
//! # Ports
//! 1/any, push. The header annotation must be set (`CheckIPHeader`, `MarkIPHeader`).
//! # Handlers
//! * `config` (read, write): the rules, separated by commas; a new list takes effect between two packets, a wrong one
//!   changes nothing.
//! * `offload` (read, write): with true the switch drops packets by the rules before they arrive; default false. The
//!   switch takes the rules that it can express. Only `Counter`, `Null`, `Strip(14)`, `Classifier`, `CheckIPHeader`, `MarkIPHeader`
//!   and `IPReassembler` may stand between `FromDevice` and this element; they count what arrives.
//! * `offload_state` (read): for each device `asked`, `active`, `replaced` or `refused`, or why there is none.
//! * `hits` (read): for each rule how many packets it decided, those of the switch included, and the rule.
//!   `reset_hits` (write): sets all to 0.
//! * `log` (read): flows of packets that were dropped, the newest first, at most 128: milliseconds since the last packet,
//!   packets, protocol, addresses and ports (of ICMP: type and code), rule; `log_lost` (read): packets beyond a hundred a
//!   second, which are not in it. `reset_log` (write): forgets it. What the switch drops is not in it.
//! * `program` (read): the rules as a list of steps, in Click's format. `rules` (read): as they were understood.
//! # Differences from Click
//! `program` prints Click's list of steps, which may be shorter where Click keeps a step with a
//! known outcome. Lists of more than 2,048 steps are shown as they are written. `offload` and
//! `offload_state` are ours (ADR 0083). A new `config` keeps the counts of the rules that it
//! repeats. A meaningless `src` or `dst` is ignored. As in Click, `src or dst port < 80` means that
//! both are. An IP header shorter than 20 bytes counts as none. A packet without a marked IP header
//! matches only what every packet matches.
//! # Example
//! `... -> CheckIPHeader -> fw :: IPFilter(allow icmp, deny tcp dst port 80, allow all) -> ...`
use crate::classify::element::{self, CLASS, LOGGING, OFFLOADING, OFFLOADING_AND_LOGGING};
use crate::classify::program::Syntax;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPFilter",
    args: &[rest("RULE")],
    handlers: match (cfg!(offload), cfg!(flow_log)) {
        (true, true) => OFFLOADING_AND_LOGGING,
        (true, false) => OFFLOADING,
        (false, true) => LOGGING,
        (false, false) => CLASS.handlers,
    },
    build: |a| element::build(a, Syntax::Action, "RULE"),
    ..CLASS
};
