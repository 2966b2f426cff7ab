// SPDX-License-Identifier: Apache-2.0
//! The element that looks up routes; its classes differ in their names, and in what may be changed.
use super::ranges::Ranges;
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
        ranges: Ranges::of(&table),
        table,
        stale: false,
        outputs: Outputs::new(ports),
        complaints: 0,
    }))
}

/// Messages about addresses without a route.
const COMPLAINTS: u32 = 5;

struct LookUp {
    table: Table,
    ranges: Ranges,
    /// The table changed since `ranges` was made from it.
    stale: bool,
    outputs: Outputs,
    complaints: u32,
}

impl LookUp {
    fn no_route(&mut self, ctx: &mut Context<'_>, address: Ipv4Addr) {
        if self.complaints < COMPLAINTS {
            self.complaints += 1;
            let line = format!("{}: no route for {address}", ctx.name());
            ctx.print(&line);
        }
    }

    fn sort(&mut self, ctx: &mut Context<'_>, mut packet: Packet) {
        let address = Ipv4Addr::from(packet.anno().dst_ip());
        let Some(hop) = self.ranges.lookup(address.into()) else {
            return self.no_route(ctx, address);
        };
        if let Some(gateway) = hop.gateway {
            packet.anno_mut().set_dst_ip(gateway.octets());
        }
        self.outputs.put(hop.port, packet);
    }
}

/// Runs commands on a copy, to see whether all of them are possible.
fn prepare(me: &LookUp, commands: Vec<Command>, most: usize) -> Result<Change, HandlerError> {
    let mut trial = me.table.clone();
    for command in &commands {
        trial.run(command, most).map_err(HandlerError::rejected)?;
    }
    Ok(Change::of(move |me: &mut LookUp, _| {
        for command in &commands {
            // another write of the same call may have been faster; what is there then stays
            let _ = me.table.run(command, most);
        }
        me.stale = true;
    }))
}

impl Element for LookUp {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if core::mem::take(&mut self.stale) {
            self.ranges = Ranges::of(&self.table);
        }
        for packet in batch.drain_front(usize::MAX) {
            self.sort(ctx, packet);
        }
        self.outputs.flush(ctx);
        ctx.recycle(batch);
    }

    fn read(&self, view: &View<'_>, handler: &str, param: &str) -> Text {
        match handler {
            "table" => Ok(self.table.text()),
            "lookup" => {
                let address: Ipv4Addr = view.parse(param)?;
                Ok(match self.table.lookup(address.into()) {
                    Some(hop) => match hop.gateway {
                        Some(gateway) => format!("{} {gateway}", hop.port),
                        None => hop.port.to_string(),
                    },
                    None => "-1".to_string(),
                })
            }
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        let (ports, at) = (view.ports.1, view.surroundings);
        let commands = match handler {
            "flush" => {
                return on_write(|me: &mut Self, _| {
                    me.table.clear();
                    me.stale = true;
                });
            }
            "ctrl" => Command::parse_lines(value, ports, at),
            verb => Command::parse(verb, value, ports, at).map(|command| [command].into()),
        };
        let commands = commands.map_err(HandlerError::rejected)?;
        prepare(self, commands, at.environment.limits.table_entries)
    }
}
