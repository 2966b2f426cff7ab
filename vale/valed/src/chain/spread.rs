// SPDX-License-Identifier: Apache-2.0
//! Spreads the flows of a hop over its live pairs, and keeps a flow with its pair while pairs come.
//!
//! A pair that comes wins buckets of other pairs. TCP connections that begin go to the new
//! pair, all other packets of the bucket to the old one. After a pause of the old flows the whole
//! bucket moves.
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::flow::Flow;

/// Buckets of flows.
pub const BUCKETS: usize = 256;

/// A bucket moves after a pause of its old flows of this length.
const IDLE: Duration = Duration::from_secs(30);

/// Connections that began during moves; more of them stay with the old pair.
const BEGUN_MAX: usize = 1 << 16;

/// A bucket's pairs.
struct Bucket<P> {
    /// The pair of flows that are under way.
    current: Cell<P>,
    /// The pair of flows that begin.
    wanted: P,
    /// The last packet to the current pair during a move.
    last: Cell<Instant>,
}

/// The pairs of all buckets; empty without live pairs.
pub struct Spread<P> {
    buckets: Vec<Bucket<P>>,
    /// Flows of the wanted pairs.
    begun: RefCell<FxHashSet<u64>>,
}

impl<P> Default for Spread<P> {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            begun: RefCell::default(),
        }
    }
}

impl<P: Copy> Spread<P> {
    /// Gives each bucket the pair that wins it.
    ///
    /// `renewed` finds a pair of before among the live ones. Without it, the flows of the bucket
    /// move at once.
    pub fn renew(
        &mut self,
        winner: impl Fn(usize) -> Option<P>,
        renewed: impl Fn(P) -> Option<P>,
        same: impl Fn(P, P) -> bool,
    ) {
        let now = Instant::now();
        let bucket = |n: usize| {
            let wanted = winner(n)?;
            let before = self.buckets.get(n).map(|bucket| bucket.current.get());
            let current = before.and_then(&renewed).unwrap_or(wanted);
            Some(Bucket {
                current: Cell::new(current),
                wanted,
                last: Cell::new(now),
            })
        };
        self.buckets = (0..BUCKETS).filter_map(bucket).collect();
        let moves = |b: &Bucket<P>| !same(b.current.get(), b.wanted);
        if !self.buckets.iter().any(moves) {
            self.begun.borrow_mut().clear();
        }
    }

    /// The pair of a flow.
    pub fn pair(&self, flow: Flow, same: impl Fn(P, P) -> bool) -> Option<P> {
        let bucket = self.buckets.get(flow.bucket())?;
        let current = bucket.current.get();
        match same(current, bucket.wanted) {
            true => Some(current),
            false => Some(self.moving(bucket, flow, Instant::now())),
        }
    }

    fn moving(&self, bucket: &Bucket<P>, flow: Flow, now: Instant) -> P {
        let mut begun = self.begun.borrow_mut();
        let key = flow.key();
        if begun.contains(&key) {
            return bucket.wanted;
        }
        if flow.begins && begun.len() < BEGUN_MAX {
            begun.insert(key);
            return bucket.wanted;
        }
        if now - bucket.last.get() > IDLE {
            bucket.current.set(bucket.wanted);
            return bucket.wanted;
        }
        bucket.last.set(now);
        bucket.current.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16, begins: bool) -> Flow {
        Flow {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 1, 1].into(),
            protocol: 6,
            ports: Some((port, 80)),
            begins,
        }
    }

    fn same(a: u8, b: u8) -> bool {
        a == b
    }

    /// Pair 1 alone, then pair 2 wins all buckets.
    fn moved() -> Spread<u8> {
        let mut spread = Spread::default();
        spread.renew(|_| Some(1), Some, same);
        spread.renew(|_| Some(2), Some, same);
        spread
    }

    #[test]
    fn connections_stay_and_those_that_begin_go_to_the_new_pair() {
        let spread = moved();
        for port in 1..1000 {
            assert_eq!(Some(1), spread.pair(flow(port, false), same));
        }
        for port in 1000..2000 {
            assert_eq!(Some(2), spread.pair(flow(port, true), same));
            assert_eq!(Some(2), spread.pair(flow(port, false), same));
            assert_eq!(Some(2), spread.pair(flow(port, false).reversed(), same));
        }
        assert_eq!(Some(1), spread.pair(flow(1, false), same));
    }

    #[test]
    fn a_bucket_moves_after_a_pause() {
        let spread = moved();
        let bucket = &spread.buckets[flow(1, false).bucket()];
        let now = Instant::now();
        assert_eq!(1, spread.moving(bucket, flow(1, false), now));
        assert_eq!(1, spread.moving(bucket, flow(1, false), now + IDLE));
        assert_eq!(2, spread.moving(bucket, flow(1, false), now + 3 * IDLE));
        assert_eq!(2, bucket.current.get());
    }

    #[test]
    fn the_flows_of_a_pair_that_died_move_at_once() {
        let mut spread = moved();
        spread.renew(|_| Some(2), |pair| (pair != 1).then_some(pair), same);
        assert_eq!(Some(2), spread.pair(flow(1, false), same));
        spread.renew(|_| None, |_| None, same);
        assert_eq!(None, spread.pair(flow(1, false), same));
    }

    #[test]
    fn connections_beyond_the_limit_stay_with_the_old_pair() {
        let spread = moved();
        *spread.begun.borrow_mut() = (0..BEGUN_MAX as u64).collect();
        assert_eq!(Some(1), spread.pair(flow(1, true), same));
    }
}
