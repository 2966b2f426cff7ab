// SPDX-License-Identifier: Apache-2.0
//! The routes there are, and the commands that change them.
use click_core::ArgContext;
use click_core::text::shift_word;

use super::prefixes::{Entry, KEYS, Prefixes, Way};
use super::route::{Hop, Network, Partial, Route};
use crate::flows::FlowId;
use crate::prelude::*;

/// Routes by network, with the order in which they came.
#[derive(Default)]
pub struct Table(Prefixes<u32, Hop>);

/// Changes, each of the hop of a network, in the order of the networks.
pub type Changes = Vec<(Network, Option<Hop>)>;

/// Where the change of a network is, or would be.
fn place(changes: &Changes, network: Network) -> Result<usize, usize> {
    changes.binary_search_by(|(other, _)| other.cmp(&network))
}

/// A change of the table.
pub enum Command {
    /// A route that must not exist yet.
    Add(Route),
    /// A route, in place of an older one.
    Set(Route),
    /// The route that this names.
    Remove(Partial),
}

impl Command {
    /// Parses a command's arguments; `verb` is one of `add`, `set`, `remove`.
    ///
    /// # Errors The fault.
    pub fn parse(verb: &str, text: &str, ports: usize, at: ArgContext<'_>) -> Result<Self, String> {
        let partial = || Partial::parse(text, ports, at);
        match verb {
            "add" => Ok(Self::Add(partial()?.complete(text)?)),
            "set" => Ok(Self::Set(partial()?.complete(text)?)),
            "remove" => Ok(Self::Remove(partial()?)),
            _ => Err(format!(
                "expected add, set or remove, got \"{}\"",
                verb.shown()
            )),
        }
    }
}

/// Parses commands, one a line, each a verb and its arguments.
///
/// # Errors
/// The first line that is wrong, and what is.
pub fn parse_lines<T>(
    text: &str,
    parse: impl Fn(&str, &str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let lines = text.lines().enumerate();
    let commands = lines.filter(|(_, line)| !line.trim().is_empty());
    let parsed = commands.map(|(index, line)| {
        let (verb, rest) = shift_word(line);
        parse(&verb, &rest).map_err(|e| format!("line {}: {e}", index + 1))
    });
    parsed.collect()
}

/// A table and its pending changes.
pub struct Trial<'a> {
    table: &'a Table,
    changes: Changes,
    len: usize,
}

impl<'a> Trial<'a> {
    /// No changes yet.
    pub fn of(table: &'a Table) -> Self {
        Self {
            table,
            changes: Changes::new(),
            len: table.len(),
        }
    }

    fn get(&self, network: Network) -> Option<Route> {
        let changed = place(&self.changes, network).map(|at| self.changes[at].1);
        let hop = changed.unwrap_or_else(|_| self.table.get(network))?;
        Some(Route { network, hop })
    }

    /// What is different then.
    pub fn changes(self) -> Changes {
        self.changes
    }

    /// Notes a command.
    ///
    /// # Errors
    /// The route exists, does not exist, or there are `most` already.
    pub fn run(&mut self, command: &Command, most: usize) -> Result<(), String> {
        let network = command.network();
        let (before, after) = (self.get(network), command.result());
        match (command, before) {
            (Command::Add(_), Some(old)) => {
                return Err(format!("conflict with existing route '{old}'"));
            }
            (Command::Remove(partial), before) => check_remove(partial, before)?,
            _ => {}
        }
        let len = self.len + usize::from(after.is_some()) - usize::from(before.is_some());
        if len > most {
            return Err(format!(
                "there are {most} routes already, which is the limit"
            ));
        }
        self.len = len;
        match place(&self.changes, network) {
            Ok(at) => self.changes[at].1 = after,
            Err(at) => self.changes.insert(at, (network, after)),
        }
        Ok(())
    }
}

fn check_remove(partial: &Partial, before: Option<Route>) -> Result<(), String> {
    match before {
        Some(route) if partial.names(&route) => Ok(()),
        Some(old) => Err(format!("route not found, there is '{old}'")),
        None => {
            let Network { first, length } = partial.network;
            let first = Ipv4Addr::from(first);
            Err(format!("route '{first}/{length}' not found"))
        }
    }
}

impl Command {
    /// The network it is about.
    pub fn network(&self) -> Network {
        match self {
            Self::Add(route) | Self::Set(route) => route.network,
            Self::Remove(partial) => partial.network,
        }
    }

    /// Where its packets go then.
    fn result(&self) -> Option<Hop> {
        match self {
            Self::Add(route) | Self::Set(route) => Some(route.hop),
            Self::Remove(_) => None,
        }
    }
}

impl Table {
    /// A table with these routes; of several for a network the first one counts.
    pub fn of(routes: &[Route]) -> Self {
        let rank = |route: &Route| (route.network.rank(), route.hop);
        let routes: Vec<_> = routes.iter().map(rank).collect();
        Self(Prefixes::of(&routes, false))
    }

    /// Changes the table; on an error nothing changes.
    ///
    /// # Errors
    /// The route exists, does not exist, or there are `most` already.
    pub fn run(&mut self, command: &Command, most: usize) -> Result<(), String> {
        Trial::of(self).run(command, most)?;
        self.make(command.network(), command.result());
        Ok(())
    }

    /// Like [`Table::run`], but a route for a network that has one is ignored.
    ///
    /// # Errors
    /// There are `most` routes already.
    pub fn run_new(&mut self, command: &Command, most: usize) -> Result<(), String> {
        match command {
            Command::Add(route) if self.get(route.network).is_some() => Ok(()),
            _ => self.run(command, most),
        }
    }

    /// Makes `hop` the way to a network.
    pub fn make(&mut self, network: Network, hop: Option<Hop>) {
        self.0.set((network.rank(), hop));
    }

    /// Makes all changes of a trial, in no more time than it takes to sort all routes.
    pub fn make_all(&mut self, changes: &Changes) {
        let changed = |network: Network| Some(changes[place(changes, network).ok()?].1);
        let mut routes = self.in_order();
        routes.retain_mut(|route| match changed(route.network) {
            None => true,
            Some(None) => false,
            Some(Some(hop)) => {
                route.hop = hop;
                true
            }
        });
        for (network, hop) in changes {
            if let (Some(hop), None) = (*hop, self.get(*network)) {
                let network = *network;
                routes.push(Route { network, hop });
            }
        }
        *self = Self::of(&routes);
    }

    fn get(&self, network: Network) -> Option<Hop> {
        self.0.get(network.rank())
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.0.entries().len()
    }

    /// The hops by number.
    #[inline]
    pub fn hops(&self) -> &[Hop] {
        self.0.hops()
    }

    /// Where packets to `address` go.
    #[cfg(test)]
    pub fn lookup(&self, address: u32) -> Option<Hop> {
        let at = |length| self.get(Network::of(address, length));
        (0..=32).rev().find_map(at)
    }

    /// The number of the hop of packets to `address` by networks that begin before it and are not longer than `most`.
    pub fn around(&self, address: u32, most: u32) -> Option<u32> {
        let lengths = (0..=u8::try_from(most).unwrap_or(32)).rev();
        let networks = lengths.map(|length| Network::of(address, length));
        let at = networks
            .filter(|network| network.first < address)
            .find_map(|network| self.0.find(network.rank()).ok())?;
        Some(self.0.entries()[at].hop)
    }

    /// The routes whose networks begin in a part of the address space, wider networks first.
    pub fn within(&self, first: u32, last: u32) -> &[Entry<u32>] {
        let entries = self.0.entries();
        let from = self.0.find((first, 0)).unwrap_or_else(|at| at);
        let to = entries.partition_point(|entry| entry.network <= last);
        &entries[from..to]
    }

    /// All routes in the order in which they came.
    pub fn in_order(&self) -> Vec<Route> {
        let route = |entry: Entry<u32>| Route {
            network: Network {
                first: entry.network,
                length: entry.length,
            },
            hop: self.hops()[entry.hop as usize],
        };
        self.0.in_order().into_iter().map(route).collect()
    }
}

impl Network {
    fn rank(self) -> (u32, u8) {
        (self.first, self.length)
    }
}

impl Way for Hop {
    fn hash(&self) -> u64 {
        let gateway = self.gateway.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let id = FlowId {
            source: gateway,
            destination: self.tunnel.unwrap_or(0).into(),
            ..FlowId::NONE
        };
        KEYS.hash(&id, self.port as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hop(port: usize) -> Hop {
        Hop {
            gateway: None,
            port,
            tunnel: None,
        }
    }

    proptest! {
        #[test]
        fn many_changes_at_once_are_those_one_by_one(
            given in prop::collection::vec((0u32..30, 0usize..4), 0..40),
            changes in prop::collection::btree_map(0u32..40, prop::option::of(0usize..4), 0..60),
        ) {
            let network = |n: u32| Network::of(n << 24, 8);
            let routes = given.iter().map(|(n, port)| Route { network: network(*n), hop: hop(*port) });
            let routes: Vec<_> = routes.collect();
            let (mut at_once, mut one_by_one) = (Table::of(&routes), Table::of(&routes));
            for (n, port) in &changes {
                one_by_one.make(network(*n), port.map(hop));
            }
            at_once.make_all(&changes.into_iter().map(|(n, port)| (network(n), port.map(hop))).collect());
            prop_assert_eq!(at_once.in_order(), one_by_one.in_order());
        }
    }

    #[test]
    fn routes_with_a_gateway_each_need_no_long_searches() {
        for (step, port) in [(1u32, 0), (1, 3), (256, 1)] {
            let route = |n: u32| Route {
                network: Network::of(0x0b00_0000 + n, 32),
                hop: Hop {
                    gateway: Some((0x0a00_0002u32 + step * n).into()),
                    ..hop(port)
                },
            };
            let routes: Vec<_> = (0..20_000).map(route).collect();
            let longest = Table::of(&routes).0.longest_search();
            assert!(longest < 64, "{longest} of step {step}");
        }
    }
}
