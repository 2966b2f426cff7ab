// SPDX-License-Identifier: Apache-2.0
//! Makes packets the content of pings.
//!
//! # Synopsis
//! `ICMPPingEncap(SRC, DST [, IDENTIFIER])`: an ICMP echo request from SRC to DST with IDENTIFIER (default 0); sequence
//! numbers count up from 1. Header and destination annotations are set.
//! # Ports
//! 1/1, agnostic. Packets too long for the headers are dropped.
//! # Handlers
//! * `src`, `dst` (read, write): SRC and DST.
//! # Example
//! `RatedSource -> ICMPPingEncap(10.0.0.1, 10.0.0.2) -> arp;`
use crate::icmp_encap::{Encap, HANDLERS};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ICMPPingEncap",
    args: &[mandatory("SRC"), mandatory("DST"), keyword("IDENTIFIER")],
    handlers: &HANDLERS,
    build: |a| Encap::build(a, ECHO, 0),
    ..Class::DEFAULT
};

const ECHO: u8 = 8;
