// SPDX-License-Identifier: Apache-2.0
//! Sorts IP packets by patterns.
//!
//! # Synopsis
//! `IPClassifier(PATTERN, ...)`: output n gets the packets whose first matching PATTERN is the n-th, counted from 0;
//! a packet that matches none is dropped. PATTERN combines tests with `and`, `or`, `not` (`&&`, `||`, `!`),
//! `a ? b : c` and parentheses; tests next to each other mean `and`. `-`, `any` and `all` match everything. Tests:
//! * `ip proto NAME`, `[src|dst|src or dst|src and dst] host ADDRESS`, `... net ADDRESS/PREFIX`,
//!   `... [tcp|udp] port PORT`, `icmp type TYPE`, `tcp opt FLAG`, `tcp win N`, `... ether host ADDRESS`;
//! * `ip vers|hl|len|id|tos|dscp|ttl N`, `ip ect`, `ip ce`, `ip frag`, `ip unfrag`, `true`, `false`;
//! * `ip[POS:LEN] N`, `tcp[POS:LEN] N`, `transp[POS:LEN] N`: bytes of a header;
//! * `ip6`: the packet is one of IPv6. In front of another test it asks for both: `ip6 tcp dst port 80`, `ip6 proto N`.
//!   `ip6 vers|len|tos|dscp|hlim N`, `ip6 ect`, `ip6 ce`, `ip6[POS:LEN] N`: fields of its header. `host` and `net` take
//!   addresses of IPv6. `icmp6 type TYPE`. `ip6 hidden`: the extension headers are cut, or more than eight, so they do
//!   not say the protocol.
//!
//! Tests of protocols, ports, flags and fragments are true of both versions. In IPv6, the protocol and its header are
//! after the extension headers.
//!
//! Before a value `==`, `!=`, `<`, `>`, `<=`, `>=` may stand, and `& MASK` before those. Optional
//! words: `tcp`, `www`, `syn`, `10.0.0.0/8`, `src port 80 or 81`. Tests of transport headers are
//! true of first fragments only; a test of a field that is not there is false.
//! # Ports
//! 1/any, push; as many outputs as patterns. The header annotation must be set.
//! # Handlers
//! * `config` (read, write): the patterns, as many as before. `pattern0` ... (read, write): each. `hits` (read): for each pattern how many packets matched.
//! * `reset_hits` (write): sets them to 0. `rules` (read): the patterns as they were understood.
//! * `program` (read): the patterns as a list of steps, in Click's format.
//! # Differences from Click
//! `program` prints Click's list of steps, which may be shorter where Click keeps a step with a
//! known outcome. Lists of more than 2,048 steps are shown as they are written. A new `config`
//! keeps the counts of the rules that it repeats. A meaningless `src` or `dst` is ignored. As in
//! Click, `src or dst port < 80` means that both are. An IP header shorter than 20 bytes counts as
//! none.
//! # Example
//! `... -> CheckIPHeader -> c :: IPClassifier(icmp type echo, tcp dst port 80, -);`
use crate::classify::element::{self, CLASS};
use crate::classify::program::Syntax;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPClassifier",
    args: &[rest("PATTERN")],
    families: &[Family::PerOutput(&[element::PATTERN])],
    build: |a| element::build(a, Syntax::Position, "PATTERN"),
    ..CLASS
};
