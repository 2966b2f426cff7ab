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
//! # Example
//! `rt :: RadixIPsecLookup(1.0.0.1/32 0, 2.0.0.0/8 1.0.0.2 1 234 \<00112233445566778899aabbccddeeff>
//!  \<ffeeddccbbaa99887766554433221100> 300 64); rt[0] -> ...`
use alloc::collections::BTreeMap;

use click_core::Surroundings;
use click_core::text::shift_word;

use crate::ip_packet::header;
use crate::ipsec::{Association, Shared, Terms, mark, route};
use crate::outputs::Outputs;
use crate::prelude::*;
use crate::routes::live::Routes;
use crate::routes::table::{Command, Table};

pub static ELEMENT: Class = Class {
    name: "RadixIPsecLookup",
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

/// ESP packets for this host, or others.
const LOCAL: usize = 0;
const TUNNELS: usize = 1;
const NOT_ESP: usize = 2;
const ESP: u8 = 50;
/// Messages about packets that are dropped.
const COMPLAINTS: u32 = 5;

/// A command, and the terms that come with its route.
type Step = (Command, Option<Terms>);

fn parse(verb: &str, text: &str, ports: usize, at: Surroundings<'_>) -> Result<Step, String> {
    let (route, terms) = route::split(text, at)?;
    let mut command = Command::parse(verb, &route, ports, at)?;
    if let Command::Add(route) | Command::Set(route) = &mut command {
        route.hop.tunnel = terms.as_ref().map(|t| t.spi);
    }
    Ok((command, terms))
}

fn parse_lines(text: &str, ports: usize, at: Surroundings<'_>) -> Result<Vec<Step>, String> {
    let lines = text.lines().enumerate();
    let steps = lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            let (verb, rest) = shift_word(line);
            parse(&verb, &rest, ports, at).map_err(|e| format!("line {}: {e}", index + 1))
        });
    steps.collect()
}

fn build(a: &mut Args<'_>) -> Built {
    let (ports, at) = (a.outputs(), a.surroundings());
    let most = a.environment().limits.table_entries;
    let (mut table, mut terms) = (Table::default(), BTreeMap::new());
    for (index, text) in a.rest().to_vec().iter().enumerate() {
        let added = parse("add", text, ports, at).and_then(|(command, given)| {
            agree(&mut terms, given, false)?;
            table.run_new(&command, most)
        });
        if let Err(message) = added {
            a.error("ROUTE", format!("argument {}: {message}", index + 1));
        }
    }
    Some(Box::new(RadixIPsecLookup {
        routes: Routes::of(table),
        terms,
        numbers: BTreeMap::new(),
        shared: Shared::default(),
        outputs: Outputs::new(ports),
        complaints: 0,
    }))
}

/// Adds terms to those there are; other ones for the same SPI must be there to replace them.
fn agree(
    all: &mut BTreeMap<u32, Terms>,
    given: Option<Terms>,
    replace: bool,
) -> Result<(), String> {
    let Some(given) = given else {
        return Ok(());
    };
    let spi = given.spi;
    if !replace && all.get(&spi).is_some_and(|terms| *terms != given) {
        return Err(format!("SPI {spi} has other terms"));
    }
    all.insert(spi, given);
    Ok(())
}

struct RadixIPsecLookup {
    routes: Routes,
    /// Of each SPI.
    terms: BTreeMap<u32, Terms>,
    /// Of the associations in the shared list, by SPI.
    numbers: BTreeMap<u32, u32>,
    shared: Shared,
    outputs: Outputs,
    complaints: u32,
}

impl RadixIPsecLookup {
    /// Makes the associations those of the terms; one whose terms are as before goes on counting.
    fn associate(&mut self) {
        let mut shared = self.shared.borrow_mut();
        let terms = &self.terms;
        self.numbers.retain(|spi, number| {
            let same = |a: &mut Association| terms.get(spi) == Some(&a.terms);
            let keep = shared.get(*number).is_some_and(same);
            if !keep {
                shared.remove(*number);
            }
            keep
        });
        for (spi, terms) in &self.terms {
            let number = || shared.add(terms.clone());
            self.numbers.entry(*spi).or_insert_with(number);
        }
    }

    /// Runs steps that were checked, and forgets associations without a route.
    fn run(&mut self, steps: &[Step], most: usize) {
        let commands: Vec<&Command> = steps.iter().map(|(command, _)| command).collect();
        self.routes.run(commands.into_iter(), most);
        for (_, terms) in steps {
            let _ = agree(&mut self.terms, terms.clone(), true);
        }
        let routes = self.routes.in_order();
        let used: Vec<u32> = routes.iter().filter_map(|r| r.hop.tunnel).collect();
        self.terms.retain(|spi, _| used.contains(spi));
        self.associate();
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
            TUNNELS => Some(hop.tunnel.ok_or(format!("no tunnel for {address}"))?),
            _ => None,
        };
        if let Some(spi) = spi {
            let number = self.numbers.get(&spi).ok_or(format!("unknown SPI {spi}"))?;
            mark(packet, spi, *number);
        }
        if let Some(gateway) = hop.gateway {
            packet.anno_mut().set_dst_ip(gateway.octets());
        }
        Ok(hop.port)
    }

    fn table(&self) -> String {
        let line = |route: crate::routes::route::Route| {
            let spi = route.hop.tunnel.map(|spi| format!("\tSPI {spi}"));
            format!("{}{}\n", route.columns(), spi.unwrap_or_default())
        };
        self.routes.in_order().into_iter().map(line).collect()
    }
}

impl Element for RadixIPsecLookup {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.shared = ctx.shared();
        self.outputs.look_around(ctx);
        self.associate();
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let mut outputs = core::mem::replace(&mut self.outputs, Outputs::new(0));
        let mut way = |ctx: &mut Context<'_>, packet: &mut Packet| match self.output(packet) {
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
        outputs.distribute(ctx, batch, |ctx, batch, ways| {
            ways.extend(batch.iter_mut().map(|packet| way(ctx, packet)));
        });
        self.outputs = outputs;
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
        let steps = match handler {
            "ctrl" => parse_lines(value, ports, at),
            verb => parse(verb, value, ports, at).map(|step| [step].into()),
        };
        let steps = steps.map_err(HandlerError::rejected)?;
        let most = at.environment.limits.table_entries;
        self.routes.check(steps.iter().map(|(c, _)| c), most)?;
        let mut terms = self.terms.clone();
        for (command, given) in &steps {
            let replace = matches!(command, Command::Set(_));
            agree(&mut terms, given.clone(), replace).map_err(HandlerError::rejected)?;
        }
        Ok(Change::of(move |me: &mut Self, _| me.run(&steps, most)))
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        let (mut shared, mut before) = (self.shared.borrow_mut(), old.shared.borrow_mut());
        for (spi, number) in &self.numbers {
            let was = old.numbers.get(spi).and_then(|n| before.get(*n));
            if let (Some(new), Some(was)) = (shared.get(*number), was) {
                new.go_on(was);
            }
        }
    }
}
