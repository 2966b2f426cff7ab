// SPDX-License-Identifier: Apache-2.0
//! The element that looks up routes; its classes differ in their names, and in what may be changed.
use super::live::Routes;
use super::table::{Command, Table};
use crate::outputs::Outputs;
use crate::prelude::*;

/// A class that looks up routes, but for its name.
pub const CLASS: Class = Class {
    ports: "1/-",
    processing: "h/h",
    args: &[rest("ROUTE")],
    handlers: &[
        read("table"),
        read("lookup"),
        write("add"),
        write("set"),
        write("remove"),
        write("ctrl"),
    ],
    build,
    ..Class::DEFAULT
};

/// The handlers of classes whose table can be emptied at once.
pub const WITH_FLUSH: &[click_core::class::Handler] = &[
    read("table"),
    read("lookup"),
    write("add"),
    write("set"),
    write("remove"),
    write("ctrl"),
    write("flush"),
];

fn build(a: &mut Args<'_>) -> Built {
    let (ports, at) = (a.outputs(), a.surroundings());
    let mut table = Table::default();
    let most = a.environment().limits.table_entries;
    for (index, text) in a.rest().to_vec().iter().enumerate() {
        let route = Command::parse("add", text, ports, at);
        if let Err(message) = route.and_then(|r| table.run_new(&r, most)) {
            a.error("ROUTE", format!("argument {}: {message}", index + 1));
        }
    }
    Some(Box::new(LookUp {
        routes: Routes::of(table),
        outputs: Outputs::new(ports),
        complaints: 0,
    }))
}

/// Messages about addresses without a route.
const COMPLAINTS: u32 = 5;

struct LookUp {
    routes: Routes,
    outputs: Outputs,
    complaints: u32,
}

/// Drops a packet without a route.
#[cold]
fn complain(complaints: &mut u32, ctx: &mut Context<'_>, address: Ipv4Addr) -> usize {
    if *complaints < COMPLAINTS {
        *complaints += 1;
        let line = format!("{}: no route for {address}", ctx.name());
        ctx.print(&line);
    }
    DROPPED
}

impl LookUp {
    fn table(&self) -> String {
        let lines = self.routes.in_order().into_iter();
        lines.map(|route| route.columns() + "\n").collect()
    }
}

impl Element for LookUp {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.outputs.look_around(ctx);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let Self {
            routes,
            outputs,
            complaints,
        } = self;
        let lookup = routes.ready();
        let mut way = |ctx: &mut Context<'_>, packet: &mut Packet| {
            let address = Ipv4Addr::from(packet.anno().dst_ip());
            let Some(hop) = lookup.hop(address.into()) else {
                return complain(complaints, ctx, address);
            };
            if let Some(gateway) = hop.gateway {
                packet.anno_mut().set_dst_ip(gateway.octets());
            }
            hop.port
        };
        outputs.distribute(ctx, batch, |ctx, batch, ways| {
            ways.extend(batch.iter_mut().map(|packet| way(ctx, packet)));
        });
    }

    fn read(&self, view: &View<'_>, handler: &str, param: &str) -> Text {
        match handler {
            "table" => Ok(self.table()),
            "lookup" => self.routes.answer(view, param),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        let (ports, at) = (view.ports.1, view.surroundings);
        let commands = match handler {
            "flush" => return on_write(|me: &mut Self, _| me.routes.clear()),
            "ctrl" => Command::parse_lines(value, ports, at),
            verb => Command::parse(verb, value, ports, at).map(|command| [command].into()),
        };
        let commands = commands.map_err(HandlerError::rejected)?;
        let most = at.environment.limits.table_entries;
        self.routes.check(commands.iter(), most)?;
        Ok(Change::of(move |me: &mut Self, _| {
            me.routes.run(commands.iter(), most);
        }))
    }
}
