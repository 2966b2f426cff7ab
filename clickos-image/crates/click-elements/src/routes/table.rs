// SPDX-License-Identifier: Apache-2.0
//! The routes there are, and the commands that change them.
use alloc::collections::BTreeMap;

use click_core::text::shift_word;
use click_core::{Surroundings, sort};

use super::route::{Hop, Network, Partial, Route};
use crate::prelude::*;

/// Routes by network, with the order in which they came.
#[derive(Clone, Default)]
pub struct Table {
    routes: BTreeMap<Network, (u64, Hop)>,
    next: u64,
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
    pub fn parse(
        verb: &str,
        text: &str,
        ports: usize,
        at: Surroundings<'_>,
    ) -> Result<Self, String> {
        let partial = || Partial::parse(text, ports, at);
        match verb {
            "add" => Ok(Self::Add(partial()?.complete()?)),
            "set" => Ok(Self::Set(partial()?.complete()?)),
            "remove" => Ok(Self::Remove(partial()?)),
            _ => Err(format!(
                "expected add, set or remove, got \"{}\"",
                verb.escape_debug()
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
    changes: BTreeMap<Network, Option<Hop>>,
    len: usize,
}

impl<'a> Trial<'a> {
    /// No changes yet.
    pub fn of(table: &'a Table) -> Self {
        Self {
            table,
            changes: BTreeMap::new(),
            len: table.len(),
        }
    }

    fn get(&self, network: Network) -> Option<Route> {
        let changed = self.changes.get(&network).copied();
        let hop = changed.unwrap_or_else(|| self.table.get(network))?;
        Some(Route { network, hop })
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
        self.len = self.len + usize::from(after.is_some()) - usize::from(before.is_some());
        if self.len > most {
            return Err(format!(
                "there are {most} routes already, which is the limit"
            ));
        }
        self.changes.insert(network, after);
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
        let Some(hop) = hop else {
            self.routes.remove(&network);
            return;
        };
        let next = self.next;
        let entry = self.routes.entry(network).or_insert((next, hop));
        entry.1 = hop;
        self.next += u64::from(entry.0 == next);
    }

    fn get(&self, network: Network) -> Option<Hop> {
        self.routes.get(&network).map(|(_, hop)| *hop)
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Where packets to `address` go.
    #[cfg(test)]
    pub fn lookup(&self, address: u32) -> Option<Hop> {
        let at = |length| self.get(Network::of(address, length));
        (0..=32).rev().find_map(at)
    }

    /// Where packets to `address` go by networks that begin before it and are not longer than `most`.
    pub fn around(&self, address: u32, most: u32) -> Option<Hop> {
        let lengths = (0..=u8::try_from(most).unwrap_or(32)).rev();
        let networks = lengths.map(|length| Network::of(address, length));
        networks
            .filter(|network| network.first < address)
            .find_map(|network| self.get(network))
    }

    /// All routes by first address, wider networks first.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = Route> {
        self.within(0, u32::MAX)
    }

    /// The routes whose networks begin in a part of the address space.
    pub fn within(&self, first: u32, last: u32) -> impl Iterator<Item = Route> {
        let (from, to) = (
            Network { first, length: 0 },
            Network {
                first: last,
                length: 32,
            },
        );
        let route = |(network, (_, hop)): (&Network, &(u64, Hop))| Route {
            network: *network,
            hop: *hop,
        };
        self.routes.range(from..=to).map(route)
    }

    /// All routes in the order in which they came.
    pub fn in_order(&self) -> Vec<Route> {
        let mut all: Vec<_> = self.routes.iter().collect();
        sort::by_key(&mut all, |(_, (order, _))| *order);
        let route = |(network, (_, hop)): (&Network, &(u64, Hop))| Route {
            network: *network,
            hop: *hop,
        };
        all.into_iter().map(route).collect()
    }
}
