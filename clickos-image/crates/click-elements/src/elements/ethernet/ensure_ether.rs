// SPDX-License-Identifier: Apache-2.0
//! Makes sure that IP packets have an Ethernet header.
//!
//! # Synopsis
//! `EnsureEther([ETHERTYPE, SRC, DST])`: packets that have a header of IPv4 or IPv6 keep it, those whose header was stripped
//! get it back, the others get one of ETHERTYPE (default 0x0800), SRC (default 01:01:01:01:01:01) and DST (default
//! 02:02:02:02:02:02).
//! # Ports
//! 1/1, agnostic. Packets without a marked IP header pass unchanged.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDump(any.pcap) -> EnsureEther -> ToDump(ether.pcap);`
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EnsureEther",
    args: &[optional("ETHERTYPE"), optional("SRC"), optional("DST")],
    build: |a| {
        let ethertype = a.or("ETHERTYPE", ether::IPV4);
        let (source, destination) = (
            a.or("SRC", EtherAddr([1; 6])),
            a.or("DST", EtherAddr([2; 6])),
        );
        Some(Box::new(EnsureEther {
            header: ether::Repr {
                destination: destination?.0,
                source: source?.0,
                ethertype: ethertype?,
            },
        }))
    },
    ..Class::DEFAULT
};

const IPV6: u16 = 0x86dd;

struct EnsureEther {
    header: ether::Repr,
}

fn has_header(packet: &Packet) -> bool {
    let header = ether::Repr::parse(packet.data());
    header.is_ok_and(|h| [ether::IPV4, IPV6].contains(&h.ethertype))
}

impl InPlace for EnsureEther {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(Ok(offset)) = packet.network_offset().map(usize::try_from) else {
            return 0;
        };
        if offset == ether::HEADER && has_header(packet) {
            return 0;
        }
        packet.pull(offset);
        if !packet.push(ether::HEADER) {
            return DROPPED;
        }
        // what was stripped is still there
        if offset != 0 || !has_header(packet) {
            self.header.emit(packet.data_mut());
        }
        0
    }
}

impl Element for EnsureEther {
    in_place!(plain);
}
