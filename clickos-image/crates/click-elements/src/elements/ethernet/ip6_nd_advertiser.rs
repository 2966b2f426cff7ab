// SPDX-License-Identifier: Apache-2.0
//! Answers IPv6 neighbor solicitations.
//!
//! # Synopsis
//! `IP6NDAdvertiser(PREFIX [PREFIX ...] ETH, ...)`: questions for an address in a PREFIX are answered with ETH; the longest
//! prefix wins. A question of a host that has no address yet (duplicate address detection) is answered to all nodes.
//! # Ports
//! 1/1, agnostic. Takes whole frames; those it has no answer for are dropped, as are wrong and routed ones.
//! # Handlers
//! None of its own.
//! # Example
//! `c :: Classifier(12/86dd 54/87, -); c -> IP6NDAdvertiser(2001:db8::5/128 vif0) -> ToDevice(0);`
use click_core::ArgContext;
use click_core::text::split_words;
use click_wire::ether;

use crate::ip6::neighbor::{FRAME, Neighbor};
use crate::ip6::{Address, Prefix6};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IP6NDAdvertiser",
    args: &[rest("PREFIX")],
    build: |a| {
        let lines = a.rest().to_vec();
        let entries = lines
            .iter()
            .filter_map(|line| a.parse::<Entries>("PREFIX", line));
        let entries = entries.flat_map(|e| e.0).collect();
        Some(Box::new(IP6NDAdvertiser { entries }))
    },
    ..Class::DEFAULT
};

struct Entry {
    prefix: Prefix6,
    mac: [u8; 6],
}

/// `PREFIX [PREFIX ...] ETH`.
struct Entries(Vec<Entry>);

impl FromArg for Entries {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let Some((mac, prefixes)) = words.split_last().filter(|(_, p)| !p.is_empty()) else {
            return Err(format!("expected PREFIX ETH, got \"{}\"", text.shown()));
        };
        let mac = EtherAddr::from_arg(mac, at)?.0;
        let entry = |word: &String| {
            let prefix = Prefix6::from_arg(word, at)?;
            Ok(Entry { prefix, mac })
        };
        prefixes
            .iter()
            .map(entry)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

struct IP6NDAdvertiser {
    entries: Vec<Entry>,
}

impl IP6NDAdvertiser {
    fn lookup(&self, address: Address) -> Option<[u8; 6]> {
        let fitting = self.entries.iter().filter(|e| e.prefix.contains(address));
        fitting.max_by_key(|e| e.prefix.length).map(|e| e.mac)
    }

    fn answer(&self, ctx: &mut Context<'_>, frame: &[u8]) -> Option<Packet> {
        let question = Neighbor::parse(frame)?;
        let mac = self.lookup(question.target)?;
        let asker = ether::Repr::parse(frame).ok()?.source;
        let (answer, to) = question.answer(mac, asker)?;
        let mut packet = ctx.pool().alloc(FRAME)?;
        answer.emit(mac, to, packet.data_mut());
        packet.set_mac_offset(0);
        Some(packet)
    }
}

impl InPlace for IP6NDAdvertiser {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        replace(self.answer(ctx, packet.data()), packet)
    }
}

impl Element for IP6NDAdvertiser {
    in_place!();
}
