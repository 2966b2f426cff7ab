// SPDX-License-Identifier: Apache-2.0
//! Routes of IPv6: longest prefix match, and what handlers say of them.
use alloc::collections::BTreeMap;
use core::fmt::Write as _;

use click_core::Surroundings;
use click_core::text::{shift_word, split_words};

use super::{Address, Prefix6, mask};
use crate::prelude::*;

/// Where packets of a network go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The address that becomes their destination annotation.
    pub gateway: Option<Address>,
    pub port: usize,
}

/// What is to be done to a table.
pub enum Command {
    Add(Prefix6, Hop),
    Remove(Prefix6),
}

impl Command {
    /// Parses what is written to handler `verb`: `add`, `remove`, or `ctrl` for either.
    ///
    /// # Errors
    /// What is wrong; an output that is not one of `ports`.
    pub fn parse(
        verb: &str,
        text: &str,
        ports: usize,
        at: Surroundings<'_>,
    ) -> Result<Self, String> {
        match verb {
            "add" => route(text, ports, at).map(|(prefix, hop)| Self::Add(prefix, hop)),
            "remove" => Prefix6::from_arg(text.trim(), at).map(Self::Remove),
            _ => match shift_word(text) {
                (verb, rest) if verb == "add" || verb == "remove" => {
                    Self::parse(&verb, &rest, ports, at)
                }
                (word, _) => Err(format!("expected add or remove, got \"{word}\"")),
            },
        }
    }
}

/// Parses `PREFIX [GATEWAY] OUTPUT`.
fn route(text: &str, ports: usize, at: Surroundings<'_>) -> Result<(Prefix6, Hop), String> {
    let words = split_words(text);
    let (prefix, gateway, port) = match words.as_slice() {
        [prefix, port] => (prefix, None, port),
        [prefix, gateway, port] => (prefix, Some(Address::from_arg(gateway, at)?), port),
        _ => return Err("expected PREFIX [GATEWAY] OUTPUT".into()),
    };
    let prefix = Prefix6::from_arg(prefix, at)?;
    let port = usize::from_arg(port, at).map_err(|m| format!("OUTPUT: {m}"))?;
    if port >= ports {
        return Err(format!("output {port} does not exist, there are {ports}"));
    }
    let gateway = gateway.filter(|g| !g.0.is_unspecified());
    Ok((prefix, Hop { gateway, port }))
}

/// A route, and which one in the order of their coming it was.
struct Entry {
    hop: Hop,
    number: u64,
}

/// Routes by the length of their prefix, then by network.
#[derive(Default)]
pub struct Table {
    lengths: BTreeMap<u8, BTreeMap<u128, Entry>>,
    next: u64,
}

impl Table {
    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.lengths.values().map(BTreeMap::len).sum()
    }

    /// Whether there is a route for just this network.
    pub fn has(&self, prefix: Prefix6) -> bool {
        let networks = self.lengths.get(&prefix.length);
        networks.is_some_and(|n| n.contains_key(&prefix.network))
    }

    /// Does it; a route for a network that has one replaces it.
    pub fn run(&mut self, command: Command) {
        match command {
            Command::Add(prefix, hop) => {
                let entry = Entry {
                    hop,
                    number: self.next,
                };
                self.next += 1;
                let networks = self.lengths.entry(prefix.length).or_default();
                networks.insert(prefix.network, entry);
            }
            Command::Remove(prefix) => self.remove(prefix),
        }
    }

    fn remove(&mut self, prefix: Prefix6) {
        if let Some(networks) = self.lengths.get_mut(&prefix.length) {
            networks.remove(&prefix.network);
            if networks.is_empty() {
                self.lengths.remove(&prefix.length);
            }
        }
    }

    /// The route with the longest prefix that an address has.
    pub fn lookup(&self, address: Address) -> Option<Hop> {
        let address = u128::from(address.0);
        let mut longest_first = self.lengths.iter().rev();
        longest_first.find_map(|(length, networks)| {
            let entry = networks.get(&(address & mask(*length)))?;
            Some(entry.hop)
        })
    }

    /// A line a route, in the order in which they came.
    pub fn show(&self) -> String {
        let routes = self.lengths.iter().flat_map(|(length, networks)| {
            let prefix = |network: &u128| Prefix6 {
                network: *network,
                length: *length,
            };
            networks
                .iter()
                .map(move |(network, entry)| (prefix(network), entry))
        });
        let mut routes: Vec<_> = routes.collect();
        routes.sort_by_key(|(_, entry)| entry.number);
        let mut lines = String::new();
        for (prefix, Entry { hop, .. }) in routes {
            let gateway = hop.gateway.map_or("::".into(), |g| g.to_string());
            let _ = writeln!(lines, "{prefix}\t{gateway}\t{}", hop.port);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_longest_prefix(
            routes in prop::collection::vec((0u128..64, 120u8..=128), 1..20),
            asked in 0u128..64,
        ) {
            let mut table = Table::default();
            let mut all = Vec::new();
            for (port, (network, length)) in routes.into_iter().enumerate() {
                let prefix = Prefix6 { network: network & mask(length), length };
                all.retain(|(p, _)| *p != prefix);
                all.push((prefix, port));
                table.run(Command::Add(prefix, Hop { gateway: None, port }));
            }
            let asked = Address(asked.into());
            let fitting = all.iter().filter(|(p, _)| p.contains(asked));
            let want = fitting.max_by_key(|(p, _)| p.length).map(|(_, port)| *port);
            prop_assert_eq!(table.lookup(asked).map(|h| h.port), want);
            prop_assert_eq!(table.len(), all.len());
            for (prefix, _) in all {
                table.run(Command::Remove(prefix));
            }
            prop_assert!(table.lengths.is_empty());
        }
    }
}
