// SPDX-License-Identifier: Apache-2.0
//! Announces a route with RIP version 2 (RFC 2453).
//!
//! # Synopsis
//! `RIPSend(SRC, DST, PREFIX, METRIC)`: a packet from SRC to DST which says that SRC knows the way to PREFIX, METRIC hops
//! long. All mandatory. The first after 3 seconds, then one every 30 seconds.
//! # Ports
//! 0/1, push. IP packets.
//! # Handlers
//! None of its own.
//! # Example
//! `RIPSend(10.0.0.1, 10.0.0.255, 10.1.0.0/16, 2) -> EtherEncap(0x0800, vif0, ff:ff:ff:ff:ff:ff) -> ToDevice(0);`
use click_wire::{ipv4, udp};

use crate::ip_packet::encapsulate;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "RIPSend",
    ports: "0/1",
    processing: "h/h",
    args: &[
        mandatory("SRC"),
        mandatory("DST"),
        mandatory("PREFIX"),
        mandatory("METRIC"),
    ],
    build: |a| {
        let (source, destination) = (a.need("SRC"), a.need("DST"));
        let (prefix, metric) = (a.need("PREFIX"), a.need("METRIC"));
        Some(Box::new(RIPSend {
            source: source?,
            destination: destination?,
            prefix: prefix?,
            metric: metric?,
        }))
    },
    ..Class::DEFAULT
};

const PORT: u16 = 520;
const TTL: u8 = 200;
const FIRST_NS: u64 = 3_000_000_000;
const INTERVAL_NS: u64 = 30_000_000_000;
/// A response of version 2, domain 0, and the address family of what follows, without a route tag.
const HEADER: [u8; 8] = [2, 2, 0, 0, 0, 2, 0, 0];

struct RIPSend {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    prefix: Prefix,
    metric: u32,
}

impl RIPSend {
    fn message(&self) -> Vec<u8> {
        let network = u32::from(self.prefix.address) & u32::from(self.prefix.mask);
        let words = [
            network,
            self.prefix.mask.into(),
            self.source.into(),
            self.metric,
        ];
        let words = words.iter().flat_map(|word| word.to_be_bytes());
        HEADER.into_iter().chain(words).collect()
    }

    fn packet(&self, ctx: &mut Context<'_>) -> Option<Packet> {
        let mut packet = ctx.pool().packet_from(&self.message())?;
        if !packet.push(udp::HEADER) {
            return None;
        }
        let ports = udp::Repr {
            source: PORT,
            destination: PORT,
        };
        ports.emit(packet.data_mut(), self.source, self.destination);
        let header = ipv4::Repr {
            tos: 0,
            id: 0,
            fragment: 0,
            ttl: TTL,
            protocol: ipv4::UDP,
            source: self.source,
            destination: self.destination,
            payload_len: 0,
        };
        encapsulate(&mut packet, header).then_some(packet)
    }
}

impl Element for RIPSend {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_timer(ctx.now_ns().saturating_add(FIRST_NS));
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if let Some(packet) = self.packet(ctx) {
            ctx.push_one(0, packet);
        }
        ctx.set_timer(ctx.now_ns().saturating_add(INTERVAL_NS));
    }
}
