// SPDX-License-Identifier: Apache-2.0
//! The addresses to which a balancer sends flows, by numbers that fit into a flow.
use core::net::IpAddr;

use super::ends::address;
use crate::flows::Delta;
use crate::prelude::*;
use crate::rewrite::server_pool::Served;

/// The number of an address.
pub type Target = u16;

/// Addresses at a time. Those without a flow make place.
const MAX: usize = 1024;
/// An address that was removed.
const FREE: u128 = 0;

/// The addresses.
pub struct Targets {
    /// The address that clients use.
    own: u128,
    /// Each address, and how checksums change when it replaces the own one.
    all: Vec<(u128, Delta)>,
    /// How many flows each has.
    flows: Vec<u64>,
}

/// How checksums change with an address.
fn delta(old: u128, new: u128) -> Delta {
    let words = |address: u128| Delta::of_words(&address.to_be_bytes());
    words(old).inverse().and(words(new))
}

impl Targets {
    /// None yet.
    pub fn new(own: u128) -> Self {
        Self {
            own,
            all: Vec::new(),
            flows: Vec::new(),
        }
    }

    /// The address of a number, and how checksums change when it replaces the own one.
    pub fn get(&self, target: Target) -> Option<(u128, Delta)> {
        let found = self.all.get(usize::from(target)).copied();
        found.filter(|(address, _)| *address != FREE)
    }

    /// The number of an address, if it has one.
    pub fn find(&self, address: u128) -> Option<Target> {
        let at = self.all.iter().position(|(known, _)| *known == address)?;
        Target::try_from(at).ok()
    }

    /// The number of an address, which gets one; `None` if there is no place.
    pub fn number(&mut self, address: u128) -> Option<Target> {
        if address == FREE {
            return None;
        }
        if let Some(known) = self.find(address) {
            return Some(known);
        }
        let entry = (address, delta(self.own, address));
        if let Some(free) = self.find(FREE) {
            self.all[usize::from(free)] = entry;
            return Some(free);
        }
        if self.all.len() >= MAX {
            self.forget();
            let free = self.find(FREE)?;
            self.all[usize::from(free)] = entry;
            return Some(free);
        }
        self.all.push(entry);
        self.flows.push(0);
        Target::try_from(self.all.len() - 1).ok()
    }

    /// Removes the addresses without a flow.
    fn forget(&mut self) {
        for (entry, flows) in self.all.iter_mut().zip(&self.flows) {
            if *flows == 0 {
                *entry = (FREE, Delta::NONE);
            }
        }
    }

    /// A flow begins or ends.
    pub fn count(&mut self, target: Target, begins: bool) {
        if let Some(flows) = self.flows.get_mut(usize::from(target)) {
            *flows = match begins {
                true => *flows + 1,
                false => flows.saturating_sub(1),
            };
        }
    }
}

impl Served for Targets {
    fn each(&self, see: &mut dyn FnMut(IpAddr, u64)) {
        for ((number, _), flows) in self.all.iter().zip(&self.flows) {
            see(address(*number), *flows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_flow_make_place() {
        let mut targets = Targets::new(7);
        for address in 1..=MAX as u128 {
            assert_eq!(targets.number(address), Some(address as Target - 1));
            targets.count(address as Target - 1, true);
        }
        assert_eq!((targets.number(5), targets.number(FREE)), (Some(4), None));
        let more = MAX as u128 + 1;
        assert_eq!(targets.number(more), None);
        targets.count(0, false);
        targets.count(1, false);
        targets.count(Target::MAX, false);
        assert_eq!(targets.number(more), Some(0));
        targets.count(0, true);
        assert_eq!(targets.number(more + 1), Some(1));
        let address = |target| targets.get(target).map(|(address, _)| address);
        assert_eq!(
            [0, 1, 2].map(address),
            [Some(more), Some(more + 1), Some(3)]
        );
        let mut open = Vec::new();
        targets.each(&mut |_, flows| open.push(flows));
        assert_eq!(open[..3], [1, 0, 1]);
    }
}
