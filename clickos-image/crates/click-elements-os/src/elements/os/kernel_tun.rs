// SPDX-License-Identifier: Apache-2.0
//! Exchanges IP packets with the machine's own network through an interface made for it.
//!
//! # Synopsis
//! `KernelTun(ADDR [, GATEWAY, keywords])`: ADDR is the machine's address on the interface, with the length of its network's
//! prefix; packets of the machine to other addresses of that network arrive here. GATEWAY, which must be in the network,
//! becomes the machine's default route. Keywords: BURST (packets received at a time, default 1), MTU (largest packet
//! without an Ethernet header, default 1500), ETHER (Ethernet address, default 00:01:02:03:04:05; without effect),
//! DEVNAME (the interface's name; the machine chooses one by default), HEADROOM (octets in front of packets, at most 128,
//! which all packets have), IGNORE_QUEUE_OVERFLOWS (without effect).
//! # Ports
//! 0-1/1-2, input agnostic, outputs push. Packets of the machine leave by output 0 with a
//! marked IP header; wrong IP packets leave by output 1. Packets at the input the machine receives,
//! from their marked IP header on.
//! # Handlers
//! * `dev_name` (read): the interface's name. `packets` (read): packets received. `selected_calls` (read): how often there
//!   was something to receive. `drops` (read): packets at the input that did not fit or could not be written.
//! # Differences from Click
//! Linux only. FromHost has no `signal`; its `packets` and `selected_calls` are ours, as is `drops`
//! of the others. A hot swap makes another interface, so DEVNAME has to change with it. ETHER of
//! KernelTun and IGNORE_QUEUE_OVERFLOWS have no effect.
//! # Example
//! `tun :: KernelTun(10.1.0.1/24) -> ICMPPingResponder -> tun;`
use crate::kernel_interface::{ARGS, HANDLERS, build};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "KernelTun",
    ports: "0-1/1-2",
    processing: "a/h",
    flow: "x/y",
    args: &ARGS,
    handlers: &HANDLERS,
    build: |a| build(a, false),
    task: true,
    ..Class::DEFAULT
};
