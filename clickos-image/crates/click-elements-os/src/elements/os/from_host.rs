// SPDX-License-Identifier: Apache-2.0
//! Receives the Ethernet frames that the machine sends to an interface made for it.
//!
//! # Synopsis
//! `FromHost(DEVNAME [, DST, keywords])`: DEVNAME is the interface's name, DST the machine's address on it with the
//! length of its network's prefix; without DST an interface of that name that is there already keeps its address. Keywords:
//! GATEWAY (an address of DST's network that becomes the machine's default route), ETHER (the interface's Ethernet
//! address, chosen by the machine by default), MTU (largest packet without an Ethernet header, default 1500), HEADROOM
//! (octets in front of packets, at most 128, which all packets have).
//! # Ports
//! 0/1, push. The machine asks for Ethernet addresses on the interface, too, and somebody has to answer.
//! # Handlers
//! * `dev_name` (read): the interface's name. `packets` (read): packets received. `selected_calls` (read): how often
//!   there was something to receive.
//! # Differences from Click
//! See `KernelTun`.
//! # Example
//! `FromHost(fake0, 10.1.0.1/24) -> c :: Classifier(12/0806, 12/0800);
//! c[0] -> ARPResponder(0.0.0.0/0 1:1:1:1:1:1) -> ToHost(fake0); c[1] -> Discard;`
use click_core::TunRequest;

use crate::kernel_interface::{
    DEV_NAME, KernelInterface, PACKETS, SELECTED_CALLS, check_headroom, gateway, mtu, prefix_len,
};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromHost",
    ports: "0/1",
    processing: "h/h",
    args: &[
        mandatory("DEVNAME"),
        optional("DST"),
        keyword("GATEWAY"),
        keyword("ETHER"),
        keyword("MTU"),
        keyword("HEADROOM"),
    ],
    handlers: &[DEV_NAME, PACKETS, SELECTED_CALLS],
    task: true,
    defines_names: true,
    build: |a| {
        check_headroom(a)?;
        let (name, network) = (a.need::<String>("DEVNAME"), a.opt::<Prefix>("DST"));
        let (mac, mtu, network) = (a.opt::<EtherAddr>("ETHER"), mtu(a), network?);
        let request = TunRequest {
            name: Some(name?),
            ethernet: true,
            address: network.map(|network| (network.address, prefix_len(network))),
            gateway: gateway(a, "DST", network)?,
            mac: mac?.map(|mac| mac.0),
            mtu: mtu?,
        };
        Some(Box::new(KernelInterface::new(request, BURST)))
    },
    ..Class::DEFAULT
};

/// Frames received at a time.
const BURST: usize = 1;
