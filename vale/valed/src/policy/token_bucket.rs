// SPDX-License-Identifier: Apache-2.0
//! Token buckets: the rates of a port and its budgets for flooded frames. The workers of the switch
//! share the buckets of segments and mirrors.
use std::sync::atomic::{AtomicU64, Ordering};

use vale_proto::{Limits, Rates};

use crate::clock::Nanoseconds;

const SECOND: u64 = 1_000_000_000;
/// A bucket holds the tokens of this part of a second.
const DEPTH: u64 = 100;
/// The least depth of a bucket: one burst, and the longest frame.
const MIN_PACKETS: u64 = 64;
const MIN_BITS: u64 = 8 * 65_600;
/// Ticks in a nanosecond, so that the price of a bit at 100 Gb/s is no rough number. Nine years of
/// ticks fit into a word.
const TICKS: u64 = 64;
/// Binary places of a price.
const PLACES: u32 = 24;
/// Most ticks that a bucket holds: a year of its rate.
const MAX_DEPTH: u64 = 365 * 24 * 3600 * SECOND * TICKS;

/// Admits a rate of events. The state is one word: the time when the bucket is full again (ITU-T
/// I.371's generic cell rate algorithm, which is a token bucket).
#[derive(Debug)]
struct Bucket {
    /// Ticks for one token, with [`PLACES`] binary places.
    price: u64,
    /// Ticks to fill an empty bucket.
    depth: u64,
    /// The tick when the bucket is full.
    full: AtomicU64,
}

impl Bucket {
    /// The bucket holds a `burst`, if there is one, and at least `least` tokens.
    fn new(rate_per_s: u64, burst: Option<u64>, least: u64) -> Self {
        let second = u128::from(SECOND * TICKS) << PLACES;
        let price = second.div_ceil(rate_per_s.max(1).into());
        let mut this = Self {
            price: price as u64,
            depth: 0,
            full: AtomicU64::new(0),
        };
        let depth = burst.map_or(SECOND * TICKS / DEPTH, |burst| this.ticks(burst));
        this.depth = depth.max(this.ticks(least)).min(MAX_DEPTH);
        this
    }

    /// The ticks of an amount of tokens, rounded up so that no rate is exceeded.
    fn ticks(&self, amount: u64) -> u64 {
        let ticks = (u128::from(amount) * u128::from(self.price)).div_ceil(1 << PLACES);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// The time of a full bucket after `amount` tokens are gone; None if it holds fewer. A full bucket gives
    /// more tokens than it holds: otherwise the longest frames would never pass.
    fn after(&self, full: u64, amount: u64, now: Nanoseconds) -> Option<u64> {
        let now = now.saturating_mul(TICKS);
        let ticks = self.ticks(amount);
        let after = full.max(now).saturating_add(ticks);
        (after - now <= self.depth.max(ticks)).then_some(after)
    }

    /// True if the bucket has the tokens.
    fn would_admit(&self, amount: u64, now: Nanoseconds) -> bool {
        let full = self.full.load(Ordering::Relaxed);
        self.after(full, amount, now).is_some()
    }

    /// Takes tokens, if the bucket has them.
    fn take(&self, amount: u64, now: Nanoseconds) -> bool {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let taken = self
            .full
            .fetch_update(set, fetch, |full| self.after(full, amount, now));
        taken.is_ok()
    }

    /// Gives tokens of [`Self::take`] back.
    fn give_back(&self, amount: u64) {
        self.full.fetch_sub(self.ticks(amount), Ordering::Relaxed);
    }
}

/// True if a bucket has tokens, or there is none.
fn would_admit(bucket: &Option<Bucket>, amount: u64, now: Nanoseconds) -> bool {
    bucket.as_ref().is_none_or(|b| b.would_admit(amount, now))
}

fn take(bucket: &Option<Bucket>, amount: u64, now: Nanoseconds) -> bool {
    bucket.as_ref().is_none_or(|b| b.take(amount, now))
}

/// Frames per second.
#[derive(Debug, Default)]
pub struct Budget(Option<Bucket>);

impl Budget {
    pub fn new(rate_per_s: Option<u64>) -> Self {
        Self(rate_per_s.map(|rate| Bucket::new(rate, None, MIN_PACKETS)))
    }

    /// True if the budget admits a frame that becomes some frames, which then count.
    pub fn admits(&self, frames: usize, now: Nanoseconds) -> bool {
        take(&self.0, frames as u64, now)
    }

    /// True if the budget admits frames now.
    pub fn would_admit(&self, frames: usize, now: Nanoseconds) -> bool {
        would_admit(&self.0, frames as u64, now)
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
        let bucket =
            |rate: Option<u64>, burst, least| rate.map(|rate| Bucket::new(rate, burst, least));
        Self {
            packets: bucket(rates.packets_per_s, rates.burst_packets, MIN_PACKETS),
            bits: bucket(rates.bits_per_s, rates.burst_bits, MIN_BITS),
        }
    }

    /// True if the rates admit a frame now.
    pub fn would_admit(&self, bytes: usize, now: Nanoseconds) -> bool {
        would_admit(&self.packets, 1, now) && would_admit(&self.bits, bytes as u64 * 8, now)
    }

    /// True if the rates admit a frame that becomes some packets, which then count. A refused frame
    /// costs no tokens.
    pub fn admits(&self, packets: usize, bytes: usize, now: Nanoseconds) -> bool {
        let packets = packets as u64;
        if !take(&self.packets, packets, now) {
            return false;
        }
        let admitted = take(&self.bits, bytes as u64 * 8, now);
        if let (false, Some(bucket)) = (admitted, &self.packets) {
            bucket.give_back(packets);
        }
        admitted
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
        budget.would_admit(1, now)
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

    fn admitted(meter: &Meter, bytes: usize, rounds: u64, step: Nanoseconds) -> u64 {
        let round = |n| (0..64).filter(|_| meter.admits(1, bytes, n * step)).count() as u64;
        (0..rounds).map(round).sum()
    }

    #[test]
    fn no_limit_admits_all() {
        assert_eq!(admitted(&Meter::default(), 1500, 100, 1), 6400);
    }

    #[test]
    fn the_stricter_rate_decides() {
        let meter = Meter::new(Rates {
            packets_per_s: Some(1_000_000),
            bits_per_s: Some(8_000_000),
            ..Rates::default()
        });
        // 1 MB in a second, and the bucket's depth.
        let count = admitted(&meter, 1000, 10_000, 100_000);
        assert!((1000..=1070).contains(&count), "{count}");
    }

    #[test]
    fn a_burst_passes_at_one_time_and_no_more() {
        for (burst, most) in [(None, 64), (Some(1), 64), (Some(500), 500)] {
            let meter = Meter::new(Rates {
                packets_per_s: Some(10),
                burst_packets: burst,
                ..Rates::default()
            });
            let passed = (0..1000).filter(|_| meter.admits(1, 60, 0)).count();
            assert_eq!(passed, most, "{burst:?}");
        }
        let largest = Meter::new(Rates {
            bits_per_s: Some(1),
            burst_bits: Some(vale_proto::MAX_RATE),
            ..Rates::default()
        });
        assert!(largest.admits(1, 1500, 0));
    }

    proptest! {
        /// Any pattern of time gets the rate and one depth at most, and a busy sender gets the rate.
        #[test]
        fn the_rate_holds(rate in 1u64..2_000_000, step in 1u64..1_000_000, rounds in 1u64..2000) {
            let rates = Rates { packets_per_s: Some(rate), ..Rates::default() };
            let count = admitted(&Meter::new(rates), 60, rounds, step);
            let earned = (rounds - 1) as f64 * step as f64 * rate as f64 / 1e9;
            let depth = (rate as f64 / 100.0).max(64.0);
            prop_assert!(count as f64 <= earned + depth + 1.0);
            let sent = rounds as f64 * 64.0;
            let refused_time = (sent - count as f64) > 0.0;
            prop_assert!(!refused_time || count as f64 >= earned.min(sent - 64.0).min(64.0 * (rounds - 1) as f64) * 0.5);
        }

        #[test]
        fn time_that_runs_back_adds_nothing(times in prop::collection::vec(0u64..1000, 1..200)) {
            let budget = Budget::new(Some(1));
            let count = times.iter().filter(|t| budget.admits(1, **t)).count();
            prop_assert!(count <= 64);
        }
    }
}
