// SPDX-License-Identifier: Apache-2.0
//! Packets whose first fragment passed, so that the later ones take the same way.
use alloc::collections::VecDeque;

use super::seen::Fragment;

/// Fragmented packets that are known, and for how long.
const MAX: usize = 256;
const KEPT_NS: u64 = 30_000_000_000;

/// A packet whose first fragment passed.
struct Known<T> {
    first: Fragment,
    way: T,
    until_ns: u64,
}

/// The packets, each with a way.
pub struct Fragments<T>(VecDeque<Known<T>>);

impl<T> Default for Fragments<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Copy> Fragments<T> {
    /// The way of a later fragment.
    pub fn find(&self, later: &Fragment, now_ns: u64) -> Option<T> {
        let first = Fragment {
            is_first: true,
            ..*later
        };
        let mut known = self.0.iter();
        let found = known.find(|known| known.first == first && known.until_ns > now_ns);
        found.map(|known| known.way)
    }

    /// Notes the way of a first fragment.
    pub fn keep(&mut self, first: Fragment, way: T, now_ns: u64) {
        self.0
            .retain(|known| known.first != first && known.until_ns > now_ns);
        if self.0.len() == MAX {
            self.0.pop_front();
        }
        let until_ns = now_ns.saturating_add(KEPT_NS);
        self.0.push_back(Known {
            first,
            way,
            until_ns,
        });
    }
}
