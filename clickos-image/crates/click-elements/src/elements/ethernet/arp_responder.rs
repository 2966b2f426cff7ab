// SPDX-License-Identifier: Apache-2.0
//! Answers ARP requests.
//!
//! # Synopsis
//! `ARPResponder(PREFIX [PREFIX ...] ETH, ...)`: requests for an address in a PREFIX are answered with ETH;
//! the longest prefix wins, and of equal ones the last, with a warning. A name that stands for both (see `AddressInfo`) may stand alone.
//! # Ports
//! 1/1-2, agnostic. The input takes whole frames. Output 1 (push) gets those it has no answer for;
//! they are dropped if it is not connected.
//! # Handlers
//! * `table` (read): the entries. `lookup` (read with an address as parameter): the address it would answer.
//! * `add` (write): entries as in the arguments. `remove` (write): a prefix.
//! * `config` (read, write): all entries, as in the arguments.
//! # Differences from Click
//! `table` shows the longest prefixes first.
//! # Example
//! `c :: Classifier(12/0806 20/0001, -); c -> ARPResponder(10.0.0.1 vif0) -> ToDevice(0);`
use click_core::text::{split_args, split_words};
use click_core::{ArgContext, Limits, listing, sort};
use click_wire::{arp, ether};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ARPResponder",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[rest("PREFIX")],
    handlers: &[
        read("table", |me: &mut ARPResponder, view| {
            Ok(me.table.text(&view.arg_context().environment.limits))
        }),
        read("lookup", |me, view| {
            let address = view.parse::<Ipv4Addr>(view.param().trim())?;
            let mac = me.lookup(address);
            Ok(mac.map_or_else(String::new, |mac| mac.to_string()))
        }),
        edit("add", ARPResponder::add),
        edit("remove", ARPResponder::remove),
        read_write(
            "config",
            |_, view| text(view.config()),
            ARPResponder::set_config,
        ),
    ],
    build: |a| {
        let (at, lines) = (a.arg_context(), a.rest().to_vec());
        let mut list = Vec::new();
        for line in &lines {
            match entries(line, at) {
                Ok(entries) => list.extend(entries),
                Err(message) => a.error("PREFIX", message),
            }
        }
        match Table::new(list, at) {
            Ok(table) => Some(Box::new(ARPResponder { table })),
            Err(message) => {
                a.error("PREFIX", message);
                None
            }
        }
    },
    ..Class::DEFAULT
};

#[derive(Clone, Copy)]
struct Entry {
    prefix: Prefix,
    mac: EtherAddr,
}

/// Parses `PREFIX [PREFIX ...] ETH`, or a name that is both.
fn entries(line: &str, at: ArgContext<'_>) -> Result<Vec<Entry>, String> {
    let words = split_words(line);
    let Some((last, others)) = words.split_last() else {
        return Err(expected("PREFIX ETH", line));
    };
    let mac = EtherAddr::from_arg(last, at)?;
    let prefixes = if others.is_empty() {
        core::slice::from_ref(last)
    } else {
        others
    };
    let entry = |word: &String| {
        let Prefix { address, mask } = Prefix::from_arg(word, at)?;
        let address = Ipv4Addr::from(u32::from(address) & u32::from(mask));
        Ok(Entry {
            prefix: Prefix { address, mask },
            mac,
        })
    };
    prefixes.iter().map(entry).collect()
}

/// Entries, one for a prefix, the longest prefixes first.
struct Table {
    entries: Vec<Entry>,
    /// Prefixes that were given more than once.
    repeated: Vec<Prefix>,
}

impl Table {
    /// The last of several entries for a prefix counts.
    fn new(mut entries: Vec<Entry>, at: ArgContext<'_>) -> Result<Self, String> {
        let limit = at.environment.limits.table_entries;
        if entries.len() > limit {
            return Err(format!("{} entries, the limit is {limit}", entries.len()));
        }
        entries.reverse();
        sort::by_key(&mut entries, |e| {
            (!u32::from(e.prefix.mask), u32::from(e.prefix.address))
        });
        let mut repeated = Vec::new();
        entries.dedup_by(|later, first| {
            let same = later.prefix == first.prefix;
            if same {
                repeated.push(first.prefix);
            }
            same
        });
        Ok(Self { entries, repeated })
    }

    fn text(&self, limits: &Limits) -> String {
        let line = |e: &Entry| format!("{} {}\n", show(e.prefix), e.mac);
        listing(limits, self.entries.iter().map(line))
    }
}

struct ARPResponder {
    table: Table,
}

impl ARPResponder {
    fn lookup(&self, address: Ipv4Addr) -> Option<EtherAddr> {
        let mut entries = self.table.entries.iter();
        let entry = entries.find(|e| e.prefix.contains(address))?;
        Some(entry.mac)
    }

    /// Says which prefixes were given more than once.
    fn warn(&self, ctx: &mut Context<'_>) {
        if self.table.repeated.is_empty() {
            return;
        }
        ctx.print(&format!(
            "While configuring '{} :: ARPResponder':",
            ctx.name()
        ));
        for prefix in &self.table.repeated {
            ctx.print(&format!(
                "  warning: multiple entries for {}",
                show(*prefix)
            ));
        }
    }

    /// The entries with some more added.
    fn with(&self, more: Vec<Entry>, view: &View<'_>) -> Result<Table, HandlerError> {
        let all = self.table.entries.iter().copied().chain(more).collect();
        let table = Table::new(all, view.arg_context()).map_err(HandlerError::rejected)?;
        Ok(Table {
            repeated: Vec::new(),
            ..table
        })
    }

    fn without(&self, prefix: Prefix) -> Result<Table, HandlerError> {
        let kept = self.table.entries.iter().filter(|e| e.prefix != prefix);
        let entries: Vec<_> = kept.copied().collect();
        if entries.len() == self.table.entries.len() {
            let message = format!("no entry for {}", show(prefix));
            return Err(HandlerError::rejected(message));
        }
        Ok(Table {
            entries,
            repeated: Vec::new(),
        })
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

impl InPlace for ARPResponder {
    /// The request's buffer becomes the reply.
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some((reply, mac)) = self.answer(packet.data()) else {
            return 1;
        };
        packet.take(packet.len() - ether::HEADER - arp::LENGTH);
        reply.emit_frame(mac, reply.target_mac, packet.data_mut());
        packet.set_mac_offset(0);
        packet.set_timestamp_ns(0);
        packet.set_network(ether::HEADER, arp::LENGTH);
        0
    }
}

impl ARPResponder {
    fn add(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let more = entries(value, view.arg_context()).map_err(HandlerError::rejected)?;
        Ok(Self::set_table(self.with(more, view)?))
    }

    fn remove(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let Prefix { address, mask } = view.parse(value)?;
        let address = Ipv4Addr::from(u32::from(address) & u32::from(mask));
        Ok(Self::set_table(self.without(Prefix { address, mask })?))
    }

    fn set_config(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let lines = split_args(value);
        let parsed = lines.iter().map(|line| entries(line, view.arg_context()));
        let parsed: Result<Vec<_>, _> = parsed.collect();
        let list = parsed.map_err(HandlerError::rejected)?.concat();
        let table = Table::new(list, view.arg_context()).map_err(HandlerError::rejected)?;
        Ok(Self::set_table(table))
    }

    #[inline(never)]
    fn set_table(table: Table) -> Change {
        Change::of(move |me: &mut Self, ctx| {
            me.table = table;
            me.warn(ctx);
        })
    }
}

impl Element for ARPResponder {
    in_place!(plain);

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.warn(ctx);
        Ok(())
    }
}

fn show(prefix: Prefix) -> String {
    format!(
        "{}/{}",
        prefix.address,
        u32::from(prefix.mask).leading_ones()
    )
}
