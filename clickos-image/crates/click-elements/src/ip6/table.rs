// SPDX-License-Identifier: Apache-2.0
//! Routes of IPv6: longest prefix match, and what handlers say of them.
use click_core::text::{shift_word, split_words};
use click_core::{Limits, Surroundings, listing};

use super::{Address, Prefix6, mask};
use crate::prelude::*;

/// Where packets of a network go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The address that becomes their destination annotation.
    pub gateway: Option<Address>,
    pub port: usize,
}

/// A change to a table.
pub enum Command {
    Add(Prefix6, Hop),
    Remove(Prefix6),
}

impl Command {
    /// Parses what is written to handler `verb`: `add`, `remove`, or `ctrl` for either.
    ///
    /// # Errors
    /// The error of a route, for instance an output that is not one of `ports`.
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

/// Routes, those with the longest prefixes first, and those of a length by their networks: for each length there is
/// one search by halves.
#[derive(Default)]
pub struct Table {
    routes: Vec<(Prefix6, Hop)>,
}

/// By what routes are in order.
fn rank(prefix: Prefix6) -> (u8, u128) {
    (128 - prefix.length, prefix.network)
}

impl Table {
    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Where the route for just this network is, or would be.
    fn find(&self, prefix: Prefix6) -> Result<usize, usize> {
        let wanted = rank(prefix);
        self.routes
            .binary_search_by(|(other, _)| rank(*other).cmp(&wanted))
    }

    /// True if there is a route for just this network.
    pub fn has(&self, prefix: Prefix6) -> bool {
        self.find(prefix).is_ok()
    }

    /// Does it; a route for a network that has one replaces it.
    pub fn run(&mut self, command: Command) {
        match command {
            Command::Add(prefix, hop) => match self.find(prefix) {
                Ok(at) => self.routes[at].1 = hop,
                Err(at) => self.routes.insert(at, (prefix, hop)),
            },
            Command::Remove(prefix) => {
                if let Ok(at) = self.find(prefix) {
                    self.routes.remove(at);
                }
            }
        }
    }

    /// The route with the longest prefix that an address has.
    pub fn lookup(&self, address: Address) -> Option<Hop> {
        let mut from = 0;
        while let Some((Prefix6 { length, .. }, _)) = self.routes.get(from) {
            let network = u128::from(address.0) & mask(*length);
            let prefix = Prefix6 {
                network,
                length: *length,
            };
            if let Ok(at) = self.find(prefix) {
                return Some(self.routes[at].1);
            }
            from = self.behind(*length);
        }
        None
    }

    /// Where shorter prefixes than this begin.
    fn behind(&self, length: u8) -> usize {
        self.routes
            .partition_point(|(prefix, _)| prefix.length >= length)
    }

    /// A line a route.
    pub fn show(&self, limits: &Limits) -> String {
        let lines = self.routes.iter().map(|(prefix, hop)| {
            let gateway = hop.gateway.map_or("::".into(), |g| g.to_string());
            format!("{prefix}\t{gateway}\t{}\n", hop.port)
        });
        listing(limits, lines)
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
            prop_assert!(table.routes.is_empty());
        }
    }
}
