// SPDX-License-Identifier: Apache-2.0
//! The elements, one file each under `src/elements/<group>/`; `build.rs` finds them.
//!
//! A file holds the element's documentation, its class (`ELEMENT`), its code and
//! its unit tests; cases that need a router are in `conformance/<group>/`.
#![no_std]
#![forbid(unsafe_code)]
// Elements that are left out leave what only they use.
#![cfg_attr(partial, allow(dead_code, unused_imports, unused_macros))]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod announcements;
mod arp_table;
mod calendar;
mod carried;
mod classify;
mod datagram;
mod decimal;
mod dhcp;
mod dhcp6;
mod dump;
mod ethernet_place;
mod fast_udp;
mod files;
mod flow_guard;
mod flow_key;
mod flow_log;
mod flows;
mod gtp;
mod guard;
mod header_check;
mod headers;
mod icmp_encap;
#[cfg(feature = "regex")]
mod inspect;
mod interface;
mod ip6;
mod ip_comp;
mod ip_field;
mod ip_header_check;
mod ip_options;
mod ip_packet;
mod ipfix;
mod ipsec;
mod lanes;
mod learning_switch;
mod moment;
mod networks;
mod numbers;
mod outputs;
mod packet_number;
mod paint;
mod pppoe;
pub mod prelude;
mod print_line;
mod radius;
mod reassembly;
mod recorded_times;
mod relay;
mod rewrite;
mod rfc2507;
mod routes;
mod standard;
mod steps;
mod syslog;
mod transport_line;
mod unless_key;
mod vlan;
mod vrrp;
mod vxlan;
mod wireguard;

use click_core::{Entry, Packet, Registry};

/// The modules `build.rs` found.
mod elements {
    use click_core::Entry;
    include!(concat!(env!("OUT_DIR"), "/elements.rs"));
}

/// Classes that reach an operating system; `click-elements-os` has some. They are known by name, so that the error says
/// why they are missing.
const OS_NAMES: [&str; 32] = [
    "ChangeUID",
    "ChatterSocket",
    "ControlSocket",
    "FromDAGDump",
    "DPDKInfo",
    "FromCapDump",
    "FromDPDKDevice",
    "FromFile",
    "FromHost",
    "FromNetFlowSummaryDump",
    "FromNLANRDump",
    "FromNetmapDevice",
    "FromRawSocket",
    "FromSocket",
    "FromTun",
    "IPFlowRawSockets",
    "KernelFilter",
    "KernelHandlerProxy",
    "KernelTap",
    "KernelTun",
    "LinuxIPLookup",
    "McastSocket",
    "PollDevice",
    "RawSocket",
    "Socket",
    "ToDPDKDevice",
    "ToHost",
    "ToHostSniffers",
    "ToNetmapDevice",
    "ToRawSocket",
    "ToSocket",
    "UMLSwitch",
];

mod handler_call;
mod ip_summary;
mod script;

/// All element classes of this build, as a guest has them.
pub fn registry() -> Registry {
    Registry::new(entries(), &OS_NAMES)
}

/// All classes of this build, without aliases.
pub fn entries() -> &'static [Entry] {
    elements::ENTRIES
}

/// Marks the IP header that a packet begins with and sets its destination annotation; false if it has none.
pub fn mark_ip(packet: &mut Packet) -> bool {
    dump::link::Link::RAW_IP.mark_ip(packet)
}
