// SPDX-License-Identifier: Apache-2.0
//! Leads branches past steps whose outcome is known: for each step the ways to it are followed, a few at
//! most, with what the steps on them said.
use alloc::vec;
use alloc::vec::Vec;

use super::facts::Fact;
use super::{Next, Step};

/// Most paths to a step that the analysis keeps separate; of more it keeps what they have in
/// common.
const MAX_WAYS: usize = 4;

/// Facts known on one path to a step, by the numbers of the steps that gave them.
type Way = Vec<(usize, bool)>;

struct Threader<'a> {
    steps: &'a mut [Step],
    /// The first step with the same test.
    same: Vec<usize>,
    /// Bytes a packet has when it comes to a step.
    lengths: Vec<usize>,
    /// No way leads to a step without any.
    ways: Vec<Vec<Way>>,
}

/// Shortens the ways through a list of steps that lead forward only.
pub fn thread(steps: &mut [Step]) {
    let same = same(steps);
    let lengths = lengths(steps);
    let mut threader = Threader {
        ways: Vec::with_capacity(steps.len()),
        same,
        lengths,
        steps,
    };
    for at in 0..threader.steps.len() {
        let ways = threader.ways_to(at);
        threader.ways.push(ways);
        for branch in [true, false] {
            threader.shorten(at, branch);
        }
    }
}

fn same(steps: &[Step]) -> Vec<usize> {
    let mut known = alloc::collections::BTreeMap::new();
    let key = |s: &Step| (s.test.offset, s.test.mask, s.test.value, s.test.short);
    let first = |(at, s)| *known.entry(key(s)).or_insert(at);
    steps.iter().enumerate().map(first).collect()
}

fn lengths(steps: &[Step]) -> Vec<usize> {
    let mut lengths = vec![usize::MAX; steps.len()];
    lengths[0] = 0;
    for (at, step) in steps.iter().enumerate() {
        let here = lengths[at];
        let tested = here.max(step.test.length());
        // by the branch that missing bytes do not take, they are there
        for (branch, length) in [(!step.test.short, tested), (step.test.short, here)] {
            if let Next::Step(to) = step.next[usize::from(branch)] {
                lengths[to] = lengths[to].min(length);
            }
        }
    }
    lengths
}

impl Threader<'_> {
    /// The branches that lead to a step.
    fn branches_to(&self, at: usize) -> Vec<(usize, bool)> {
        let all = (0..at).flat_map(|from| [(from, false), (from, true)]);
        all.filter(|(from, is)| self.steps[*from].next[usize::from(*is)] == Next::Step(at))
            .collect()
    }

    fn ways_to(&mut self, at: usize) -> Vec<Way> {
        if at == 0 {
            return vec![Way::new()];
        }
        let branches = self.branches_to(at);
        let ways = self.ways_by(&branches);
        if ways.len() > MAX_WAYS {
            return vec![common(&ways)];
        }
        let outcomes: Vec<_> = ways.iter().map(|way| self.known(way, at)).collect();
        match outcomes.first() {
            Some(Some(is)) if outcomes.iter().all(|o| *o == Some(*is)) => {
                let next = self.steps[at].next[usize::from(*is)];
                for (from, branch) in branches {
                    self.steps[from].next[usize::from(branch)] = next;
                }
                self.forget(at);
                Vec::new()
            }
            Some(_) => ways,
            None => {
                self.forget(at);
                Vec::new()
            }
        }
    }

    /// The ways that come through branches, without those that contradict themselves.
    fn ways_by(&self, branches: &[(usize, bool)]) -> Vec<Way> {
        let mut ways = Vec::new();
        for (place, (from, is)) in branches.iter().enumerate() {
            let both = |n: usize| branches.get(n).is_some_and(|(other, _)| other == from);
            if place > 0 && both(place - 1) {
                continue;
            }
            for way in &self.ways[*from] {
                let mut way = way.clone();
                if !both(place + 1) {
                    if self.known(&way, *from) == Some(!*is) {
                        continue;
                    }
                    let number = self.same[*from];
                    way.retain(|(n, _)| *n != number);
                    way.push((number, *is));
                }
                ways.push(way);
            }
        }
        ways
    }

    /// The fact that a path gives about the test of a step itself.
    fn known(&self, way: &Way, at: usize) -> Option<bool> {
        let fact = way.iter().find(|(number, _)| *number == self.same[at])?;
        Some(fact.1)
    }

    /// Nothing leads through a step.
    fn forget(&mut self, at: usize) {
        self.steps[at].next = [Next::Drop; 2];
    }

    /// Leads a branch past the steps whose outcome is the same on all ways.
    fn shorten(&mut self, at: usize, branch: bool) {
        let next = self.steps[at].next[usize::from(branch)];
        let trails: Vec<Vec<Next>> = self.ways[at]
            .iter()
            .map(|way| self.trail(way, at, branch, next))
            .collect();
        let Some((first, others)) = trails.split_first() else {
            return;
        };
        let last = |next: &&Next| others.iter().all(|trail| trail.contains(next));
        if let Some(to) = first.iter().rev().find(last) {
            self.steps[at].next[usize::from(branch)] = *to;
        }
    }

    /// Where a branch leads, and where it may lead instead on one way.
    fn trail(&self, way: &Way, at: usize, branch: bool, next: Next) -> Vec<Next> {
        let mut trail = vec![next];
        let last = (self.same[at], branch);
        while let Some(Next::Step(to)) = trail.last().copied() {
            let facts = core::iter::once(&last).chain(way.iter().rev());
            let fact = |(number, is): &(usize, bool)| Fact {
                test: self.steps[*number].test,
                is: *is,
                length: self.lengths[*number],
            };
            let test = &self.steps[to].test;
            let Some(is) = facts.map(fact).find_map(|f| f.decides(test)) else {
                break;
            };
            trail.push(self.steps[to].next[usize::from(is)]);
        }
        trail
    }
}

/// The facts that all paths agree on.
fn common(ways: &[Way]) -> Way {
    let (first, others) = ways.split_first().expect("there are too many");
    let in_all = |fact: &&(usize, bool)| others.iter().all(|way| way.contains(fact));
    first.iter().filter(in_all).copied().collect()
}
