// SPDX-License-Identifier: Apache-2.0
//! What the relays of DHCP and of DHCPv6 share: their servers, the latest questions, the text of their faults.
use alloc::collections::VecDeque;
use core::fmt::Display;

use click_core::ArgContext;
use click_core::text::split_words;

use crate::prelude::*;

/// Servers beyond the first one.
const MAX_SERVERS: usize = 7;
/// Questions that are kept; a new one replaces the oldest.
const MAX_QUESTIONS: usize = 1024;

/// Addresses of servers beyond the first one.
pub struct Servers<A>(Vec<A>);

impl<A> Default for Servers<A> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<A: FromArg> FromArg for Servers<A> {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(&text.replace(',', " "));
        if words.len() > MAX_SERVERS {
            return Err(format!(
                "{} servers, the most is {MAX_SERVERS}",
                words.len()
            ));
        }
        let addresses = words.iter().map(|word| A::from_arg(word, at));
        addresses.collect::<Result<_, _>>().map(Self)
    }
}

impl<A: Copy + Display> Servers<A> {
    pub fn text(&self) -> String {
        let words: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        words.join(", ")
    }

    /// All servers.
    pub fn behind(&self, first: A) -> impl Iterator<Item = A> {
        core::iter::once(first).chain(self.0.iter().copied())
    }
}

/// Messages that were not relayed, a line for each fault.
pub fn drops_text(faults: &[&str], counts: &[u64]) -> String {
    let line = |(fault, count): (&&str, &u64)| format!("{count}\t{fault}\n");
    faults.iter().zip(counts).map(line).collect()
}

/// The latest questions that a relay passed on, so that it returns only answers to them.
pub struct Asked<K>(VecDeque<K>);

impl<K> Default for Asked<K> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: PartialEq> Asked<K> {
    /// Notes a question.
    pub fn note(&mut self, key: K) {
        if self.0.len() == MAX_QUESTIONS {
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
        (0..=MAX_QUESTIONS).for_each(|n| asked.note(n));
        assert!(!asked.has(&0));
        assert!(asked.has(&1) && asked.has(&MAX_QUESTIONS));
    }
}
