// SPDX-License-Identifier: Apache-2.0
//! How much comes in a second, averaged over about two seconds.
use crate::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// An exponentially weighted average of what comes in a second, in thousandths.
#[derive(Clone, Copy, Default)]
pub struct Average {
    milli: u64,
    period_start_ns: u64,
    in_period: u64,
}

/// Length of one sample.
const PERIOD_NS: u64 = SECOND / 10;
/// A new sample counts one sixteenth.
const WEIGHT: u64 = 16;
/// After this many empty samples nothing is left of the average.
const FORGET_PERIODS: u64 = 256;

impl Average {
    /// Notes that `amount` came in.
    pub fn add(&mut self, now_ns: u64, amount: u64) {
        self.close_periods(now_ns);
        self.in_period += amount;
    }

    fn close_periods(&mut self, now_ns: u64) {
        let periods = now_ns.saturating_sub(self.period_start_ns) / PERIOD_NS;
        if periods == 0 {
            return;
        }
        let sample = self.in_period.saturating_mul(1000 * (SECOND / PERIOD_NS));
        let before =
            self.milli / WEIGHT * (WEIGHT - 1) + self.milli % WEIGHT * (WEIGHT - 1) / WEIGHT;
        self.milli = before + sample / WEIGHT;
        for _ in 1..periods.min(FORGET_PERIODS) {
            // what never counted anything, as one direction of most networks, has nothing to forget
            if self.milli == 0 {
                break;
            }
            self.milli = self.milli * (WEIGHT - 1) / WEIGHT;
        }
        if periods > FORGET_PERIODS {
            self.milli = 0;
        }
        self.in_period = 0;
        self.period_start_ns += periods * PERIOD_NS;
    }

    /// The average, in thousandths a second.
    pub fn milli_at(mut self, now_ns: u64) -> u64 {
        self.close_periods(now_ns);
        self.milli
    }
}

/// Thousandths as a handler prints them.
pub fn decimal(milli: u64) -> Text {
    text(thousandths(milli))
}

pub fn thousandths(milli: u64) -> String {
    format!("{}.{:03}", milli / 1000, milli % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_approaches_what_comes_in_and_is_forgotten() {
        let mut rate = Average::default();
        for ms in 0..10_000 {
            rate.add(ms * 1_000_000, 5);
        }
        assert!(
            (4900..=5000).contains(&(rate.milli_at(10 * SECOND) / 1000)),
            "{}",
            rate.milli
        );
        assert_eq!(rate.milli_at(100 * SECOND), 0);
    }
}
