// SPDX-License-Identifier: Apache-2.0
//! Token buckets: the rates of a port and its budgets for flooded frames.
use vale_proto::{Limits, Rates};

/// Nanoseconds since the forwarder started. The thread reads the clock once a round.
pub type Nanoseconds = u64;

const SECOND: u128 = 1_000_000_000;
/// A bucket holds the tokens of this time.
const DEPTH: u128 = SECOND / 100;
/// The least depth of a bucket: one burst, and the longest frame.
const LEAST_PACKETS: u64 = 64;
const LEAST_BITS: u64 = 8 * 65_600;

/// Admits a rate of events. Tokens are counted in billionths, so that short rounds lose none.
#[derive(Debug)]
struct Bucket {
    rate_per_s: u128,
    depth: u128,
    tokens: u128,
    filled: Nanoseconds,
}

impl Bucket {
    fn new(rate_per_s: u64, least: u64) -> Self {
        let rate_per_s = u128::from(rate_per_s);
        let depth = (rate_per_s * DEPTH).max(u128::from(least) * SECOND);
        Self {
            rate_per_s,
            depth,
            tokens: depth,
            filled: 0,
        }
    }

    /// The tokens at a time.
    fn level(&self, now: Nanoseconds) -> u128 {
        let elapsed = u128::from(now.saturating_sub(self.filled));
        self.depth.min(self.tokens + elapsed * self.rate_per_s)
    }

    fn holds(&mut self, amount: u64, now: Nanoseconds) -> bool {
        self.tokens = self.level(now);
        self.filled = self.filled.max(now);
        self.tokens >= u128::from(amount) * SECOND
    }

    fn take(&mut self, amount: u64) {
        self.tokens = self.tokens.saturating_sub(u128::from(amount) * SECOND);
    }
}

/// True if a bucket has tokens, or there is none.
fn would_admit(bucket: &Option<Bucket>, amount: u64, now: Nanoseconds) -> bool {
    let enough = u128::from(amount) * SECOND;
    bucket.as_ref().is_none_or(|b| b.level(now) >= enough)
}

/// Frames per second.
#[derive(Debug, Default)]
pub struct Budget(Option<Bucket>);

impl Budget {
    pub fn new(rate_per_s: Option<u64>) -> Self {
        Self(rate_per_s.map(|rate| Bucket::new(rate, LEAST_PACKETS)))
    }

    pub fn admits(&mut self, now: Nanoseconds) -> bool {
        let Some(bucket) = &mut self.0 else {
            return true;
        };
        let admitted = bucket.holds(1, now);
        if admitted {
            bucket.take(1);
        }
        admitted
    }
}

/// Packets and bits per second of one direction.
#[derive(Debug, Default)]
pub struct Meter {
    packets: Option<Bucket>,
    bits: Option<Bucket>,
}

impl Meter {
    fn new(rates: Rates) -> Self {
        let bucket = |rate: Option<u64>, least| rate.map(|rate| Bucket::new(rate, least));
        Self {
            packets: bucket(rates.packets_per_s, LEAST_PACKETS),
            bits: bucket(rates.bits_per_s, LEAST_BITS),
        }
    }

    /// True if the rates admit a frame now.
    pub fn would_admit(&self, bytes: usize, now: Nanoseconds) -> bool {
        would_admit(&self.packets, 1, now) && would_admit(&self.bits, bytes as u64 * 8, now)
    }

    /// True if the rates admit a frame, which then counts. A refused frame costs no tokens.
    pub fn admits(&mut self, bytes: usize, now: Nanoseconds) -> bool {
        let bits = bytes as u64 * 8;
        let mut buckets = [(&mut self.packets, 1), (&mut self.bits, bits)];
        let held = buckets.iter_mut().all(|(bucket, amount)| match bucket {
            Some(bucket) => bucket.holds(*amount, now),
            None => true,
        });
        if held {
            for (bucket, amount) in buckets {
                if let Some(bucket) = bucket {
                    bucket.take(amount);
                }
            }
        }
        held
    }
}

/// All limits of a port.
#[derive(Debug, Default)]
pub struct PortLimits {
    pub set: Limits,
    pub rx: Meter,
    pub tx: Meter,
    pub group: Budget,
    pub unknown: Budget,
}

impl PortLimits {
    pub fn new(limits: &Limits) -> Self {
        Self {
            set: *limits,
            rx: Meter::new(limits.rx),
            tx: Meter::new(limits.tx),
            group: Budget::new(limits.group_per_s),
            unknown: Budget::new(limits.unknown_per_s),
        }
    }

    /// True if the budgets admit a flooded frame now.
    pub fn would_flood(&self, group: bool, now: Nanoseconds) -> bool {
        let budget = if group { &self.group } else { &self.unknown };
        would_admit(&budget.0, 1, now)
    }

    /// False if every frame passes.
    pub fn limits_any(&self) -> bool {
        self.set != Limits::default()
    }

    /// True if both limit the same rates, whatever their buckets hold.
    pub fn has_rates_of(&self, other: &Self) -> bool {
        self.set == other.set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn admitted(meter: &mut Meter, bytes: usize, rounds: u64, step: Nanoseconds) -> u64 {
        let round = |n| (0..64).filter(|_| meter.admits(bytes, n * step)).count() as u64;
        (0..rounds).map(round).sum()
    }

    #[test]
    fn no_limit_admits_all() {
        assert_eq!(admitted(&mut Meter::default(), 1500, 100, 1), 6400);
    }

    #[test]
    fn the_stricter_rate_decides() {
        let mut meter = Meter::new(Rates {
            packets_per_s: Some(1_000_000),
            bits_per_s: Some(8_000_000),
        });
        // 1 MB in a second, and the bucket's depth.
        let count = admitted(&mut meter, 1000, 10_000, 100_000);
        assert!((1000..=1070).contains(&count), "{count}");
    }

    proptest! {
        /// Any pattern of time gets the rate and one depth at most, and a busy sender gets the rate.
        #[test]
        fn the_rate_holds(rate in 1u64..2_000_000, step in 1u64..1_000_000, rounds in 1u64..2000) {
            let rates = Rates { packets_per_s: Some(rate), bits_per_s: None };
            let count = admitted(&mut Meter::new(rates), 60, rounds, step);
            let earned = (rounds - 1) as f64 * step as f64 * rate as f64 / 1e9;
            let depth = (rate as f64 / 100.0).max(64.0);
            prop_assert!(count as f64 <= earned + depth + 1.0);
            let sent = rounds as f64 * 64.0;
            let refused_time = (sent - count as f64) > 0.0;
            prop_assert!(!refused_time || count as f64 >= earned.min(sent - 64.0).min(64.0 * (rounds - 1) as f64) * 0.5);
        }

        #[test]
        fn time_that_runs_back_adds_nothing(times in prop::collection::vec(0u64..1000, 1..200)) {
            let mut budget = Budget::new(Some(1));
            let count = times.iter().filter(|t| budget.admits(**t)).count();
            prop_assert!(count <= 64);
        }
    }
}
