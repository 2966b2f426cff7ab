// SPDX-License-Identifier: Apache-2.0
//! Frames that entered a hop, and frames that left it.
//!
//! valed cuts a flow if the hop sends more of its frames than it may (docs/adr/0032-chains.md).
//!
//! Each worker counts in a row of its own, without a lock or an atomic addition. It counts a frame
//! before the hop sees it, so a frame that the hop sends always finds the frame that it is made of.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::flows::bucket_of;
use crate::clock::Nanoseconds;
use crate::mesh::MAX_WORKERS;
use crate::policy::token_bucket::Budget;

/// Parts of the flows. All flows of a part count as one.
const PARTS: usize = 32;
/// Frames per second that a hop may send by itself.
const OWN_PER_S: u64 = 64;

/// Frames that a hop sends.
#[derive(Clone, Copy)]
pub struct Leaving {
    /// The key of their flow.
    pub key: u64,
    pub frames: u64,
    /// Frames that the hop may send for each one that entered.
    pub copies: u64,
    /// They are ICMP errors, which no other frame becomes.
    pub is_error: bool,
}

/// Frames that entered a hop, and frames that left it.
#[derive(Default)]
struct Count {
    entered: AtomicU64,
    left: AtomicU64,
}

fn add(counter: &AtomicU64, frames: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(frames), Relaxed);
}

/// The counts of one worker. Only this worker changes them.
#[derive(Default)]
struct Row {
    all: Count,
    parts: [Count; PARTS],
}

/// Sums of all workers.
#[derive(Clone, Copy, Default)]
struct Sum {
    entered: u64,
    left: u64,
}

impl Sum {
    /// Frames that may still leave.
    fn credit(self, copies: u64) -> u64 {
        self.entered
            .saturating_mul(copies)
            .saturating_sub(self.left)
    }

    fn plus(self, count: &Count) -> Self {
        Self {
            entered: self.entered + count.entered.load(Relaxed),
            left: self.left + count.left.load(Relaxed),
        }
    }
}

/// The counts of a hop. All workers share them.
pub struct Balance {
    rows: [OnceLock<Box<Row>>; MAX_WORKERS],
    /// The rows from this one on are empty.
    end: AtomicUsize,
    own: Budget,
}

impl Default for Balance {
    fn default() -> Self {
        Self {
            rows: std::array::from_fn(|_| OnceLock::new()),
            end: AtomicUsize::new(0),
            own: Budget::new(Some(OWN_PER_S)),
        }
    }
}

fn part_of(key: u64) -> usize {
    bucket_of(key) % PARTS
}

/// True for frames that are no copies: of a flow that never entered the hop, or errors.
fn is_own(leaving: Leaving, flow: Sum) -> bool {
    leaving.is_error || flow.entered == 0
}

impl Balance {
    fn row(&self, worker: usize) -> &Row {
        let worker = worker % MAX_WORKERS;
        self.rows[worker].get_or_init(|| {
            self.end.fetch_max(worker + 1, Relaxed);
            Box::default()
        })
    }

    fn sum(&self, count: impl Fn(&Row) -> &Count) -> Sum {
        let rows = &self.rows[..self.end.load(Relaxed)];
        let rows = rows.iter().filter_map(OnceLock::get);
        rows.fold(Sum::default(), |sum, row| sum.plus(count(row)))
    }

    /// Counts frames of the flow with this key on their way into the hop.
    pub fn enter(&self, worker: usize, key: u64, frames: u64) {
        let row = self.row(worker);
        add(&row.all.entered, frames);
        add(&row.parts[part_of(key)].entered, frames);
    }

    /// Counts frames that the hop sends. False if the hop may not send them; then they do not count.
    ///
    /// All frames together are at most the copies of those that entered. A flow has the copies of
    /// its own frames. A hop may change flows: a flow also has the copies of flows that never left.
    pub fn leave(&self, worker: usize, leaving: Leaving, now: Nanoseconds) -> bool {
        if self.leave_as_copies(worker, leaving) {
            return true;
        }
        let flow = self.flow(leaving);
        is_own(leaving, flow) && self.own.admits(leaving.frames as usize, now)
    }

    /// The same without the rate of frames that a hop sends by itself.
    pub fn leave_as_copies(&self, worker: usize, leaving: Leaving) -> bool {
        let may = self.has_credit(leaving, self.flow(leaving));
        if may {
            let row = self.row(worker);
            add(&row.all.left, leaving.frames);
            add(&row.parts[part_of(leaving.key)].left, leaving.frames);
        }
        may
    }

    /// The same, and counts nothing.
    pub fn would_leave(&self, leaving: Leaving, now: Nanoseconds) -> bool {
        let flow = self.flow(leaving);
        let may_be_own =
            || is_own(leaving, flow) && self.own.would_admit(leaving.frames as usize, now);
        self.has_credit(leaving, flow) || may_be_own()
    }

    fn flow(&self, leaving: Leaving) -> Sum {
        let part = part_of(leaving.key);
        self.sum(|row| &row.parts[part])
    }

    fn has_credit(&self, leaving: Leaving, flow: Sum) -> bool {
        let Leaving { frames, copies, .. } = leaving;
        let credit = self.sum(|row| &row.all).credit(copies);
        let unused = || self.unused(credit, copies);
        frames <= credit && (frames <= flow.credit(copies) || frames <= unused())
    }

    /// The part of a credit that belongs to no flow that leaves the hop.
    #[cold]
    fn unused(&self, credit: u64, copies: u64) -> u64 {
        let flows = (0..PARTS).map(|part| self.sum(|row| &row.parts[part]));
        let leaving = flows.filter(|flow| flow.left > 0);
        leaving.fold(credit, |rest, flow| {
            rest.saturating_sub(flow.credit(copies))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u64 = 1 << 56;
    const B: u64 = 2 << 56;

    fn leaving(key: u64, copies: u64) -> Leaving {
        Leaving {
            key,
            frames: 1,
            copies,
            is_error: false,
        }
    }

    /// The frames that pass, of many.
    fn sent(balance: &Balance, worker: usize, leaving: Leaving, now: Nanoseconds) -> u64 {
        let all = (0..1000).filter(|_| balance.leave(worker, leaving, now));
        all.count() as u64
    }

    #[test]
    fn a_hop_may_send_as_many_frames_as_it_declares_for_each_that_entered() {
        for copies in [1, 2, 16] {
            let balance = Balance::default();
            balance.enter(0, A, 10);
            assert_eq!(sent(&balance, 0, leaving(A, copies), 0), 10 * copies);
            balance.enter(0, A, 1);
            let whole = Leaving {
                frames: copies,
                ..leaving(A, copies)
            };
            assert!(balance.leave(0, whole, 0) && !balance.leave(0, leaving(A, copies), 0));
        }
    }

    #[test]
    fn a_flow_that_the_hop_changes_has_the_frames_of_the_first_one() {
        let balance = Balance::default();
        balance.enter(0, A, 100);
        assert_eq!(sent(&balance, 0, leaving(B, 1), 0), 100 + OWN_PER_S);
        assert_eq!(sent(&balance, 0, leaving(A, 1), 0), 0, "100 are gone");
    }

    #[test]
    fn a_flow_of_too_many_frames_costs_no_other_flow_any() {
        let balance = Balance::default();
        for key in [A, B] {
            balance.enter(0, key, 1);
            assert!(balance.leave(0, leaving(key, 1), 0));
        }
        balance.enter(0, A, 50);
        balance.enter(0, B, 50);
        assert_eq!(sent(&balance, 0, leaving(B, 1), 0), 50);
        assert_eq!(sent(&balance, 0, leaving(A, 1), 0), 50);
    }

    #[test]
    fn workers_count_together() {
        let balance = Balance::default();
        balance.enter(0, A, 5);
        balance.enter(3, A, 5);
        let by = [1, 0, 3].map(|worker| sent(&balance, worker, leaving(A, 1), 0));
        assert_eq!(by, [10, 0, 0]);
    }

    #[test]
    fn a_hop_has_a_rate_for_its_own_frames_and_errors() {
        let balance = Balance::default();
        let second = 1_000_000_000;
        for now in [0, second] {
            assert_eq!(sent(&balance, 0, leaving(A, 1), now), OWN_PER_S);
        }
        balance.enter(0, A, 1);
        let error = Leaving {
            is_error: true,
            ..leaving(A, 1)
        };
        assert_eq!(sent(&balance, 0, error, 2 * second), 1 + OWN_PER_S);
        assert_eq!(sent(&balance, 0, leaving(A, 1), 4 * second), 0);
    }
}
