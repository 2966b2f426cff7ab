// SPDX-License-Identifier: Apache-2.0
//! A token bucket: tokens come in at a rate, up to a capacity, and are taken out.

/// One token; the bucket counts in billionths, so that no time is lost to rounding.
const ONE: u64 = 1_000_000_000;

/// A bucket that is full at the start.
pub struct TokenBucket {
    rate: u32,
    capacity: u32,
    level: u64,
    filled_at_ns: u64,
}

impl TokenBucket {
    /// A bucket for `rate` tokens a second; without a rate it is empty for good.
    pub fn new(rate: u32, capacity: u32) -> Self {
        let level = if rate == 0 {
            0
        } else {
            u64::from(capacity) * ONE
        };
        Self {
            rate,
            capacity,
            level,
            filled_at_ns: 0,
        }
    }

    /// Tokens a second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Changes rate and capacity; the bucket stays as full as it is.
    pub fn assign(&mut self, rate: u32, capacity: u32) {
        let full = u128::from(self.level) * u128::from(capacity);
        let level = full / u128::from(self.capacity.max(1));
        (self.rate, self.capacity) = (rate, capacity);
        self.level = u64::try_from(level).map_or(self.full(), |level| level.min(self.full()));
    }

    fn full(&self) -> u64 {
        u64::from(self.capacity) * ONE
    }

    /// Adds what has come in until now.
    pub fn refill(&mut self, now_ns: u64) {
        let elapsed = now_ns.saturating_sub(self.filled_at_ns);
        self.filled_at_ns = now_ns;
        let added = u128::from(elapsed) * u128::from(self.rate);
        let added = u64::try_from(added).unwrap_or(u64::MAX);
        self.level = self.level.saturating_add(added).min(self.full());
    }

    /// Whole tokens in it.
    pub fn tokens(&self) -> u64 {
        self.level / ONE
    }

    /// Takes tokens out, at most all.
    pub fn remove(&mut self, tokens: u64) {
        self.level = self.level.saturating_sub(tokens.saturating_mul(ONE));
    }

    /// Nanoseconds until there are so many; `None` if that never happens.
    pub fn time_until(&self, tokens: u32) -> Option<u64> {
        let missing = (u64::from(tokens) * ONE).saturating_sub(self.level);
        let possible = self.rate > 0 && tokens <= self.capacity;
        possible.then(|| missing.div_ceil(u64::from(self.rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_in_the_long_run_is_the_rate() {
        let mut bucket = TokenBucket::new(3, 1);
        let mut taken = 0;
        for step in 0..10_000 {
            bucket.refill(step * 1_000_000 + 1_000_000);
            taken += bucket.tokens();
            bucket.remove(bucket.tokens());
        }
        assert_eq!(taken, 30);
    }

    #[test]
    fn a_wait_ends_when_the_token_is_there() {
        let mut bucket = TokenBucket::new(7, 2);
        bucket.refill(ONE);
        bucket.remove(2);
        let wait = bucket.time_until(1).expect("it has a rate");
        bucket.refill(ONE + wait - 1);
        assert_eq!(bucket.tokens(), 0);
        bucket.refill(ONE + wait);
        assert_eq!(bucket.tokens(), 1);
        assert_eq!(bucket.time_until(3), None);
        assert_eq!(TokenBucket::new(0, 1).time_until(1), None);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut bucket = TokenBucket::new(u32::MAX, u32::MAX);
        bucket.refill(u64::MAX);
        bucket.remove(u64::MAX);
        bucket.assign(1, u32::MAX);
        bucket.refill(0);
        bucket.refill(u64::MAX);
        assert_eq!(bucket.tokens(), u64::from(u32::MAX));
    }
}
