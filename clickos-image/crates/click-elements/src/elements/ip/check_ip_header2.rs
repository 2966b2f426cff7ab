// SPDX-License-Identifier: Apache-2.0
//! Checks IP headers, but not their checksums.
//!
//! # Synopsis
//! `CheckIPHeader2([OFFSET, CHECKSUM, BADSRC, GOODDST, INTERFACES, ROUTED, VERBOSE, DETAILS])`: a `CheckIPHeader` whose
//! CHECKSUM is false unless it is given; its ARGUMENT has both forms too.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets wrong packets; they are dropped if it is not connected.
//! # Handlers
//! * `drops` (read): wrong packets. `drop_details` (read): the same by reason.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader2 -> Discard;`
use crate::ip_header_check;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckIPHeader2",
    build: |a| ip_header_check::build(a, false),
    ..ip_header_check::CLASS
};
