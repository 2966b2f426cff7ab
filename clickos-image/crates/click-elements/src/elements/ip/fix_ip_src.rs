// SPDX-License-Identifier: Apache-2.0
//! Sets the sender of IP packets that ask for it.
//!
//! # Synopsis
//! `FixIPSrc(IPADDR)`: packets with the fix IP source annotation, such as those of `ICMPError`, get IPADDR, usually
//! the address of the interface they leave by. The annotation is cleared, the checksum follows.
//! # Ports
//! 1/1, agnostic. Packets without a marked IP header pass unchanged.
//! # Handlers
//! None of its own.
//! # Example
//! `rt[0] -> FixIPSrc(10.0.0.1) -> ttl :: DecIPTTL -> ...`
use click_core::anno;

use crate::ip_packet::header_mut;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FixIPSrc",
    args: &[mandatory("IPADDR")],
    build: |a| {
        Some(Box::new(FixIPSrc {
            address: a.need("IPADDR")?,
        }))
    },
    ..Class::DEFAULT
};

struct FixIPSrc {
    address: Ipv4Addr,
}

/// Sets the sender.
#[cold]
fn fix(packet: &mut Packet, address: Ipv4Addr) {
    if let Some(mut header) = header_mut(packet) {
        header.set_source(address);
        packet.anno_mut().set_u8(anno::FIX_IP_SRC, 0);
    }
}

impl InPlace for FixIPSrc {
    #[inline(always)]
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if packet.anno().u8(anno::FIX_IP_SRC) != 0 {
            fix(packet, self.address);
        }
        0
    }
}

impl Element for FixIPSrc {
    in_place!(plain);
}
