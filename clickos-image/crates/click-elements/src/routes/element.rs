// SPDX-License-Identifier: Apache-2.0
//! The element that looks up routes; its classes differ in their names, and in what may be changed.
use super::live::Routes;
use super::ranges::Ready;
use super::route::{Hop, Network, Partial};
use super::table::{Command, Table, parse_lines};
use crate::outputs::distribute;
use crate::prelude::*;
use click_core::{Limits, listing, sort};

/// A class that looks up routes, but for its name.
pub const CLASS: Class = Class {
    ports: "1/-",
    processing: "h/h",
    args: &[rest("ROUTE")],
    handlers: &[
        TABLE,
        LOOKUP,
        change("add"),
        change("set"),
        change("remove"),
        CTRL,
    ],
    build,
    ..Class::DEFAULT
};

/// The handler `table`.
pub const TABLE: Handler<LookUp> = read("table", |me, view| {
    Ok(me.table(&view.arg_context().environment.limits))
});
/// The handler `lookup`.
pub const LOOKUP: Handler<LookUp> = read("lookup", |me, view| me.routes.answer(view, view.param()));
/// The handler `ctrl`.
const CTRL: Handler<LookUp> = edit("ctrl", |me, view, value| {
    let (ports, at) = (view.ports().1, view.arg_context());
    let commands = parse_lines(value, |verb, text| Command::parse(verb, text, ports, at));
    me.change(view, commands)
});

/// The handlers of classes whose table can be emptied at once.
pub const WITH_FLUSH: [Handler<LookUp>; 7] = [
    TABLE,
    LOOKUP,
    change("add"),
    change("set"),
    change("remove"),
    CTRL,
    command("flush", run!(|me, _| me.routes.clear())),
];

/// The same, and a handler that gives all routes beyond those of the configuration.
pub const WITH_EXTRA: [Handler<LookUp>; 8] = {
    let [table, lookup, add, set, remove, ctrl, flush] = WITH_FLUSH;
    [table, lookup, add, set, remove, ctrl, flush, EXTRA]
};

/// The handler `extra`.
const EXTRA: Handler<LookUp> = write("extra", |me, view, value| {
    let (ports, at) = (view.ports().1, view.arg_context());
    let texts = value.split(',').map(str::trim).filter(|t| !t.is_empty());
    let routes = texts.map(|text| Command::parse("set", text, ports, at));
    let routes = routes.collect::<Result<Vec<_>, String>>();
    me.change(view, routes.and_then(|routes| me.extra(routes)))
});

/// A handler whose name is the verb of a change.
const fn change(verb: &'static str) -> Handler<LookUp> {
    edit(verb, |me, view, value| {
        let (ports, at) = (view.ports().1, view.arg_context());
        let command = Command::parse(view.handler, value, ports, at);
        me.change(view, command.map(|command| [command].into()))
    })
}

fn build(a: &mut Args<'_>) -> Built {
    let (ports, at) = (a.outputs(), a.arg_context());
    let mut routes = Vec::new();
    let most = a.environment().limits.table_entries;
    for (index, text) in a.rest().to_vec().iter().enumerate() {
        match Command::parse("add", text, ports, at) {
            Ok(Command::Add(route)) => routes.push(route),
            Ok(_) => {}
            Err(message) => a.error("ROUTE", format!("argument {}: {message}", index + 1)),
        }
    }
    let table = Table::of(&routes);
    if table.len() > most {
        a.error(
            "ROUTE",
            format!("there are {most} routes already, which is the limit"),
        );
    }
    let routes = Routes::of(table);
    let configured = sorted(routes.in_order().iter().map(|r| r.network));
    Some(Box::new(LookUp {
        routes,
        configured,
        complaints: COMPLAINTS,
    }))
}

fn sorted(networks: impl Iterator<Item = Network>) -> Vec<Network> {
    let mut networks: Vec<_> = networks.collect();
    sort::by(&mut networks, Ord::cmp);
    networks
}

/// Messages about addresses without a route.
const COMPLAINTS: u32 = 5;

/// An element of such a class.
pub struct LookUp {
    routes: Routes,
    /// The networks of the configuration's routes, sorted.
    configured: Vec<Network>,
    /// Left to be made.
    complaints: u32,
}

/// Sends all packets one way.
fn send_all(ctx: &mut Context<'_>, hop: &Hop, mut batch: Batch) {
    if let Some(gateway) = hop.gateway {
        for packet in batch.iter_mut() {
            packet.anno_mut().set_dst_ip(gateway.octets());
        }
    }
    ctx.push(hop.port, batch);
}

/// Appends the way of each packet, on which it has its gateway's address; says whether all have one.
#[inline(always)]
fn find(routes: Ready<'_>, batch: &mut Batch, ways: &mut Vec<usize>) -> bool {
    let mut all = true;
    ways.resize(batch.len(), DROPPED);
    for (packet, way) in batch.iter_mut().zip(ways) {
        let address = Ipv4Addr::from(packet.anno().dst_ip());
        let Some(hop) = routes.hop(address.into()) else {
            all = false;
            continue;
        };
        let next = hop.gateway.unwrap_or(address);
        packet.anno_mut().set_dst_ip(next.octets());
        *way = hop.port;
    }
    all
}

/// Says which packets have no route.
#[cold]
fn complain(left: &mut u32, ctx: &mut Context<'_>, batch: &Batch, ways: &[usize]) {
    let lost = batch.iter().zip(ways).filter(|(_, way)| **way == DROPPED);
    for (packet, _) in lost.take(*left as usize) {
        let address = Ipv4Addr::from(packet.anno().dst_ip());
        let line = format!("{}: no route for {address}", ctx.name());
        ctx.print(&line);
        *left -= 1;
    }
}

impl LookUp {
    fn table(&self, limits: &Limits) -> String {
        let lines = self.routes.in_order().into_iter();
        listing(limits, lines.map(|route| route.columns() + "\n"))
    }

    /// The commands after which there are the routes of the configuration, and these.
    fn extra(&self, mut routes: Vec<Command>) -> Result<Vec<Command>, String> {
        let is_configured = |network: &Network| self.configured.binary_search(network).is_ok();
        let wanted = sorted(routes.iter().map(Command::network));
        if let Some(network) = wanted.iter().find(|network| is_configured(network)) {
            let first = Ipv4Addr::from(network.first);
            return Err(format!(
                "{first}/{} has a route of the configuration",
                network.length
            ));
        }
        let gone = self.routes.in_order().into_iter().map(|r| r.network);
        let is_wanted = |network: &Network| wanted.binary_search(network).is_ok();
        let gone = gone.filter(|network| !is_configured(network) && !is_wanted(network));
        routes.extend(gone.map(|network| Command::Remove(Partial::of(network))));
        Ok(routes)
    }

    fn change(
        &self,
        view: &View<'_>,
        commands: Result<Vec<Command>, String>,
    ) -> Result<Change, HandlerError> {
        let commands = commands.map_err(HandlerError::rejected)?;
        let most = view.arg_context().environment.limits.table_entries;
        self.routes.check(commands.iter(), most)?;
        on_write(self, move |me, _| me.routes.run(commands.iter(), most))
    }
}

impl Element for LookUp {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        if let Some(hop) = self.routes.only_hop() {
            return send_all(ctx, hop, batch);
        }
        let (routes, left) = (self.routes.ready(), &mut self.complaints);
        distribute(ctx, batch, |ctx, batch, ways| {
            if !find(routes, batch, ways) {
                complain(left, ctx, batch, ways);
            }
        });
    }
}
