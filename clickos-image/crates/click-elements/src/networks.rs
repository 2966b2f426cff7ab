// SPDX-License-Identifier: Apache-2.0
//! A tree of networks, by bytes of addresses, that knows more of those where much happens.
use click_core::Listing;
use click_core::memory::Growth;

use crate::prelude::*;
use crate::standard::average::{Average, thousandths};

/// Octets of memory that a network takes, about.
pub const NETWORK_BYTES: usize = size_of::<Network>() + size_of::<usize>();

/// A network, or in the end a host: what it sends and gets.
#[derive(Clone, Default)]
struct Network {
    /// In which it differs from those next to it.
    byte: u8,
    rates: [Average; 2],
    /// Until then it is not divided.
    whole_until_ns: u64,
    parts: Level,
}

/// Networks within one, sorted by their bytes.
type Level = Vec<Network>;

/// The index of a network in a level, or that at which it is to be put.
fn find(level: &Level, byte: u8) -> Result<usize, usize> {
    level.binary_search_by_key(&byte, |network| network.byte)
}

impl Network {
    fn rates_at(&self, now_ns: u64) -> [u64; 2] {
        self.rates.map(|rate| rate.milli_at(now_ns))
    }

    /// Forgets what is within it; returns how many networks that were.
    fn forget_parts(&mut self) -> usize {
        let parts = core::mem::take(&mut self.parts);
        let within = parts.into_iter();
        within.map(|mut part| 1 + part.forget_parts()).sum()
    }
}

/// The amount that a packet adds to its networks.
pub struct Amount {
    /// 0 where packets are not to be counted.
    pub value: u64,
    /// 0: sent, 1: got.
    pub direction: usize,
    pub now_ns: u64,
}

/// All networks known.
pub struct Networks {
    all: Level,
    known: usize,
    growth: Growth,
    capacity: usize,
    /// Thousandths a second from which on networks are divided.
    pub thresh_milli: u64,
}

impl Networks {
    pub fn new(thresh_milli: u64, capacity: usize) -> Self {
        Self {
            all: Level::new(),
            known: 0,
            growth: Growth::default(),
            capacity,
            thresh_milli,
        }
    }

    pub fn known(&self) -> usize {
        self.known
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.known = 0;
    }

    /// A line for each network that is not silent, and below it for those within.
    pub fn look(&self, text: &mut Listing, now_ns: u64) {
        look(&self.all, "", now_ns, text);
    }

    /// Counts for the networks that an address is in; returns the rates of the smallest one known.
    pub fn add(&mut self, address: [u8; 4], amount: &Amount) -> Option<[u64; 2]> {
        let mut all = core::mem::take(&mut self.all);
        let rates = self.add_at(&mut all, &address, amount);
        self.all = all;
        rates
    }

    fn add_at(&mut self, level: &mut Level, address: &[u8], amount: &Amount) -> Option<[u64; 2]> {
        let (byte, rest) = address.split_first()?;
        let index = match find(level, *byte) {
            Ok(index) => index,
            Err(index) => {
                self.add_network(level, index, *byte)?;
                index
            }
        };
        let network = &mut level[index];
        let now_ns = amount.now_ns;
        network.rates[amount.direction].add(now_ns, amount.value);
        let rates = network.rates_at(now_ns);
        if !network.parts.is_empty() {
            let smaller = self.add_at(&mut network.parts, rest, amount);
            return smaller.or(Some(rates));
        }
        let much = rates.iter().any(|rate| *rate >= self.thresh_milli);
        if much && now_ns >= network.whole_until_ns {
            self.divide(network, rest);
        }
        Some(rates)
    }

    fn add_network(&mut self, level: &mut Level, index: usize, byte: u8) -> Option<()> {
        let network = Network {
            byte,
            ..Network::default()
        };
        self.take_room().then(|| level.insert(index, network))
    }

    /// True if one more may become known, which then counts.
    fn take_room(&mut self) -> bool {
        let room = self.known < self.capacity && self.growth.takes_entry();
        self.known += usize::from(room);
        room
    }

    /// Takes what is known of a network for its first part.
    fn divide(&mut self, network: &mut Network, rest: &[u8]) {
        let Some(byte) = rest.first() else { return };
        if !self.take_room() {
            return;
        }
        network.parts.push(Network {
            byte: *byte,
            rates: network.rates,
            ..Network::default()
        });
    }

    /// Forgets what is within networks whose rates are below `milli`.
    pub fn fold(&mut self, milli: u64, now_ns: u64) {
        self.known -= fold(&mut self.all, milli, now_ns);
    }

    /// Forgets what is within the smallest networks until there are no more than `capacity`, if that is possible.
    pub fn limit(&mut self, capacity: usize, now_ns: u64) {
        self.capacity = capacity;
        let mut milli = self.thresh_milli.max(1);
        while self.known > capacity && milli < u64::MAX {
            self.fold(milli, now_ns);
            milli = milli.saturating_mul(2);
        }
    }

    /// Does not divide what `address` is in more than `level` times.
    pub fn keep_whole(&mut self, address: [u8; 4], level: usize, until_ns: u64) {
        let mut parts = &mut self.all;
        for (depth, byte) in address.iter().enumerate() {
            let Ok(index) = find(parts, *byte) else {
                return;
            };
            let network = &mut parts[index];
            if depth == level {
                network.whole_until_ns = until_ns;
                self.known -= network.forget_parts();
                return;
            }
            parts = &mut network.parts;
        }
    }
}

/// Returns how many networks were forgotten.
fn fold(level: &mut Level, milli: u64, now_ns: u64) -> usize {
    let folded = level.iter_mut().map(|network| {
        let little = network.rates_at(now_ns).iter().all(|rate| *rate < milli);
        match little {
            true => network.forget_parts(),
            false => fold(&mut network.parts, milli, now_ns),
        }
    });
    folded.sum()
}

fn look(level: &Level, name: &str, now_ns: u64, text: &mut Listing) {
    for network in level {
        let [sent, got] = network.rates_at(now_ns);
        if sent == 0 && got == 0 {
            continue;
        }
        let name = format!("{name}{}", network.byte);
        let line = format!("{name}\t{}\t{}\n", thousandths(sent), thousandths(got));
        if !text.add(line) {
            return;
        }
        look(&network.parts, &format!("\t{name}."), now_ns, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packets a period, so that the rate rises to 20 a second.
    fn flood(networks: &mut Networks, last: u8, periods: u64) {
        for now_ns in (0..periods).map(|n| n * 100_000_000) {
            let amount = Amount {
                value: 2,
                direction: 0,
                now_ns,
            };
            networks.add([10, 0, 0, last], &amount);
        }
    }

    #[test]
    fn no_more_than_the_capacity_are_known_and_folding_makes_room() {
        let mut networks = Networks::new(5_000, 6);
        (0..9).for_each(|last| flood(&mut networks, last, 20));
        assert_eq!(networks.known(), 6, "three networks and three hosts");
        let mut text = Listing::new(&click_core::Limits::default());
        networks.look(&mut text, 2_000_000_000);
        assert_eq!(text.finish().lines().count(), 6);
        networks.fold(1_000, 2_000_000_000);
        assert_eq!(networks.known(), 6, "they are not silent");
        networks.limit(1, 2_000_000_000);
        assert_eq!(networks.known(), 1);
        networks.limit(0, 2_000_000_000);
        assert_eq!(networks.known(), 1, "the first level stays");
    }

    #[test]
    fn what_is_kept_whole_is_divided_later() {
        let mut networks = Networks::new(5_000, 100);
        flood(&mut networks, 1, 20);
        assert_eq!(networks.known(), 4);
        networks.keep_whole([10, 0, 9, 9], 1, 1_000_000_000);
        assert_eq!(networks.known(), 2);
        networks.keep_whole([11, 0, 0, 1], 0, u64::MAX);
        flood(&mut networks, 1, 10);
        assert_eq!(networks.known(), 2);
        flood(&mut networks, 1, 13);
        assert_eq!(networks.known(), 4);
    }
}
