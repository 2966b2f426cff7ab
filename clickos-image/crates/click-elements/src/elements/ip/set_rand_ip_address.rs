// SPDX-License-Identifier: Apache-2.0
//! Sets the destination annotation of packets to random addresses.
//!
//! # Synopsis
//! `SetRandIPAddress(PREFIX [, LIMIT])`: addresses of PREFIX; if LIMIT is given, only that many different ones at most,
//! chosen at the start.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `InfiniteSource -> SetRandIPAddress(10.0.0.0/8, 100) -> StoreIPAddress(16) -> ...`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetRandIPAddress",
    args: &[mandatory("PREFIX"), optional("LIMIT")],
    build: |a| {
        let (prefix, limit) = (a.need("PREFIX"), a.or("LIMIT", 0usize));
        let (limit, most) = (limit?, a.environment().limits.table_entries);
        if limit > most {
            a.error(
                "LIMIT",
                format!("{limit} is out of range, the most is {most}"),
            );
            return None;
        }
        Some(Box::new(SetRandIPAddress {
            prefix: prefix?,
            limit,
            chosen: Vec::new(),
        }))
    },
    ..Class::DEFAULT
};

struct SetRandIPAddress {
    prefix: Prefix,
    limit: usize,
    chosen: Vec<Ipv4Addr>,
}

impl SetRandIPAddress {
    fn any(&self, ctx: &mut Context<'_>) -> Ipv4Addr {
        let mask = u32::from(self.prefix.mask);
        // the low byte comes first, as on the hosts Click runs on
        let host = ctx.random_u32().swap_bytes() & !mask;
        Ipv4Addr::from(host | u32::from(self.prefix.address) & mask)
    }
}

impl InPlace for SetRandIPAddress {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let address = match self.chosen.len().checked_sub(1) {
            Some(last) => self.chosen[ctx.random_range(0, last as u32) as usize],
            None => self.any(ctx),
        };
        packet.anno_mut().set_dst_ip(address.octets());
        0
    }
}

impl Element for SetRandIPAddress {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.chosen = (0..self.limit).map(|_| self.any(ctx)).collect();
        Ok(())
    }
}
