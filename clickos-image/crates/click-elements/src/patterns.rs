// SPDX-License-Identifier: Apache-2.0
//! Whether bytes contain one of many patterns, by the automaton of Aho and Corasick ("Efficient string matching",
//! CACM 1975), in about four bytes for each byte of the patterns: a state with one successor is a word, and its
//! successor is the next word.
use crate::prelude::*;
use click_core::sort;

/// Where a state is among the words.
type At = usize;

/// The lower bits of a word: where to go on after a byte that a state does not know, or for one that it knows.
const AT: u32 = (1 << 22) - 1;
/// Bits of a class of bytes above.
const CLASS: u32 = 22;
/// The kinds of states, in the highest bits. This one has one successor.
const CHAIN: u32 = 0;
/// A word for each class follows, which says where to go on.
const DENSE: u32 = 1 << 30;
/// Words for some classes follow; the class in this word is how many there are, less one.
const SPARSE: u32 = 2 << 30;
/// A pattern ends here.
const END: u32 = 3 << 30;
const KIND: u32 = 3 << 30;

/// A state is dense if it knows one of this many classes at least.
const CLASSES_PER_WORD: usize = 8;

/// The automaton.
pub struct Patterns {
    /// Bytes of a class are alike to all patterns.
    classes: [u8; 256],
    words: Vec<u32>,
}

/// The patterns are too long in sum.
#[derive(Debug)]
pub struct TooLong;

impl Patterns {
    /// Bytes that patterns of `total` bytes need at most while their automaton is made.
    pub fn most_bytes(total: usize, patterns: usize) -> usize {
        let per_state = size_of::<Node>() + 3 * size_of::<u32>() + 1;
        let per_pattern = size_of::<Vec<u8>>() + 4 * CLASSES_PER_WORD * size_of::<u32>();
        total * per_state + patterns * per_pattern + (8 << 10)
    }

    /// The automaton of patterns, none of which is empty.
    ///
    /// # Errors
    /// They are too long.
    pub fn new(patterns: &[Vec<u8>], no_case: bool) -> Result<Self, TooLong> {
        let (classes, count) = classes(patterns, no_case);
        let of_classes = |p: &Vec<u8>| p.iter().map(|b| classes[usize::from(*b)]).collect();
        let mut patterns: Vec<Vec<u8>> = patterns.iter().map(of_classes).collect();
        sort::by(&mut patterns, Ord::cmp);
        let mut trie = Trie::of(&patterns)?;
        drop(patterns);
        let order = trie.link();
        let words = trie.words(&order, count)?;
        Ok(Self { classes, words })
    }

    /// True if `data` contains a pattern.
    pub fn is_match(&self, data: &[u8]) -> bool {
        let mut at = 0;
        for byte in data {
            at = next(&self.words, at, self.classes[usize::from(*byte)]);
            if self.words[at] & KIND == END {
                return true;
            }
        }
        false
    }

    /// Bytes it takes.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.words.as_slice())
    }
}

/// The state behind a byte of this class.
#[inline]
fn next(words: &[u32], mut at: At, class: u8) -> At {
    let class = u32::from(class);
    loop {
        let word = words[at];
        let known = word >> CLASS & 0xff;
        match word & KIND {
            CHAIN if known == class => return at + 1,
            DENSE => return words[at + 1 + class as usize] as At,
            SPARSE => {
                let list = &words[at + 1..at + 2 + known as usize];
                if let Some(found) = list.iter().find(|w| *w >> CLASS == class) {
                    return (found & AT) as At;
                }
            }
            _ => {}
        }
        at = (word & AT) as At;
    }
}

/// The class of each byte, and how many classes there are.
fn classes(patterns: &[Vec<u8>], no_case: bool) -> ([u8; 256], usize) {
    let folded = |byte: u8| match no_case {
        true => byte.to_ascii_lowercase(),
        false => byte,
    };
    let mut used = [false; 256];
    for byte in patterns.iter().flatten() {
        used[usize::from(folded(*byte))] = true;
    }
    let mut count = 0;
    let number = used.map(|used| {
        count += usize::from(used);
        used.then_some(count.wrapping_sub(1) as u8)
    });
    // all other bytes are one more class, if there are any
    let class = |byte: usize| number[usize::from(folded(byte as u8))].unwrap_or(count as u8);
    (core::array::from_fn(class), (count + 1).min(256))
}

/// A state in the making.
#[derive(Clone, Default)]
struct Node {
    class: u8,
    /// A pattern ends here, or a shorter one ends with its last byte.
    is_end: bool,
    /// The number of its first successor, and of the next one of the state before; 0 without one.
    first: u32,
    sibling: u32,
    /// The state of the longest end of what was read that begins a pattern.
    fail: u32,
    /// Where its words are.
    at: u32,
}

struct Trie(Vec<Node>);

impl Trie {
    /// The states of patterns in order.
    fn of(patterns: &[Vec<u8>]) -> Result<Self, TooLong> {
        let total: usize = patterns.iter().map(Vec::len).sum();
        if total >= AT as usize {
            return Err(TooLong);
        }
        let mut nodes = Vec::with_capacity(total + 1);
        nodes.push(Node::default());
        for pattern in patterns {
            let mut at = 0;
            for class in pattern {
                // a pattern that contains another one adds nothing
                if nodes[at].is_end {
                    break;
                }
                // patterns are in order, so that the successor is the one made last
                let last = nodes[at].first;
                at = if last != 0 && nodes[last as usize].class == *class {
                    last as usize
                } else {
                    nodes.push(Node {
                        class: *class,
                        sibling: last,
                        ..Node::default()
                    });
                    nodes[at].first = (nodes.len() - 1) as u32;
                    nodes.len() - 1
                };
            }
            nodes[at].is_end = true;
        }
        Ok(Self(nodes))
    }

    fn successors(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let first = self.0[of].first as usize;
        let after = |at: &usize| Some(self.0[*at].sibling as usize).filter(|n| *n != 0);
        core::iter::successors(Some(first).filter(|n| *n != 0), after)
    }

    fn successor(&self, of: usize, class: u8) -> Option<usize> {
        self.successors(of).find(|n| self.0[*n].class == class)
    }

    /// Finds where each state fails to, shorter ones first; returns them in this order.
    fn link(&mut self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.0.len());
        order.push(0u32);
        let mut done = 0;
        while let Some(of) = order.get(done).map(|n| *n as usize) {
            done += 1;
            let mut child = self.0[of].first as usize;
            while child != 0 {
                let fail = if of == 0 { 0 } else { self.longest(of, child) };
                self.0[child].fail = fail as u32;
                if self.0[fail].is_end {
                    self.0[child].is_end = true;
                }
                if self.0[child].is_end {
                    self.0[child].first = 0;
                }
                order.push(child as u32);
                child = self.0[child].sibling as usize;
            }
        }
        order
    }

    fn longest(&self, of: usize, child: usize) -> usize {
        let mut at = self.0[of].fail as usize;
        loop {
            match self.successor(at, self.0[child].class) {
                Some(found) => return found,
                None if at == 0 => return 0,
                None => at = self.0[at].fail as usize,
            }
        }
    }

    /// True if a state has a word for each class.
    fn is_dense(&self, of: usize, classes: usize) -> bool {
        let count = self.successors(of).count();
        of == 0 || count > 1 && count * CLASSES_PER_WORD >= classes
    }

    /// All states as words; `order` has shorter ones first.
    fn words(&mut self, order: &[u32], classes: usize) -> Result<Vec<u32>, TooLong> {
        // the only successor of a state is behind it
        let (mut len, mut open) = (0, Vec::from([0usize]));
        while let Some(mut of) = open.pop() {
            loop {
                self.0[of].at = len as u32;
                let count = self.successors(of).count();
                len += match count {
                    _ if self.is_dense(of, classes) => 1 + classes,
                    0 | 1 => 1,
                    more => 1 + more,
                };
                match count {
                    1 if of != 0 => of = self.0[of].first as usize,
                    _ => break,
                }
            }
            open.extend(self.successors(of));
        }
        if len >= AT as usize {
            return Err(TooLong);
        }
        let mut words = vec![0u32; len];
        for of in order.iter().map(|n| *n as usize) {
            let node = &self.0[of];
            let (at, fail) = (node.at as At, self.0[node.fail as usize].at);
            let word = |n: usize| u32::from(self.0[n].class) << CLASS;
            let mut list = self.successors(of);
            if node.is_end {
                words[at] = END;
            } else if self.is_dense(of, classes) {
                words[at] = DENSE;
                for class in 0..classes {
                    let other = if of == 0 {
                        0
                    } else {
                        next(&words, fail as At, class as u8)
                    };
                    words[at + 1 + class] = other as u32;
                }
                for n in list {
                    words[at + 1 + usize::from(self.0[n].class)] = self.0[n].at;
                }
            } else if let (Some(only), None) = (list.next(), list.next()) {
                words[at] = CHAIN | word(only) | fail;
            } else {
                let mut count = 0;
                for (n, place) in self.successors(of).zip(at + 1..) {
                    words[place] = word(n) | self.0[n].at;
                    count += 1;
                }
                words[at] = SPARSE | (count - 1) << CLASS | fail;
            }
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(patterns: &[Vec<u8>], data: &[u8], no_case: bool) {
        let fold = |bytes: &[u8]| match no_case {
            true => bytes.to_ascii_lowercase(),
            false => bytes.to_vec(),
        };
        let folded = fold(data);
        let plain = patterns
            .iter()
            .any(|p| folded.windows(p.len()).any(|part| part == fold(p)));
        let made = Patterns::new(patterns, no_case).unwrap();
        assert_eq!(made.is_match(data), plain, "{patterns:?} in {data:?}");
    }

    fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
        let few = prop::collection::vec(prop::sample::select(&b"aAb"[..]), 1..most);
        prop_oneof![few, prop::collection::vec(any::<u8>(), 1..most)]
    }

    proptest! {
        #[test]
        fn finds_what_a_plain_search_finds(
            patterns in prop::collection::vec(bytes(6), 1..40), data in bytes(60), no_case: bool,
        ) {
            check(&patterns, &data, no_case);
            // the end of a pattern, and what follows it
            let mut joined = data;
            joined.extend(&patterns[0][1..]);
            joined.extend(&patterns[0]);
            check(&patterns, &joined, no_case);
        }
    }

    #[test]
    fn each_byte_of_a_pattern_takes_four_bytes() {
        let pattern = |n: u32| {
            (0..16)
                .map(|i| b'a' + ((n * 7919) >> i) as u8 % 26)
                .collect()
        };
        let patterns: Vec<Vec<u8>> = (0..400).map(pattern).collect();
        let bytes = Patterns::new(&patterns, false).unwrap().bytes();
        assert!(bytes < 6 * 400 * 16, "{bytes}");
        let all: Vec<_> = (0..=255u8).map(|b| vec![b, b]).collect();
        check(&all, b"abcdd", false);
    }
}
