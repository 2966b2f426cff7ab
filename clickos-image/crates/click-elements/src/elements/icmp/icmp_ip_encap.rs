// SPDX-License-Identifier: Apache-2.0
//! Makes packets the content of ICMP messages.
//!
//! # Synopsis
//! `ICMPIPEncap(SRC, DST, TYPE [, CODE, IDENTIFIER])`: a message of TYPE and CODE (default 0), numbers or names, from SRC to
//! DST. Types that have them get IDENTIFIER (default 0) and sequence numbers that count up from 1. Header and
//! destination annotations are set.
//! # Ports
//! 1/1, agnostic. Packets too long for the headers are dropped.
//! # Handlers
//! * `src`, `dst` (read, write): SRC and DST.
//! # Example
//! `RatedSource -> ICMPIPEncap(10.0.0.1, 10.0.0.2, unreachable, host) -> arp;`
use click_wire::icmp;

use crate::icmp_encap::{Encap, HANDLERS};
use crate::numbers::IcmpType;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ICMPIPEncap",
    args: &[
        mandatory("SRC"),
        mandatory("DST"),
        mandatory("TYPE"),
        optional("CODE"),
        keyword("IDENTIFIER"),
    ],
    handlers: &HANDLERS,
    build: |a| {
        let kind = a.need::<IcmpType>("TYPE")?.0;
        let word = a.or("CODE", "0".to_string())?;
        let code = match icmp::code_named(kind, &word) {
            Some(code) => Some(code),
            None => a.parse("CODE", &word),
        };
        Encap::build(a, kind, code?)
    },
    ..Class::DEFAULT
};
