// SPDX-License-Identifier: Apache-2.0
//! Checks IP headers.
//!
//! # Synopsis
//! `CheckIPHeader([OFFSET, CHECKSUM, BADSRC, GOODDST, INTERFACES, ROUTED, VERBOSE, DETAILS])`: the header is OFFSET bytes
//! (default 0) after the start. Length, version, header length, total length, checksum (unless CHECKSUM is false)
//! must be right, and the source not in BADSRC, unless the destination is in GOODDST. INTERFACES, a list of
//! `ADDRESS/PREFIX`, adds the broadcast addresses to BADSRC and the addresses to GOODDST. With ROUTED (default false)
//! packets are wrong that no router may forward: those of or to 0.0.0.0/8, 127.0.0.0/8 and 224.0.0.0/3 (RFC 1812,
//! section 5.3.7), those whose packet type annotation is broadcast or multicast (section 5.3.4), and ICMP redirects
//! (RFC 1122, section 3.2.2.2). Sets header and
//! destination annotations, and cuts off what is after the packet's total length. VERBOSE (default false) prints a message for
//! every wrong packet, not for the first one only. A lone ARGUMENT is OFFSET; the older form `(BADSRC [, OFFSET])`
//! is understood too, and adds 0.0.0.0 and 255.255.255.255 to BADSRC.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets wrong packets; they are dropped if it is not connected.
//! # Handlers
//! * `drops` (read): wrong packets. `drop_details` (read): the same by reason.
//! # Differences from Click
//! `drop_details` exists without DETAILS.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24) -> Discard;`
use crate::ip_header_check;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckIPHeader",
    build: |a| ip_header_check::build(a, true),
    ..ip_header_check::CLASS
};
