// SPDX-License-Identifier: Apache-2.0
//! Looks up the way of IPv6 packets.
//!
//! # Synopsis
//! `LookupIP6Route(ROUTE, ...)`: each ROUTE is `PREFIX [GATEWAY] OUTPUT`. The one with the longest PREFIX that the
//! destination annotation has decides the output; its GATEWAY, unless it is `::`, becomes the annotation. A lone address
//! is a prefix of 128 bits.
//! # Ports
//! 1/any, push. Packets without a route are dropped.
//! # Handlers
//! * `table` (read): the routes, the longest prefixes first. `add` (write): a route; it replaces the one of its prefix. `remove` (write):
//!   a prefix. `ctrl` (write): `add` or `remove` and the rest.
//! # Differences from Click
//! `table` shows the longest prefixes first and has no heading.
//! # Example
//! `... -> GetIP6Address(24) -> rt :: LookupIP6Route(2001:db8:1::/48 0, ::/0 2001:db8::1 1); rt[0] -> ...`
use crate::ip6::Address;
use crate::ip6::table::{Command, Table};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "LookupIP6Route",
    ports: "1/-",
    processing: "h/h",
    args: &[rest("ROUTE")],
    handlers: &[
        read("table", |me: &mut LookupIP6Route, view| {
            Ok(me.table.show(&view.arg_context().environment.limits))
        }),
        edit("add", LookupIP6Route::change),
        edit("remove", LookupIP6Route::change),
        edit("ctrl", LookupIP6Route::change),
    ],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (ports, at) = (a.outputs(), a.arg_context());
    let most = a.environment().limits.table_entries;
    let mut routes = Vec::new();
    for (index, text) in a.rest().to_vec().iter().enumerate() {
        match Command::parse("add", text, ports, at) {
            Ok(Command::Add(prefix, hop)) => routes.push((prefix, hop)),
            Ok(Command::Remove(_)) => {}
            Err(message) => a.error("ROUTE", format!("argument {}: {message}", index + 1)),
        }
    }
    let table = Table::of(&routes);
    if table.len() > most {
        a.error("ROUTE", full(most));
    }
    Some(Box::new(LookupIP6Route { table }))
}

fn full(most: usize) -> String {
    format!("the table is full, it holds {most} routes")
}

/// Gives the command back unless the table would become too large.
fn room(table: &Table, command: Command, most: usize) -> Result<Command, String> {
    match &command {
        Command::Add(prefix, _) if table.len() >= most && !table.has(*prefix) => Err(full(most)),
        _ => Ok(command),
    }
}

struct LookupIP6Route {
    table: Table,
}

impl InPlace for LookupIP6Route {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(hop) = self.table.lookup(Address::of(packet)) else {
            return DROPPED;
        };
        if let Some(gateway) = hop.gateway {
            gateway.put(packet);
        }
        hop.port
    }
}

impl LookupIP6Route {
    /// The handlers `add`, `remove` and `ctrl`, of which each is a command's verb.
    fn change(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let at = view.arg_context();
        let most = at.environment.limits.table_entries;
        let command = Command::parse(view.handler, value, view.ports().1, at);
        let command = command.and_then(|command| room(&self.table, command, most));
        let command = command.map_err(HandlerError::rejected)?;
        Ok(Change::of(move |me: &mut Self, _| me.table.run(command)))
    }
}

impl Element for LookupIP6Route {
    in_place!(plain);
}
