// SPDX-License-Identifier: Apache-2.0
//! Looks up the route of packets, and by which security association they are sent or came.
//!
//! # Synopsis
//! `RadixIPsecLookup(ROUTE, ...)`: each ROUTE is `NETWORK/LENGTH [GATEWAY] OUTPUT [SPI ENCRYPT_KEY AUTH_KEY REPLAY OOSIZE]`,
//! as in `RadixIPLookup`. SPI names a security association; the keys have 16 bytes, REPLAY is the first sequence number,
//! OOSIZE (0 to 255, at most 128 count) says how many may come late. Routes that name one SPI have the same terms.
//! # Ports
//! 1/any, push. Output 0 is for this host: its ESP packets leave there with the association of their SPI, all others by
//! output 2. Output 1 is for tunnels: its packets have the association of their route. Packets without a route, or
//! without an association where they need one, are dropped, the first five with a message.
//! # Handlers
//! * `table` (read): the routes with their SPIs. `lookup` (read, with an address as parameter): output and gateway, or
//!   -1.
//! * `add` (write): a route for a network that has none. `set` (write): a route, in place of the older one; new terms
//!   are those of all routes with their SPI.
//! * `remove` (write): `NETWORK/LENGTH [[GATEWAY] OUTPUT]`. `ctrl` (write): `add`, `set` and `remove` with their
//!   arguments, one a line; all of them or none.
//! # Differences from Click
//! `table` shows SPIs, not keys. `add` refuses a route with other terms for a known SPI; `set`
//! replaces them for all its routes. Packets for this host that are not ESP leave by output 2.
//! Packets without the association they need are dropped. Sequence numbers continue after a hot
//! swap. The association annotation is a number.
//! # Example
//! `rt :: RadixIPsecLookup(1.0.0.1/32 0, 2.0.0.0/8 1.0.0.2 1 234 \<00112233445566778899aabbccddeeff>
//!  \<ffeeddccbbaa99887766554433221100> 300 64); rt[0] -> ...`
use click_core::{ArgContext, Limits, listing, sort};

use crate::ip_packet::header;
use crate::ipsec::tunnels::Tunnels;
use crate::ipsec::{Shared, Terms, mark, route};
use crate::outputs::distribute;
use crate::prelude::*;
use crate::routes::element::CLASS;
use crate::routes::live::Routes;
use crate::routes::route::Route;
use crate::routes::table::{Command, Table, parse_lines};

pub static ELEMENT: Class = Class {
    name: "RadixIPsecLookup",
    handlers: &[
        read("table", |me: &mut RadixIPsecLookup, view| {
            Ok(me.table(&view.arg_context().environment.limits))
        }),
        read("lookup", |me, view| me.routes.answer(view, view.param())),
        change("add"),
        change("set"),
        change("remove"),
        edit("ctrl", |me, view, value| {
            let (ports, at) = (view.ports().1, view.arg_context());
            let steps = parse_lines(value, |verb, text| parse(verb, text, ports, at));
            me.change(view, steps)
        }),
    ],
    build,
    ..CLASS
};

/// ESP packets for this host, or others.
const LOCAL: usize = 0;
const TUNNELS: usize = 1;
const NOT_ESP: usize = 2;
const ESP: u8 = 50;
/// Messages about packets that are dropped.
const COMPLAINTS: u32 = 5;

/// A command, and the terms that come with its route.
type Step = (Command, Option<Terms>);

fn parse(verb: &str, text: &str, ports: usize, at: ArgContext<'_>) -> Result<Step, String> {
    let (route, terms) = route::split(text, at)?;
    let mut command = Command::parse(verb, &route, ports, at)?;
    if let Command::Add(route) | Command::Set(route) = &mut command {
        route.hop.tunnel = terms.as_ref().map(|t| t.spi);
    }
    Ok((command, terms))
}

/// A handler whose name is the verb of a change.
const fn change(verb: &'static str) -> Handler<RadixIPsecLookup> {
    edit(verb, |me, view, value| {
        let (ports, at) = (view.ports().1, view.arg_context());
        let step = parse(view.handler, value, ports, at);
        me.change(view, step.map(|step| [step].into()))
    })
}

fn build(a: &mut Args<'_>) -> Built {
    let (ports, at) = (a.outputs(), a.arg_context());
    let most = a.environment().limits.table_entries;
    let (mut table, mut tunnels) = (Table::default(), Tunnels::default());
    for (index, text) in a.rest().to_vec().iter().enumerate() {
        let added = parse("add", text, ports, at).and_then(|(command, given)| {
            tunnels.agree(given, false)?;
            table.run_new(&command, most)
        });
        if let Err(message) = added {
            a.error("ROUTE", format!("argument {}: {message}", index + 1));
        }
    }
    Some(Box::new(RadixIPsecLookup {
        routes: Routes::of(table),
        tunnels,
        shared: Shared::default(),
        complaints: 0,
    }))
}

struct RadixIPsecLookup {
    routes: Routes,
    tunnels: Tunnels,
    shared: Shared,
    complaints: u32,
}

impl RadixIPsecLookup {
    /// Runs steps that were checked, and forgets associations without a route.
    fn run(&mut self, steps: &[Step], most: usize) {
        let commands: Vec<&Command> = steps.iter().map(|(command, _)| command).collect();
        self.routes.run(commands.into_iter(), most);
        for (_, terms) in steps {
            let _ = self.tunnels.agree(terms.clone(), true);
        }
        let routes = self.routes.in_order();
        let mut used: Vec<u32> = routes.iter().filter_map(|r| r.hop.tunnel).collect();
        sort::by(&mut used, Ord::cmp);
        let mut shared = self.shared.borrow_mut();
        self.tunnels.keep(&used, &mut shared);
        self.tunnels.associate(&mut shared);
    }

    /// The SPI in the header of an ESP packet.
    fn spi_of(packet: &Packet) -> Option<u32> {
        let ip = header(packet).filter(|h| h.protocol() == ESP)?;
        let esp = packet.network()?.get(ip.header_len()..)?;
        esp.first_chunk().copied().map(u32::from_be_bytes)
    }

    /// The output for a packet, which is marked if it is one of an association.
    fn output(&self, packet: &mut Packet) -> Result<usize, String> {
        let address = Ipv4Addr::from(packet.anno().dst_ip());
        let Some(hop) = self.routes.lookup(address) else {
            return Err(format!("no route for {address}"));
        };
        let esp = header(packet).is_some_and(|h| h.protocol() == ESP);
        let spi = match hop.port {
            LOCAL if !esp => return Ok(NOT_ESP),
            LOCAL => Some(Self::spi_of(packet).ok_or("ESP packet without an SPI")?),
            TUNNELS => Some(
                hop.tunnel
                    .ok_or_else(|| format!("no tunnel for {address}"))?,
            ),
            _ => None,
        };
        if let Some(spi) = spi {
            let number = self.tunnels.number(spi);
            mark(
                packet,
                spi,
                number.ok_or_else(|| format!("unknown SPI {spi}"))?,
            );
        }
        if let Some(gateway) = hop.gateway {
            packet.anno_mut().set_dst_ip(gateway.octets());
        }
        Ok(hop.port)
    }

    fn table(&self, limits: &Limits) -> String {
        let line = |route: Route| {
            let spi = route.hop.tunnel.map(|spi| format!("\tSPI {spi}"));
            format!("{}{}\n", route.columns(), spi.unwrap_or_default())
        };
        listing(limits, self.routes.in_order().into_iter().map(line))
    }
}

impl RadixIPsecLookup {
    fn change(
        &self,
        view: &View<'_>,
        steps: Result<Vec<Step>, String>,
    ) -> Result<Change, HandlerError> {
        let steps = steps.map_err(HandlerError::rejected)?;
        let most = view.arg_context().environment.limits.table_entries;
        self.routes.check(steps.iter().map(|(c, _)| c), most)?;
        let mut trial = self.tunnels.clone();
        for (command, given) in &steps {
            let replace = matches!(command, Command::Set(_));
            let agreed = trial.agree(given.clone(), replace);
            agreed.map_err(HandlerError::rejected)?;
        }
        on_write(self, move |me, _| me.run(&steps, most))
    }
}

impl Element for RadixIPsecLookup {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.shared = ctx.shared();
        self.tunnels.associate(&mut self.shared.borrow_mut());
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let mut output_port = |ctx: &mut Context<'_>, packet: &mut Packet| match self.output(packet)
        {
            Ok(port) => port,
            Err(message) => {
                if self.complaints < COMPLAINTS {
                    self.complaints += 1;
                    let line = format!("{}: {message}", ctx.name());
                    ctx.print(&line);
                }
                DROPPED
            }
        };
        distribute(ctx, batch, |ctx, batch, ways| {
            ways.extend(batch.iter_mut().map(|packet| output_port(ctx, packet)));
        });
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            let (mut new, mut before) = (self.shared.borrow_mut(), old.shared.borrow_mut());
            self.tunnels.go_on(&mut new, &old.tunnels, &mut before);
        }
    }
}
