// SPDX-License-Identifier: Apache-2.0
//! Which number a new domain gets.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use crate::config::MAX_DOMID;

/// How long a number rests after its domain has ended: libxl refuses it for a minute.
const REST: Duration = Duration::from_secs(70);

/// The last number of three digits.
const LAST_SHORT: u16 = 999;

/// Numbers for domains, of few digits: libxl and the store list domains in messages of at most
/// 4096 bytes (docs/adr/0018-oxenstored.md). They go down, since Xen numbers those that others
/// make upwards, and libxl refuses for a minute what one of these had.
pub struct Domids {
    /// Where to begin as long as numbers of an earlier daemon may rest, which has counted from
    /// elsewhere.
    first: u16,
    alone_at: Instant,
    /// In order of their ends.
    resting: VecDeque<(Instant, u16)>,
}

impl Domids {
    pub fn new(first: u16, now: Instant) -> Self {
        Self {
            first,
            alone_at: now + REST,
            resting: VecDeque::new(),
        }
    }

    /// The domain of this number has ended.
    pub fn put_back(&mut self, domid: u16, now: Instant) {
        self.resting.push_back((now + REST, domid));
    }

    /// The next number, unless all are in use.
    pub fn next(
        &mut self,
        now: Instant,
        mut busy: HashSet<u16>,
        is_used: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        while self.resting.front().is_some_and(|(end, _)| *end <= now) {
            self.resting.pop_front();
        }
        busy.extend(self.resting.iter().map(|(_, domid)| domid));
        let is_free = |domid: &u16| !busy.contains(domid) && !is_used(*domid);
        if now < self.alone_at {
            return (self.first..=MAX_DOMID).chain(1..self.first).find(is_free);
        }
        let short = (1..=LAST_SHORT).rev();
        short.chain(LAST_SHORT + 1..=MAX_DOMID).find(is_free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_short_number_that_does_not_rest_is_next() {
        let start = Instant::now();
        let mut domids = Domids::new(40, start);
        let mut next = |now, busy: &[u16], back: &[u16]| {
            back.iter().for_each(|domid| domids.put_back(*domid, now));
            domids.next(now, busy.iter().copied().collect(), |domid| domid == 997)
        };
        assert_eq!(next(start, &[40], &[]), Some(41));
        let alone = start + REST;
        assert_eq!(next(alone, &[999], &[998]), Some(996));
        assert_eq!(next(alone + REST, &[999], &[]), Some(998));
        assert_eq!(next(alone + REST, &[998, 996], &[]), Some(999));
        let short: Vec<u16> = (1..=LAST_SHORT).collect();
        assert_eq!(next(alone + REST, &short, &[]), Some(1000));
        let all: Vec<u16> = (1..=MAX_DOMID).collect();
        assert_eq!(next(alone + REST, &all, &[]), None);
        assert_eq!(
            next(alone + REST, &all[..all.len() - 1], &[]),
            Some(MAX_DOMID)
        );
        // The last ones are followed by the first.
        let mut domids = Domids::new(MAX_DOMID, start);
        domids.put_back(MAX_DOMID, start);
        assert_eq!(domids.next(start, HashSet::new(), |_| false), Some(1));
    }
}
