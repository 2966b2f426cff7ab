// SPDX-License-Identifier: Apache-2.0
//! The latest questions that a relay passed on, so that it returns only answers to them.
use alloc::collections::VecDeque;

/// Questions that are kept; a new one replaces the oldest.
const MOST: usize = 1024;

/// Keys of questions.
pub struct Asked<K>(VecDeque<K>);

impl<K> Default for Asked<K> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: PartialEq> Asked<K> {
    /// Notes a question.
    pub fn note(&mut self, key: K) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(key);
    }

    /// True if this was asked. A question may have several answers.
    pub fn has(&self, key: &K) -> bool {
        self.0.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut asked = Asked::default();
        (0..=MOST).for_each(|n| asked.note(n));
        assert!(!asked.has(&0));
        assert!(asked.has(&1) && asked.has(&MOST));
    }
}
