// SPDX-License-Identifier: Apache-2.0
//! Routes of IPv6: longest prefix match, and what handlers say of them.
use click_core::text::{shift_word, split_words};
use click_core::{ArgContext, Limits, listing, sort};

use super::{Address, Prefix6, mask};
use crate::flows::FlowId;
use crate::prelude::*;
use crate::routes::prefixes::{Entry, KEYS, Prefixes, Way, find};
use crate::routes::ranges::{LEFT_BEHIND, Steps, bits, cut};
use crate::routes::route::Network;
use crate::steps::Forest;

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
    pub fn parse(verb: &str, text: &str, ports: usize, at: ArgContext<'_>) -> Result<Self, String> {
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
fn route(text: &str, ports: usize, at: ArgContext<'_>) -> Result<(Prefix6, Hop), String> {
    let words = split_words(text);
    let (prefix, gateway, port) = match words.as_slice() {
        [prefix, port] => (prefix, None, port),
        [prefix, gateway, port] => (prefix, Some(Address::from_arg(gateway, at)?), port),
        _ => return Err(expected("PREFIX [GATEWAY] OUTPUT", text)),
    };
    let prefix = Prefix6::from_arg(prefix, at)?;
    let port = usize::from_arg(port, at).map_err(|m| format!("OUTPUT: {m}"))?;
    if port >= ports {
        return Err(format!("output {port} does not exist, there are {ports}"));
    }
    let gateway = gateway.filter(|g| !g.0.is_unspecified());
    Ok((prefix, Hop { gateway, port }))
}

/// Routes, and what packets are looked up in.
pub struct Table {
    routes: Prefixes<u128, Hop>,
    ways: Ways,
}

type Route = Entry<u128>;

impl Way for Hop {
    fn hash(&self) -> u64 {
        let gateway = self.gateway.map_or(0, |gateway| u128::from(gateway.0));
        let half = |bits: u128| {
            let id = FlowId {
                source: ((bits >> 32) as u32).into(),
                destination: (bits as u32).into(),
                ..FlowId::NONE
            };
            KEYS.hash(&id, self.port as u16)
        };
        half(gateway) ^ half(gateway >> 64).rotate_left(32)
    }
}

impl Prefix6 {
    fn rank(self) -> (u128, u8) {
        (self.network, self.length)
    }
}

impl Table {
    /// A table with these routes; of a network the last one counts.
    pub fn of(routes: &[(Prefix6, Hop)]) -> Self {
        let ranked = |(prefix, hop): &(Prefix6, Hop)| (prefix.rank(), *hop);
        let routes: Vec<_> = routes.iter().map(ranked).collect();
        let routes = Prefixes::of(&routes, true);
        Self {
            ways: Ways::of(routes.entries()),
            routes,
        }
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.routes.entries().len()
    }

    /// True if there is a route for just this network.
    pub fn has(&self, prefix: Prefix6) -> bool {
        self.routes.find(prefix.rank()).is_ok()
    }

    /// Does it; a route for a network that has one replaces it.
    pub fn run(&mut self, command: Command) {
        let (prefix, hop) = match command {
            Command::Add(prefix, hop) => (prefix, Some(hop)),
            Command::Remove(prefix) => (prefix, None),
        };
        self.routes.set((prefix.rank(), hop));
        self.ways.update(self.routes.entries(), prefix);
    }

    /// The route with the longest prefix that an address has.
    #[inline]
    pub fn lookup(&self, address: Address) -> Option<&Hop> {
        self.routes.hops().get(self.ways.find(address) as usize)
    }

    /// A line a route.
    pub fn show(&self, limits: &Limits) -> String {
        let mut routes: Vec<_> = self.routes.entries().iter().collect();
        sort::by_key(&mut routes, |route| (128 - route.length, route.network));
        let lines = routes.into_iter().map(|route| {
            let prefix = Prefix6 {
                network: route.network,
                length: route.length,
            };
            let hop = self.routes.hops()[route.hop as usize];
            let gateway = hop.gateway.map_or("::".into(), |g| g.to_string());
            format!("{prefix}\t{gateway}\t{}\n", hop.port)
        });
        listing(limits, lines)
    }
}

/// Marks a value that is the number of a function of the next 32 bits of an address, and no hop.
const NEXT: u32 = 1 << 30;
/// No route.
const NOWHERE: u32 = NEXT - 1;
/// Bits of the words that an address is looked up by, one after the other.
const WORD: u32 = 32;

/// The word of an address at a level.
fn word(address: u128, level: u32) -> u32 {
    (address >> (96 - WORD * level)) as u32
}

/// For each address the number of its hop: a function of its first word, which gives a hop or a function of the next
/// word, and so on.
#[derive(Default)]
struct Ways {
    /// The functions of parts of the first words.
    parts: Vec<u32>,
    shift: u32,
    forest: Forest,
    /// Functions of further words.
    further: Vec<Further>,
    /// Bytes of functions when all were made last.
    bytes: usize,
}

/// A function of a further word: one interval, as most have one route, or a function of the forest.
struct Further {
    first: u32,
    span: u32,
    inside: u32,
    outside: u32,
}

impl Further {
    #[inline]
    fn way(&self, word: u32) -> u32 {
        match word.wrapping_sub(self.first) <= self.span {
            true => self.inside,
            false => self.outside,
        }
    }
}

impl Ways {
    fn of(routes: &[Route]) -> Self {
        let bits = bits(routes.len());
        let mut ways = Self {
            parts: vec![NOWHERE; 1 << bits],
            shift: WORD - bits,
            ..Self::default()
        };
        ways.fill(routes, (0, u32::MAX));
        ways.bytes = ways.bytes();
        ways
    }

    #[inline]
    fn find(&self, address: Address) -> u32 {
        let address = u128::from(address.0);
        let first = word(address, 0);
        let mut way = self.parts[(first >> self.shift) as usize];
        way = self.forest.get(way, first);
        let mut level = 1;
        // each function lies at the level after that of the one before, and the last one has no further ones
        while way & NEXT != 0 && level < 4 {
            let word = word(address, level);
            way = self.further[(way & !NEXT) as usize].way(word);
            way = self.forest.get(way, word);
            level += 1;
        }
        way
    }

    fn bytes(&self) -> usize {
        self.forest.bytes() + size_of_val(self.further.as_slice())
    }

    /// Takes over a change of the route for a network, which is made already.
    fn update(&mut self, routes: &[Route], prefix: Prefix6) {
        let is_crowded = bits(routes.len()) > WORD - self.shift + 1;
        if is_crowded || self.bytes() > 2 * self.bytes + LEFT_BEHIND {
            *self = Self::of(routes);
        } else {
            let last = prefix.network | !mask(prefix.length);
            self.fill(routes, (word(prefix.network, 0), word(last, 0)));
        }
    }

    /// Makes the parts again that these first words are in.
    fn fill(&mut self, routes: &[Route], (first, last): (u32, u32)) {
        let shift = self.shift;
        let parts = first >> shift..=last >> shift;
        let begin = parts.start() << shift;
        let end = (parts.end() << shift) | ((1 << shift) - 1);
        let edge = |word: u32, rest: u128| u128::from(word) << 96 | rest;
        let from = find(routes, (edge(begin, 0), 0)).unwrap_or_else(|at| at);
        let to = routes.partition_point(|r| r.network <= edge(end, u128::MAX >> WORD));
        let around = around(routes, edge(begin, 0), WORD - shift);
        let steps = self.steps(&routes[from..to], 0, begin, around);
        cut(&steps, around, shift, parts, &mut |part, below, steps| {
            self.parts[part as usize] = self.forest.plant(below, steps);
        });
    }

    /// Where the value of a function of the word at a level changes from `begin` on; it is `around` where there is no
    /// route. The routes share all words before that one.
    fn steps(&mut self, routes: &[Route], level: u32, begin: u32, around: u32) -> Vec<(u32, u32)> {
        let mut steps = Steps::new(begin, around);
        let mut rest = routes;
        while let Some((route, behind)) = rest.split_first() {
            let first = word(route.network, level);
            steps.leave(Some(first));
            match u32::from(route.length).saturating_sub(WORD * level) {
                bits @ ..=WORD => {
                    let length = bits as u8;
                    steps.enter(Network { first, length }, route.hop);
                    rest = behind;
                }
                _ => {
                    let here = rest.partition_point(|r| word(r.network, level) == first);
                    let (longer, behind) = rest.split_at(here);
                    let value = self.further(longer, level + 1, steps.inner());
                    let length = WORD as u8;
                    steps.enter(Network { first, length }, value);
                    rest = behind;
                }
            }
        }
        steps.leave(None);
        steps.list
    }

    /// The value that stands for a function of the word at a level.
    fn further(&mut self, routes: &[Route], level: u32, around: u32) -> u32 {
        let steps = self.steps(routes, level, 0, around);
        let (below, steps) = match steps.as_slice() {
            [(0, below), rest @ ..] => (*below, rest),
            steps => (around, steps),
        };
        let (first, end, inside, outside) = match *steps {
            [(first, inside)] => (first, None, inside, below),
            [(first, inside), (end, behind)] if behind == below => {
                (first, Some(end), inside, below)
            }
            _ => (0, None, self.forest.plant(below, steps), below),
        };
        self.further.push(Further {
            first,
            span: end.map_or(u32::MAX, |end| end - 1) - first,
            inside,
            outside,
        });
        NEXT | (self.further.len() - 1) as u32
    }
}

/// The hop of an address by networks that begin before it and are not longer than `most`.
fn around(routes: &[Route], address: u128, most: u32) -> u32 {
    let ranks = (0..=most as u8)
        .rev()
        .map(|length| (address & mask(length), length));
    let found = ranks
        .filter(|(network, _)| *network < address)
        .find_map(|rank| find(routes, rank).ok());
    found.map_or(NOWHERE, |at| routes[at].hop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Networks that lie in each other, at the edges of words, and anywhere.
    fn network() -> impl Strategy<Value = Prefix6> {
        let words = prop_oneof![
            Just(0u32),
            Just(1),
            Just(u32::MAX),
            Just(0x2001_0db8),
            any::<u32>()
        ];
        let length = prop_oneof![
            0u8..=128,
            prop::sample::select(vec![0u8, 31, 32, 33, 63, 64, 65, 96, 127, 128])
        ];
        (prop::array::uniform4(words), length).prop_map(|(words, length)| {
            let address = words
                .into_iter()
                .fold(0, |all, word| all << 32 | u128::from(word));
            Prefix6 {
                network: address & mask(length),
                length,
            }
        })
    }

    type Routes = Vec<(Prefix6, usize)>;

    fn expected(routes: &Routes, address: u128) -> Option<usize> {
        let fitting = routes
            .iter()
            .filter(|(p, _)| p.contains(Address(address.into())));
        fitting.max_by_key(|(p, _)| p.length).map(|(_, port)| *port)
    }

    fn check(table: &Table, routes: &Routes) {
        assert_eq!(table.len(), routes.len());
        let edges = routes.iter().flat_map(|(prefix, _)| {
            let (first, last) = (prefix.network, prefix.network | !mask(prefix.length));
            [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
        });
        for address in edges.chain([0, u128::MAX, 0x2001_0db8 << 96 | 7]) {
            let found = table.lookup(Address(address.into())).map(|hop| hop.port);
            assert_eq!(found, expected(routes, address), "{address:x}");
        }
    }

    fn hop(port: usize) -> Hop {
        Hop {
            gateway: None,
            port,
        }
    }

    proptest! {
        #[test]
        fn finds_the_longest_prefix_after_each_change(
            given in prop::collection::vec((network(), 0usize..4), 0..30),
            changes in prop::collection::vec((network(), 0usize..5, any::<prop::sample::Index>()), 0..20),
        ) {
            let mut table = Table::of(&given.iter().map(|(prefix, port)| (*prefix, hop(*port))).collect::<Vec<_>>());
            let mut routes = Routes::new();
            for (prefix, port) in given {
                routes.retain(|(p, _)| *p != prefix);
                routes.push((prefix, port));
            }
            check(&table, &routes);
            for (other, port, chosen) in changes {
                // every other change is of an existing route
                let known = port % 2 == 0 && !routes.is_empty();
                let prefix = if known { chosen.get(&routes).0 } else { other };
                routes.retain(|(p, _)| *p != prefix);
                if port == 4 {
                    table.run(Command::Remove(prefix));
                } else {
                    routes.push((prefix, port));
                    table.run(Command::Add(prefix, hop(port)));
                }
                check(&table, &routes);
            }
        }
    }

    #[test]
    fn many_routes_are_compact_however_often_they_change() {
        let network = |n: u32| Prefix6 {
            network: (0x2000_0000 | u128::from(n.wrapping_mul(0x9e37_79b9) >> 3)) << 96
                | u128::from(n % 9) << 80,
            length: 48,
        };
        let routes: Vec<_> = (0..1000)
            .map(|n| (network(n), hop(n as usize % 7)))
            .collect();
        let mut table = Table::of(&routes);
        let least = table.ways.bytes();
        assert!(least < 120 << 10, "{least}");
        for n in 1000..6000 {
            table.run(Command::Add(network(n), hop(n as usize % 7)));
            table.run(Command::Remove(network(n)));
        }
        assert!(table.ways.bytes() <= 2 * least + 2 * LEFT_BEHIND);
    }

    #[test]
    fn routes_with_a_gateway_each_need_no_long_searches() {
        for gateway in [0x2001_0db8 << 96, 0xfe80 << 112] {
            for step in [1u128, 1 << 64 | 1, 1 << 80] {
                let route = |n: u32| {
                    let (network, length) = (u128::from(n) << 64, 64);
                    let hop = Hop {
                        gateway: Some(Address((gateway + u128::from(n) * step + 1).into())),
                        port: 2,
                    };
                    (Prefix6 { network, length }, hop)
                };
                let routes: Vec<_> = (0..20_000).map(route).collect();
                let longest = Table::of(&routes).routes.longest_search();
                assert!(longest < 64, "{longest} of step {step}");
            }
        }
    }
}
