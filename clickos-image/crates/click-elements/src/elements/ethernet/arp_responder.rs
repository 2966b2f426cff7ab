// SPDX-License-Identifier: Apache-2.0
//! Answers ARP requests.
//!
//! # Synopsis
//! `ARPResponder(PREFIX [PREFIX ...] ETH, ...)`: requests for an address in a PREFIX are answered with ETH;
//! the longest prefix wins. A name that stands for both (see `AddressInfo`) may stand alone.
//! # Ports
//! 1/1-2, agnostic. The input takes whole frames. Output 1 (push) gets those it has no answer for;
//! they are dropped if it is not connected.
//! # Handlers
//! * `table` (read): the entries. `lookup` (read with an address as parameter): the address it would answer.
//! * `add` (write): entries as in the arguments. `remove` (write): a prefix.
//! # Example
//! `c :: Classifier(12/0806 20/0001, -); c -> ARPResponder(10.0.0.1 vif0) -> ToDevice(0);`
use click_core::Surroundings;
use click_core::text::split_words;
use click_core::value::mask_of;
use click_wire::{arp, ether};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ARPResponder",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[rest("PREFIX")],
    handlers: &[read("table"), read("lookup"), write("add"), write("remove")],
    build: |a| {
        let (mut table, lines, limits) = (Vec::new(), a.rest().to_vec(), a.environment().limits);
        for line in &lines {
            match entries(line, a.surroundings()) {
                Ok(list) => table.extend(list),
                Err(message) => a.error("PREFIX", message),
            }
        }
        if table.len() > limits.table_entries {
            a.error(
                "PREFIX",
                format!(
                    "{} entries, the limit is {}",
                    table.len(),
                    limits.table_entries
                ),
            );
        }
        Some(Box::new(ARPResponder { table }))
    },
    ..Class::DEFAULT
};

#[derive(Clone, Copy)]
struct Entry {
    prefix: Prefix,
    mac: EtherAddr,
}

/// Parses `PREFIX [PREFIX ...] ETH`, or a name that is both.
fn entries(line: &str, at: Surroundings<'_>) -> Result<Vec<Entry>, String> {
    let words = split_words(line);
    let Some((last, others)) = words.split_last() else {
        return Err("expected \"PREFIX ETH\"".to_string());
    };
    let mac = EtherAddr::from_arg(last, at)?;
    let prefixes = if others.is_empty() {
        core::slice::from_ref(last)
    } else {
        others
    };
    prefixes
        .iter()
        .map(|p| {
            Ok(Entry {
                prefix: Prefix::from_arg(p, at)?,
                mac,
            })
        })
        .collect()
}

struct ARPResponder {
    table: Vec<Entry>,
}

impl ARPResponder {
    fn lookup(&self, address: Ipv4Addr) -> Option<EtherAddr> {
        let fitting = self.table.iter().filter(|e| e.prefix.contains(address));
        fitting
            .max_by_key(|e| u32::from(e.prefix.mask))
            .map(|e| e.mac)
    }

    fn answer(&self, frame: &[u8]) -> Option<(arp::Repr, [u8; 6])> {
        ether::Repr::parse(frame)
            .ok()
            .filter(|h| h.ethertype == ether::ARP)?;
        let request = arp::Repr::parse(&frame[ether::HEADER..])
            .ok()
            .filter(|r| r.operation == arp::REQUEST)?;
        let mac = self.lookup(request.target_ip)?.0;
        let reply = arp::Repr {
            operation: arp::REPLY,
            sender_mac: mac,
            sender_ip: request.target_ip,
            target_mac: request.sender_mac,
            target_ip: request.sender_ip,
        };
        Some((reply, mac))
    }
}

impl Element for ARPResponder {
    /// The request's buffer becomes the reply.
    fn process(&mut self, _ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        let Some((reply, mac)) = self.answer(packet.data()) else {
            return Out::Port(1, packet);
        };
        packet.take(packet.len() - ether::HEADER - arp::LENGTH);
        reply.emit_frame(mac, reply.target_mac, packet.data_mut());
        packet.set_mac_offset(0);
        Out::Port(0, packet)
    }

    fn read(&self, view: &View<'_>, handler: &str, param: &str) -> Text {
        match handler {
            "table" => Ok(self
                .table
                .iter()
                .map(|e| format!("{} {}\n", show(e.prefix), e.mac))
                .collect()),
            "lookup" => {
                let address = view.parse::<Ipv4Addr>(param.trim())?;
                Ok(self
                    .lookup(address)
                    .map_or_else(String::new, |mac| mac.to_string()))
            }
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "add" => {
                let new = entries(value, view.surroundings).map_err(HandlerError::rejected)?;
                let limit = view.surroundings.environment.limits.table_entries;
                if self.table.len() + new.len() > limit {
                    return Err(HandlerError::rejected(format!(
                        "the table is full, the limit is {limit} entries"
                    )));
                }
                Ok(Change::of(move |me: &mut Self, _| me.table.extend(new)))
            }
            "remove" => {
                let prefix = view.parse::<Prefix>(value)?;
                if self.table.iter().all(|e| e.prefix != prefix) {
                    return Err(HandlerError::rejected(format!(
                        "no entry for {}",
                        show(prefix)
                    )));
                }
                Ok(Change::of(move |me: &mut Self, _| {
                    me.table.retain(|e| e.prefix != prefix)
                }))
            }
            _ => undeclared(handler),
        }
    }
}

fn show(prefix: Prefix) -> String {
    if prefix.mask == mask_of(32) {
        return prefix.address.to_string();
    }
    format!(
        "{}/{}",
        prefix.address,
        u32::from(prefix.mask).leading_ones()
    )
}
