// SPDX-License-Identifier: Apache-2.0
//! The flows that ended last, for who remembers what flows have.
use super::id::FlowId;
use crate::prelude::*;

/// Flows that are kept.
const KEPT: usize = 1024;

/// A flow as its packets came in and as they left.
pub type Ended = [FlowId; 2];

/// Flows that have ended, since somebody asked for them.
#[derive(Default)]
pub struct Freed {
    ended: Vec<Ended>,
    /// Those that are not in the list any more.
    before: u64,
}

impl Freed {
    /// How many flows have ended.
    pub fn count(&self) -> u64 {
        self.before + self.ended.len() as u64
    }

    /// The flows that ended behind the first `seen`; `None` if some of them are not known any more.
    pub fn since(&self, seen: u64) -> Option<&[Ended]> {
        let known = seen.checked_sub(self.before)?;
        self.ended.get(usize::try_from(known).ok()?..)
    }

    /// Another flow has ended.
    pub fn add(&mut self, ids: &[FlowId; 2]) {
        if self.ended.len() == KEPT {
            self.before += KEPT as u64;
            self.ended.clear();
        }
        self.ended.push([ids[0].reverse(), ids[1].reverse()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_last_is_known_and_what_is_missing_too() {
        let mut freed = Freed::default();
        let id = |n: u16| FlowId {
            sport: n,
            ..FlowId::NONE
        };
        assert_eq!(freed.since(0), Some(&[][..]));
        for n in 0..KEPT as u16 + 3 {
            freed.add(&[id(n), id(n)]);
        }
        assert_eq!(freed.count(), KEPT as u64 + 3);
        let last = freed.since(freed.count() - 1).unwrap();
        assert_eq!(last, [[id(KEPT as u16 + 2).reverse(); 2]]);
        assert_eq!(freed.since(0), None);
        assert_eq!(freed.since(freed.count() + 1), None);
    }
}
