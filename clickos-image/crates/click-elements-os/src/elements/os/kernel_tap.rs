// SPDX-License-Identifier: Apache-2.0
//! Exchanges Ethernet frames with the machine's own network through an interface made for it.
//!
//! # Synopsis
//! `KernelTap(ADDR [, GATEWAY, keywords])`: ADDR is the machine's address on the interface, with the length of its network's
//! prefix; packets of the machine to other addresses of that network arrive here. GATEWAY, which must be in the network,
//! becomes the machine's default route. Keywords: BURST (packets received at a time, default 1), MTU (largest packet
//! without an Ethernet header, default 1500), ETHER (Ethernet address, default 00:01:02:03:04:05),
//! DEVNAME (the interface's name; the machine chooses one by default), HEADROOM (octets in front of packets, at most 128,
//! which all packets have), IGNORE_QUEUE_OVERFLOWS (without effect).
//! # Ports
//! 0-1/1-2, input agnostic, outputs push. Packets of the machine leave by output 0; the
//! machine receives packets at the input. Output 1 is for other interfaces that KernelTap can stand
//! for; nothing leaves by it.
//! # Handlers
//! * `dev_name` (read): the interface's name. `packets` (read): packets received. `selected_calls` (read): how often there
//!   was something to receive. `drops` (read): packets at the input that did not fit or could not be written.
//! # Differences from Click
//! See `KernelTun`.
//! # Example
//! `tap :: KernelTap(10.1.0.1/24) -> ARPResponder(10.1.0.2 00:01:02:03:04:06) -> tap;`
use crate::kernel_interface::{ARGS, HANDLERS, build};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "KernelTap",
    ports: "0-1/1-2",
    processing: "a/h",
    flow: "x/y",
    args: &ARGS,
    handlers: &HANDLERS,
    build: |a| build(a, true),
    task: true,
    ..Class::DEFAULT
};
