// SPDX-License-Identifier: Apache-2.0
//! Which number a new domain gets.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use crate::config::MAX_DOMID;

/// How long a number rests after its domain has ended: libxl refuses it for a minute.
const REST: Duration = Duration::from_secs(70);

/// Numbers for domains, as low as possible: libxl and the store list domains in messages of at
/// most 4096 bytes, in which low numbers are short (docs/adr/0018-oxenstored.md).
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
        let first = if now < self.alone_at { self.first } else { 1 };
        let mut numbers = (first..=MAX_DOMID).chain(1..first);
        numbers.find(|domid| !busy.contains(domid) && !is_used(*domid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_number_that_does_not_rest_is_next() {
        let start = Instant::now();
        let mut domids = Domids::new(40, start);
        let mut next = |now, busy: &[u16], back: &[u16]| {
            back.iter().for_each(|domid| domids.put_back(*domid, now));
            domids.next(now, busy.iter().copied().collect(), |domid| domid == 3)
        };
        assert_eq!(next(start, &[40], &[]), Some(41));
        let alone = start + REST;
        assert_eq!(next(alone, &[1], &[2]), Some(4));
        assert_eq!(next(alone + REST, &[1], &[]), Some(2));
        assert_eq!(next(alone + REST, &[2, 4], &[]), Some(1));
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
