// SPDX-License-Identifier: Apache-2.0
//! What an IP router does to packets before they leave by an interface.
//!
//! # Synopsis
//! `IPOutputCombo(COLOR, IPADDR, MTU)`: as `DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) ->
//! DecIPTTL -> CheckLength(MTU)`, where IPADDR is the interface's address.
//! # Ports
//! 1/5, push. The header annotation must be set; packets without it are dropped. Output 0: packets to send; 1: copies of
//! packets that leave by the interface they came in by (for redirects); 2: wrong options; 3: time is over; 4: too long.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! A packet with wrong options is left unchanged.
//! Packets of one batch leave grouped by output; the order may differ where two outputs join again.
//! # Example
//! `rt[0] -> out :: IPOutputCombo(1, 10.0.0.1, 1500) -> arp; out[4] -> IPFragmenter(1500) -> arp; ...`
use click_core::anno::{self, PacketType};

use crate::ip_options::Writer;
use crate::ip_packet::header_mut;
use crate::outputs::Outputs;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPOutputCombo",
    ports: "1/5",
    processing: "h/h",
    args: &[mandatory("COLOR"), mandatory("IPADDR"), mandatory("MTU")],
    build: |a| {
        let (color, address, mtu) = (a.need("COLOR"), a.need("IPADDR"), a.need("MTU"));
        Some(Box::new(IPOutputCombo {
            color: color?,
            address: address?,
            mtu: mtu?,
            outputs: Outputs::new(a.outputs()),
        }))
    },
    ..Class::DEFAULT
};

const SAME_INTERFACE: usize = 1;
const WRONG_OPTIONS: usize = 2;
const TIME_OVER: usize = 3;
const TOO_LONG: usize = 4;

struct IPOutputCombo {
    color: u8,
    address: Ipv4Addr,
    mtu: usize,
    outputs: Outputs,
}

impl IPOutputCombo {
    /// The output a packet leaves by; `None` if it has no header.
    fn handle(&self, ctx: &Context<'_>, packet: &mut Packet) -> Option<usize> {
        let writer = Writer {
            address: self.address,
            others: &[],
            now_ns: ctx.now_ns(),
        };
        if let Err(wrong) = writer.run(packet) {
            packet.anno_mut().set_u8(anno::ICMP_PARAMPROB, wrong);
            return Some(WRONG_OPTIONS);
        }
        let fix = packet.anno().u8(anno::FIX_IP_SRC) != 0;
        packet.anno_mut().set_u8(anno::FIX_IP_SRC, 0);
        let mut header = header_mut(packet)?;
        if fix {
            header.set_source(self.address);
        }
        if header.ttl() <= 1 {
            return Some(TIME_OVER);
        }
        header.decrement_ttl();
        Some(if packet.len() > self.mtu { TOO_LONG } else { 0 })
    }
}

impl Element for IPOutputCombo {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        for mut packet in batch.drain_front(usize::MAX) {
            let kind = packet.anno().packet_type();
            if matches!(kind, PacketType::Broadcast | PacketType::Multicast) {
                continue;
            }
            if packet.anno().u8(anno::PAINT) == self.color {
                if let Some(copy) = ctx.pool().duplicate(&mut packet) {
                    self.outputs.put(SAME_INTERFACE, copy);
                }
            }
            if let Some(port) = self.handle(ctx, &mut packet) {
                self.outputs.put(port, packet);
            }
        }
        self.outputs.flush(ctx);
        ctx.recycle(batch);
    }
}
