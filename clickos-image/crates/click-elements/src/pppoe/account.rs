// SPDX-License-Identifier: Apache-2.0
//! What a session used, and how fast it may go on.
use crate::standard::token_bucket::TokenBucket;

/// Bytes that may pass at once: those of a tenth of a second, and some packets on slow lines.
const MIN_BURST: u64 = 16_384;

/// Packets and bytes of IP in one direction.
#[derive(Default)]
pub struct Way {
    /// Packets that passed.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets beyond the rate.
    pub drops: u64,
    /// When the last one passed.
    pub passed_ns: u64,
    bucket: Option<TokenBucket>,
}

impl Way {
    /// Sets bytes a second; 0: without limit.
    pub fn set_rate(&mut self, rate: u64) {
        let burst = (rate / 10).max(MIN_BURST);
        match (rate, &mut self.bucket) {
            (0, bucket) => *bucket = None,
            (_, Some(bucket)) => bucket.assign(rate, burst),
            (_, none) => *none = Some(TokenBucket::new(rate, burst)),
        }
    }

    /// True if a packet may pass now; it is counted either way.
    pub fn admit(&mut self, bytes: usize, now_ns: u64) -> bool {
        let bytes = bytes as u64;
        if let Some(bucket) = &mut self.bucket {
            bucket.refill(now_ns);
            if bucket.tokens() < bytes {
                self.drops = self.drops.saturating_add(1);
                return false;
            }
            bucket.remove(bytes);
        }
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        self.passed_ns = now_ns;
        true
    }

    /// The counts, without the bucket.
    pub fn counts(&self) -> [u64; 3] {
        [self.packets, self.bytes, self.drops]
    }

    /// Continues from these counts.
    pub fn resume(&mut self, [packets, bytes, drops]: [u64; 3]) {
        (self.packets, self.bytes, self.drops) = (packets, bytes, drops);
    }
}

/// A session's use since it opened.
#[derive(Default)]
pub struct Account {
    /// When it opened.
    pub since_ns: u64,
    /// To the subscriber.
    pub down: Way,
    /// From it.
    pub up: Way,
}

impl Account {
    /// Begins now.
    pub fn begin(&mut self, now_ns: u64, rates: [u64; 2]) {
        self.end();
        self.since_ns = now_ns;
        self.set_rates(rates);
    }

    /// The session is not open any more. What it used of its rates counts on when it opens again.
    pub fn end(&mut self) {
        self.since_ns = 0;
        for way in [&mut self.down, &mut self.up] {
            way.resume([0; 3]);
            way.passed_ns = 0;
        }
    }

    /// When it last carried a packet, or began.
    pub fn used_ns(&self) -> u64 {
        let passed_ns = self.down.passed_ns.max(self.up.passed_ns);
        passed_ns.max(self.since_ns)
    }

    /// Sets bytes a second to the subscriber and from it.
    pub fn set_rates(&mut self, [down, up]: [u64; 2]) {
        self.down.set_rate(down);
        self.up.set_rate(up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pppoe::SECOND_NS;

    #[test]
    fn a_rate_holds_and_no_rate_is_no_limit() {
        let mut way = Way::default();
        assert!(way.admit(9_000_000, 0));
        way.set_rate(100_000);
        let passed = (0..2000u64)
            .filter(|n| way.admit(1000, n * SECOND_NS / 1000))
            .count();
        // two seconds of the rate and the burst
        assert!((210..=217).contains(&passed), "{passed}");
        assert_eq!(way.drops, 2000 - passed as u64);
        way.set_rate(0);
        assert!(way.admit(9_000_000, 0));
    }
}
