// SPDX-License-Identifier: Apache-2.0
//! Does what a router does to the options of IP headers.
//!
//! # Synopsis
//! `IPGWOptions(MYADDR [, OTHERADDRS])`: writes MYADDR into record route options, and MYADDR and the time of day into
//! timestamp options; of those that name the routers, those that name MYADDR or one of OTHERADDRS. The checksum
//! follows. Other options are left alone.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets packets whose options are wrong, unchanged, with the parameter problem
//! annotation set; they are dropped if it is not connected. Packets without a marked header pass unchanged.
//! # Handlers
//! * `drops` (read): packets whose options were wrong.
//! # Differences from Click
//! A packet with wrong options is left unchanged.
//! # Example
//! `rt[0] -> gw :: IPGWOptions(10.0.0.1) -> ...; gw[1] -> ICMPError(10.0.0.1, parameterproblem) -> ...`
use click_core::anno;
use click_core::text::split_words;

use crate::ip_options::{self, Writer};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPGWOptions",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[mandatory("MYADDR"), optional("OTHERADDRS")],
    handlers: &[read("drops", |me: &mut IPGWOptions, _| text(me.drops))],
    build: |a| {
        let (address, list) = (a.need("MYADDR"), a.or("OTHERADDRS", String::new()));
        let words = split_words(&list?);
        let others = words.iter().filter_map(|w| a.parse("OTHERADDRS", w));
        Some(Box::new(IPGWOptions {
            others: others.collect(),
            address: address?,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

struct IPGWOptions {
    address: Ipv4Addr,
    others: Vec<Ipv4Addr>,
    drops: u64,
}

impl IPGWOptions {
    /// The way of a packet with options.
    #[cold]
    fn write_options(&mut self, ctx: &Context<'_>, packet: &mut Packet) -> usize {
        let writer = Writer {
            address: self.address,
            others: &self.others,
            now_ns: ctx.now_ns(),
        };
        match writer.run(packet) {
            Ok(()) => 0,
            Err(wrong) => {
                self.drops += 1;
                packet.anno_mut().set_u8(anno::ICMP_PARAMPROB, wrong);
                1
            }
        }
    }
}

impl InPlace for IPGWOptions {
    #[inline(always)]
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match ip_options::are_in(packet) {
            true => self.write_options(ctx, packet),
            false => 0,
        }
    }
}

impl Element for IPGWOptions {
    in_place!();

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
