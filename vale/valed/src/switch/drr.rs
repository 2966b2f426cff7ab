// SPDX-License-Identifier: Apache-2.0
//! Deficit round robin between the owners of a switch's ports, then between the ports of each owner
//! (docs/adr/0060-workers.md).
//!
//! The bytes that an owner has had are a virtual time, on a clock of bytes. It waits until the clock
//! reaches its time. The ports of an owner have a clock of their own, which continues when each of them
//! has been asked.
use crate::device::BURST;

/// Bytes that a frame costs at least: the work for a short frame.
const MIN_FRAME_COST: u64 = 512;
/// Bytes that each owner may send in a round: a burst of short frames.
const QUANTUM: u64 = MIN_FRAME_COST * BURST as u64;

/// What the switch took from a port, with each copy of flooded frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    pub frames: usize,
    pub bytes: u64,
}

impl Taken {
    fn cost(self) -> u64 {
        self.bytes.max(self.frames as u64 * MIN_FRAME_COST)
    }
}

/// A clock of bytes.
#[derive(Debug)]
struct Clock {
    now: u64,
    /// The earliest virtual time of those that have to wait.
    soonest: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            now: 0,
            soonest: u64::MAX,
        }
    }
}

impl Clock {
    /// True if the clock has reached a virtual time.
    fn is_eligible(&mut self, time: u64) -> bool {
        let may = time <= self.now;
        if !may {
            self.soonest = self.soonest.min(time);
        }
        may
    }

    /// Moves a virtual time by a cost. One that was idle has no more than one quantum left.
    fn charge(&mut self, time: &mut u64, cost: u64) {
        let since = (*time).max(self.now.saturating_sub(QUANTUM));
        *time = since + cost;
        self.soonest = self.soonest.min(*time);
    }

    /// Ends a round. If all would have to wait, the clock moves to the first.
    fn end_round(&mut self) {
        if self.soonest != u64::MAX {
            self.now = self.soonest.max(self.now + QUANTUM);
        }
        self.soonest = u64::MAX;
    }
}

/// The ports of an owner and their virtual times.
#[derive(Debug, Default)]
struct Account {
    /// None for a port without an owner's number, which is alone.
    owner: Option<u64>,
    /// The indexes of the ports with their virtual times.
    ports: Vec<(usize, u64)>,
    /// The place of the port that is asked next.
    next: usize,
    virtual_time: u64,
    clock: Clock,
}

impl Account {
    /// Asks as many ports as there are at most, while the owner has its turn. True if one had frames.
    fn serve(&mut self, clock: &mut Clock, take: &mut impl FnMut(usize) -> Taken) -> bool {
        let (mut moved, mut asked) = (false, 0);
        while asked < self.ports.len() && clock.is_eligible(self.virtual_time) {
            if self.next >= self.ports.len() {
                self.clock.end_round();
                self.next = 0;
            }
            let (index, time) = &mut self.ports[self.next];
            self.next += 1;
            // The end of a round of the ports lets the first of those that wait go on.
            if !self.clock.is_eligible(*time) {
                continue;
            }
            asked += 1;
            let taken = take(*index);
            if taken.frames > 0 {
                self.clock.charge(time, taken.cost());
                clock.charge(&mut self.virtual_time, taken.cost());
                moved = true;
            }
        }
        moved
    }
}

/// The order in which the ports of a switch are served.
#[derive(Debug, Default)]
pub struct DeficitRoundRobin {
    clock: Clock,
    accounts: Vec<Account>,
    /// The place of the account at which the next round begins.
    first: usize,
}

impl DeficitRoundRobin {
    /// Adds the port at `index`.
    pub fn add(&mut self, index: usize, owner: Option<u64>) {
        let mut accounts = self.accounts.iter_mut();
        let found = accounts.find(|account| owner.is_some() && account.owner == owner);
        match found {
            Some(account) => account.ports.push((index, account.clock.now)),
            None => self.accounts.push(Account {
                owner,
                ports: vec![(index, 0)],
                virtual_time: self.clock.now,
                ..Account::default()
            }),
        }
    }

    /// Removes the port at `index`.
    pub fn remove(&mut self, index: usize) {
        for account in &mut self.accounts {
            account.ports.retain(|(port, _)| *port != index);
        }
        self.accounts.retain(|account| !account.ports.is_empty());
    }

    /// A round: `take` takes a burst from the port of an index that has its turn. The busy owners
    /// begin the rounds by turns, since the first finds the most room. True if a port had frames.
    pub fn round(&mut self, mut take: impl FnMut(usize) -> Taken) -> bool {
        let mut moved = false;
        let first = self.first.min(self.accounts.len());
        for place in (first..self.accounts.len()).chain(0..first) {
            let served = self.accounts[place].serve(&mut self.clock, &mut take);
            if served && !moved {
                self.first = place + 1;
            }
            moved |= served;
        }
        self.clock.end_round();
        moved
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes that each of the busy ports gets, with its owner and the bytes of its bursts.
    fn served(ports: &[(Option<u64>, u64)], rounds: usize) -> Vec<u64> {
        let mut drr = DeficitRoundRobin::default();
        let mut bytes = vec![0; ports.len()];
        for (index, (owner, _)) in ports.iter().enumerate() {
            drr.add(index, *owner);
        }
        for _ in 0..rounds {
            let moved = drr.round(|index| {
                let taken = ports[index].1;
                bytes[index] += taken;
                Taken {
                    frames: 1,
                    bytes: taken,
                }
            });
            assert!(moved, "an idle round");
        }
        bytes
    }

    /// The least and the most of some figures.
    fn ends(figures: impl Iterator<Item = u64> + Clone) -> (u64, u64) {
        (figures.clone().min().unwrap(), figures.max().unwrap())
    }

    proptest! {
        /// Busy owners get the same bytes, but for one burst and the quanta of a round.
        #[test]
        fn busy_ports_get_the_same_bytes(
            bursts in prop::collection::vec(QUANTUM..3_000_000, 1..20), rounds in 1usize..500,
        ) {
            let ports: Vec<_> = bursts.iter().map(|burst| (None, *burst)).collect();
            let bytes = served(&ports, rounds);
            let (least, most) = ends(bytes.iter().copied());
            let longest = *bursts.iter().max().unwrap();
            prop_assert!(most - least <= 2 * (longest + QUANTUM), "{bytes:?}");
        }

        /// An owner of many ports gets what an owner of one gets, and shares it evenly among them.
        #[test]
        fn many_ports_of_one_owner_share_its_bytes(
            bursts in prop::collection::vec(QUANTUM..300_000, 2..12), rounds in 500usize..1000,
        ) {
            let mut ports: Vec<_> = bursts.iter().map(|burst| (Some(7), *burst)).collect();
            ports.push((None, QUANTUM));
            let bytes = served(&ports, rounds);
            let (alone, shared) = bytes.split_last().unwrap();
            let longest = *bursts.iter().max().unwrap();
            let slack = 2 * (longest + QUANTUM);
            let sum: u64 = shared.iter().sum();
            prop_assert!(sum.abs_diff(*alone) <= slack, "{sum} {alone}");
            let (least, most) = ends(shared.iter().copied());
            prop_assert!(most - least <= slack, "{bytes:?}");
        }
    }

    #[test]
    fn a_removed_port_leaves_its_turn_to_the_others() {
        let mut drr = DeficitRoundRobin::default();
        drr.add(0, Some(1));
        drr.add(1, Some(1));
        drr.add(2, None);
        let mut asked = Vec::new();
        let mut round = |drr: &mut DeficitRoundRobin| {
            asked.clear();
            drr.round(|index| {
                asked.push(index);
                Taken::default()
            });
            asked.sort_unstable();
            asked.clone()
        };
        assert_eq!(round(&mut drr), [0, 1, 2]);
        drr.remove(0);
        assert_eq!(round(&mut drr), [1, 2]);
        drr.remove(2);
        assert_eq!(round(&mut drr), [1]);
    }
}
