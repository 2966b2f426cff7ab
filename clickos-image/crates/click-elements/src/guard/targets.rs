// SPDX-License-Identifier: Apache-2.0
//! The addresses to which a balancer sends flows, by numbers that fit into a flow.
use crate::flows::Delta;
use crate::prelude::*;

/// The number of an address.
pub type Target = u16;

/// Addresses at a time. Those without a flow make place.
const MOST: usize = 1024;
/// An address that was removed.
const FREE: u128 = 0;

/// The addresses.
pub struct Targets {
    /// The address that clients use.
    own: u128,
    /// Each address, and how checksums change when it replaces the own one.
    all: Vec<(u128, Delta)>,
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

    /// True if an address needs a place and all are taken.
    pub fn lacks_place(&self, address: u128) -> bool {
        self.all.len() >= MOST && [address, FREE].iter().all(|n| self.find(*n).is_none())
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
        if self.all.len() >= MOST {
            return None;
        }
        self.all.push(entry);
        Target::try_from(self.all.len() - 1).ok()
    }

    /// Removes the addresses without a flow.
    pub fn keep(&mut self, used: impl Iterator<Item = Target>) {
        let mut is_used = vec![false; self.all.len()];
        for target in used {
            if let Some(is_used) = is_used.get_mut(usize::from(target)) {
                *is_used = true;
            }
        }
        for (entry, is_used) in self.all.iter_mut().zip(is_used) {
            if !is_used {
                *entry = (FREE, Delta::NONE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_flow_make_place() {
        let mut targets = Targets::new(7);
        for address in 1..=MOST as u128 {
            assert_eq!(targets.number(address), Some(address as Target - 1));
        }
        assert_eq!((targets.number(5), targets.number(FREE)), (Some(4), None));
        let more = MOST as u128 + 1;
        assert!(targets.lacks_place(more) && !targets.lacks_place(5));
        assert_eq!(targets.number(more), None);
        targets.keep([4, 6, Target::MAX].into_iter());
        assert!(!targets.lacks_place(more));
        assert_eq!(targets.number(more), Some(0));
        let address = |target| targets.get(target).map(|(address, _)| address);
        let found = [0, 1, 4, 6].map(address);
        assert_eq!(found, [Some(more), None, Some(5), Some(7)]);
    }
}
