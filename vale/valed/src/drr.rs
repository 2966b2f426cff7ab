// SPDX-License-Identifier: Apache-2.0
//! Deficit round robin between the ports of a switch (docs/adr/0060-workers.md).
//!
//! The bytes that a port has had stand as a time on a clock of bytes. A port waits until the clock
//! reaches its time.
use crate::device::BURST;

/// Bytes that a frame costs at least: the work for a short frame.
const LEAST: u64 = 512;
/// Bytes that each port may send in a round: a burst of short frames.
const QUANTUM: u64 = LEAST * BURST as u64;

/// The clock of a switch.
#[derive(Debug)]
pub struct DeficitRoundRobin {
    clock: u64,
    /// The earliest time of a port that has to wait.
    soonest: u64,
}

impl Default for DeficitRoundRobin {
    fn default() -> Self {
        Self {
            clock: 0,
            soonest: u64::MAX,
        }
    }
}

impl DeficitRoundRobin {
    /// True if a port of this time has its turn.
    pub fn allows(&mut self, time: u64) -> bool {
        let may = time <= self.clock;
        if !may {
            self.soonest = self.soonest.min(time);
        }
        may
    }

    /// Moves the time of a port that has sent a burst, whose frames have `bytes` in all. A port that was idle
    /// has no more than one quantum left.
    pub fn charge(&mut self, time: &mut u64, frames: usize, bytes: u64) {
        let since = (*time).max(self.clock.saturating_sub(QUANTUM));
        *time = since + bytes.max(frames as u64 * LEAST);
        self.soonest = self.soonest.min(*time);
    }

    /// Ends a round. If all ports would have to wait, the clock goes on to the first.
    pub fn end_round(&mut self) {
        if self.soonest != u64::MAX {
            self.clock = self.soonest.max(self.clock + QUANTUM);
        }
        self.soonest = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes that each of the busy ports gets, whose bursts have these bytes.
    fn served(bursts: &[u64], rounds: usize) -> Vec<u64> {
        let mut turns = DeficitRoundRobin::default();
        let (mut times, mut bytes) = (vec![0; bursts.len()], vec![0; bursts.len()]);
        for _ in 0..rounds {
            let before: u64 = bytes.iter().sum();
            for (n, burst) in bursts.iter().enumerate() {
                if turns.allows(times[n]) {
                    turns.charge(&mut times[n], 1, *burst);
                    bytes[n] += burst;
                }
            }
            turns.end_round();
            assert!(bytes.iter().sum::<u64>() > before, "an idle round");
        }
        bytes
    }

    proptest! {
        /// Busy ports get the same bytes, but for one burst and the quanta of a round.
        #[test]
        fn busy_ports_get_the_same_bytes(
            bursts in prop::collection::vec(QUANTUM..3_000_000, 1..20), rounds in 1usize..500,
        ) {
            let bytes = served(&bursts, rounds);
            let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
            let longest = *bursts.iter().max().unwrap();
            prop_assert!(most - least <= 2 * (longest + QUANTUM), "{bytes:?}");
        }
    }
}
