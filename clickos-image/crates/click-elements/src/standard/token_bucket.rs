// SPDX-License-Identifier: Apache-2.0
//! A token bucket: tokens come in at a rate, up to a capacity, and are taken out.
//!
//! Like Click's it counts whole milliseconds and gives each the same share of a token, rounded down, so
//! that the same packets pass.

/// Ticks of a second.
const TICKS_PER_S: u64 = 1000;
const TICK_NS: u64 = 1_000_000_000 / TICKS_PER_S;
/// Shares of tokens that fill a bucket, unless it takes more tokens.
const FULL: u64 = u32::MAX as u64;

/// A bucket that is full at the start.
pub struct TokenBucket {
    rate: u64,
    /// Shares that fill the bucket.
    full: u64,
    /// Shares that make a token.
    scale: u64,
    /// Shares that come in with each tick.
    per_tick: u64,
    level: u64,
    filled_at: u64,
}

impl TokenBucket {
    /// A bucket for `rate` tokens a second; without a rate it is empty for good.
    pub fn new(rate: u64, capacity: u64) -> Self {
        let mut bucket = Self {
            rate: 0,
            full: FULL,
            scale: 1,
            per_tick: 0,
            level: if rate == 0 { 0 } else { FULL },
            filled_at: 0,
        };
        bucket.assign(rate, capacity);
        bucket
    }

    /// Tokens a second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Changes rate and capacity; the bucket stays as full as it is.
    pub fn assign(&mut self, rate: u64, capacity: u64) {
        // a tick's tokens have to fit
        let tokens = capacity.max(rate.div_ceil(TICKS_PER_S)).max(1);
        self.set_full(FULL.max(tokens));
        self.rate = rate;
        self.scale = self.full / tokens;
        self.per_tick = match rate {
            0 => 0,
            _ => share(rate, self.scale, TICKS_PER_S).max(1),
        };
    }

    fn set_full(&mut self, full: u64) {
        self.level = share(self.level, full, self.full);
        self.full = full;
    }

    /// Is as full as `old`.
    pub fn take_level(&mut self, old: &Self) {
        self.level = share(old.level, self.full, old.full);
        self.filled_at = old.filled_at;
    }

    /// Adds what has come in until now.
    pub fn refill(&mut self, now_ns: u64) {
        let now = now_ns / TICK_NS;
        let added = now
            .saturating_sub(self.filled_at)
            .saturating_mul(self.per_tick);
        self.filled_at = now;
        self.level = self.level.saturating_add(added).min(self.full);
    }

    /// Whole tokens in the bucket.
    pub fn tokens(&self) -> u64 {
        self.level / self.scale
    }

    /// Takes tokens out, at most all.
    pub fn remove(&mut self, tokens: u64) {
        self.level = self.level.saturating_sub(tokens.saturating_mul(self.scale));
    }

    /// When, in nanoseconds, there will be that many; `None` if that never happens.
    pub fn time_of(&self, tokens: u64) -> Option<u64> {
        let wanted = tokens.saturating_mul(self.scale);
        let possible = self.per_tick > 0 && wanted <= self.full;
        let ticks = wanted
            .saturating_sub(self.level)
            .div_ceil(self.per_tick.max(1));
        possible.then(|| (self.filled_at + ticks).saturating_mul(TICK_NS))
    }
}

/// `number` times `factor` by `divisor`. It fits wherever the bucket's fields are used so.
fn share(number: u64, factor: u64, divisor: u64) -> u64 {
    let product = u128::from(number) * u128::from(factor) / u128::from(divisor.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_comes_out_in_the_long_run_is_the_rate() {
        let mut bucket = TokenBucket::new(300, 10);
        bucket.refill(MS);
        bucket.remove(10);
        let mut taken = 0;
        for step in 2..10_002 {
            bucket.refill(step * MS);
            taken += bucket.tokens();
            bucket.remove(bucket.tokens());
        }
        // what the last ticks brought is still in it
        assert!((2998..=3000).contains(&taken), "{taken}");
    }

    #[test]
    fn a_wait_ends_when_the_token_is_there() {
        let mut bucket = TokenBucket::new(7, 2);
        bucket.refill(1000 * MS);
        bucket.remove(2);
        let time = bucket.time_of(1).expect("it has a rate");
        bucket.refill(time - 1);
        assert_eq!(bucket.tokens(), 0);
        bucket.refill(time);
        assert_eq!(bucket.tokens(), 1);
        assert_eq!(bucket.time_of(3), None);
        assert_eq!(TokenBucket::new(0, 1).time_of(1), None);
    }

    #[test]
    fn extremes_do_not_overflow() {
        for most in [u64::from(u32::MAX), u64::MAX] {
            let mut bucket = TokenBucket::new(most, most);
            bucket.refill(u64::MAX);
            bucket.remove(u64::MAX);
            bucket.assign(1, most);
            bucket.refill(0);
            bucket.refill(u64::MAX);
            // a tick brings one share at least
            let ticks = u64::MAX / TICK_NS;
            assert_eq!(bucket.tokens(), most.min(ticks / bucket.scale));
            assert!(bucket.time_of(1).is_some());
        }
    }

    #[test]
    fn a_large_bucket_stays_as_full_as_it_is() {
        let mut bucket = TokenBucket::new(100 << 30, 1 << 40);
        bucket.refill(0);
        bucket.remove(1 << 39);
        assert_eq!(bucket.tokens(), 1 << 39);
        bucket.refill(1000 * MS);
        assert_eq!(bucket.tokens(), (1 << 39) + (100 << 30) / 1000 * 1000);
        bucket.assign(100, 1000);
        assert_eq!(bucket.tokens(), 597);
        bucket.assign(100 << 30, 1 << 40);
        assert!(bucket.tokens() >> 30 >= 610);
    }
}
