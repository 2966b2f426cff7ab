// SPDX-License-Identifier: Apache-2.0
//! The routes there are, and the commands that change them.
use alloc::collections::BTreeMap;

use click_core::Surroundings;
use click_core::text::split_words;

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
    /// # Errors
    /// What is wrong.
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

    /// Parses commands, one a line.
    ///
    /// # Errors
    /// The first line that is wrong, and what is.
    pub fn parse_lines(
        text: &str,
        ports: usize,
        at: Surroundings<'_>,
    ) -> Result<Vec<Self>, String> {
        let lines = text.lines().enumerate();
        let commands = lines.filter_map(|(index, line)| {
            let verb = split_words(line).into_iter().next()?;
            let (_, rest) = line.split_once(verb.as_str())?;
            let parsed = Self::parse(&verb, rest, ports, at);
            Some(parsed.map_err(|e| format!("line {}: {e}", index + 1)))
        });
        commands.collect()
    }
}

impl Table {
    /// Changes the table; on an error nothing changes.
    ///
    /// # Errors
    /// The route exists, does not exist, or there are `most` already.
    pub fn run(&mut self, command: &Command, most: usize) -> Result<(), String> {
        match command {
            Command::Add(route) => match self.get(route.network) {
                Some(old) => Err(format!("conflict with existing route '{old}'")),
                None => self.set(*route, most),
            },
            Command::Set(route) => self.set(*route, most),
            Command::Remove(partial) => match self.get(partial.network) {
                Some(route) if partial.names(&route) => {
                    self.routes.remove(&partial.network);
                    Ok(())
                }
                Some(old) => Err(format!("route not found, there is '{old}'")),
                None => {
                    let Network { first, length } = partial.network;
                    Err(format!(
                        "route '{}/{length}' not found",
                        Ipv4Addr::from(first)
                    ))
                }
            },
        }
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

    fn get(&self, network: Network) -> Option<Route> {
        let (_, hop) = *self.routes.get(&network)?;
        Some(Route { network, hop })
    }

    fn set(&mut self, route: Route, most: usize) -> Result<(), String> {
        if let Some((_, hop)) = self.routes.get_mut(&route.network) {
            *hop = route.hop;
            return Ok(());
        }
        if self.routes.len() >= most {
            return Err(format!(
                "there are {most} routes already, which is the limit"
            ));
        }
        self.routes.insert(route.network, (self.next, route.hop));
        self.next += 1;
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.routes.clear();
    }

    /// Where packets to `address` go.
    pub fn lookup(&self, address: u32) -> Option<Hop> {
        let at = |length| self.routes.get(&Network::of(address, length));
        (0..=32).rev().find_map(at).map(|(_, hop)| *hop)
    }

    /// All routes by first address, wider networks first.
    pub fn iter(&self) -> impl Iterator<Item = Route> {
        let route = |(network, (_, hop)): (&Network, &(u64, Hop))| Route {
            network: *network,
            hop: *hop,
        };
        self.routes.iter().map(route)
    }

    /// All routes in the order in which they came, one a line.
    pub fn text(&self) -> String {
        let mut lines: Vec<_> = self.routes.iter().collect();
        lines.sort_by_key(|(_, (order, _))| *order);
        let line = |(network, (_, hop)): (&Network, &(u64, Hop))| {
            let route = Route {
                network: *network,
                hop: *hop,
            };
            route.columns() + "\n"
        };
        lines.into_iter().map(line).collect()
    }
}
