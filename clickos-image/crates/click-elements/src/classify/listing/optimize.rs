// SPDX-License-Identifier: Apache-2.0
//! Makes lists of steps shorter, as Click does.
use alloc::vec;
use alloc::vec::Vec;

use super::thread::thread;
use super::{Fragment, Listing, Next, Step, Test, chain};

/// Longer lists are printed as they are.
const MAX_STEPS: usize = 2048;

/// The list of rules, each of which leads to an output or to `Failure`, where the next one begins.
pub fn merged(mut rules: Vec<Fragment>) -> Listing {
    let steps: usize = rules.iter().map(Vec::len).sum();
    let small = steps <= MAX_STEPS;
    while rules.len() > 1 {
        rules = rules
            .chunks_mut(2)
            .map(|pair| one_of_two(pair, small))
            .collect();
    }
    let mut steps = rules.pop().unwrap_or_default();
    if small {
        optimize(&mut steps);
    }
    super::redirect(&mut steps, Next::Failure, Next::Drop);
    finished(steps)
}

/// The list of rules that Click makes of Classifier's patterns.
pub fn at_once(rules: Vec<Fragment>) -> Listing {
    let mut steps = super::any(rules);
    if steps.len() <= MAX_STEPS {
        optimize(&mut steps);
    }
    super::redirect(&mut steps, Next::Failure, Next::Drop);
    finished(steps)
}

fn one_of_two(pair: &mut [Fragment], small: bool) -> Fragment {
    let mut first = core::mem::take(&mut pair[0]);
    if let Some(second) = pair.get_mut(1) {
        chain(&mut first, Next::Failure, core::mem::take(second));
        if small {
            optimize(&mut first);
        }
    }
    first
}

fn optimize(steps: &mut Fragment) {
    if steps.is_empty() {
        return;
    }
    sort(steps);
    thread(steps);
    combine(steps);
    remove_unused(steps);
}

/// A list that is a single step without a test leads everywhere the same.
fn finished(steps: Vec<Step>) -> Listing {
    match steps.as_slice() {
        [] => Listing::Everything(Next::Drop),
        [only] if only.test.mask == 0 || only.next[0] == only.next[1] => {
            Listing::Everything(only.next[1])
        }
        _ => Listing::Steps(steps),
    }
}

/// For each step the one that leads there, if it is the only one.
fn only_predecessors(steps: &[Step]) -> Vec<Option<usize>> {
    let mut found = vec![None; steps.len()];
    let mut several = vec![false; steps.len()];
    for (at, step) in steps.iter().enumerate() {
        for next in step.next {
            if let Next::Step(to) = next {
                several[to] |= found[to].is_some();
                found[to] = Some(at);
            }
        }
    }
    let only = |(before, several): (Option<usize>, bool)| before.filter(|_| !several);
    found.into_iter().zip(several).map(only).collect()
}

/// In which order tests are best made: the protocol before what fragments are.
fn rank(test: &Test) -> (usize, u32, u32) {
    let offset = if test.offset == 264 { 259 } else { test.offset };
    (offset, test.mask, test.value)
}

/// Puts steps that fail or succeed alike into a common order.
pub fn sort(steps: &mut [Step]) {
    let before = only_predecessors(steps);
    let mut at = 0;
    while at < steps.len() {
        let swapped = [0, 1]
            .into_iter()
            .any(|branch| swap(steps, &before, at, branch));
        at = match before[at] {
            _ if !swapped => at + 1,
            Some(earlier) => earlier,
            None => at,
        };
    }
}

/// Swaps the tests of a step and the one behind it, if they are in the wrong order.
fn swap(steps: &mut [Step], before: &[Option<usize>], at: usize, branch: usize) -> bool {
    let Next::Step(to) = steps[at].next[branch] else {
        return false;
    };
    let (first, second) = (steps[at], steps[to]);
    // as in Click the first step of all keeps its place
    let movable = before[to].is_some_and(|b| b > 0);
    let alike = first.next[1 - branch] == second.next[1 - branch];
    if !movable || !alike || rank(&first.test) <= rank(&second.test) {
        return false;
    }
    steps[at].test = second.test;
    steps[to].test = first.test;
    true
}

/// Makes one step of two that can be tested at once.
fn combine(steps: &mut [Step]) {
    for at in (0..steps.len()).rev() {
        while generalize(steps, at) || specialize(steps, at) {}
    }
}

fn flip(step: &mut Step) {
    step.test.value ^= step.test.mask;
    step.test.short = !step.test.short;
    step.next.swap(0, 1);
}

/// Two steps that differ in one bit of their values, and lead to the same, need not look at the bit.
fn generalize(steps: &mut [Step], at: usize) -> bool {
    let Next::Step(to) = steps[at].next[0] else {
        return false;
    };
    let behind = steps[to];
    let step = &mut steps[at];
    if step.test.mask.is_power_of_two() && behind.test.is_compatible(&step.test, false) {
        flip(step);
        return false;
    }
    let differs = step.test.value ^ behind.test.value;
    let less = Test {
        mask: step.test.mask & !differs,
        value: step.test.value & !differs,
        ..step.test
    };
    let alike = step.test.offset != 0
        && behind.test.offset == step.test.offset
        && behind.test.mask == step.test.mask
        && step.test.mask != 0
        && (step.test.short || !behind.test.short)
        && step.next[1] == behind.next[1]
        && differs & differs.wrapping_sub(1) == 0
        && less.length() == step.test.length();
    if alike {
        step.test = less;
        step.next[0] = behind.next[0];
    }
    alike
}

/// Two steps of the same bytes that must both be true are one.
fn specialize(steps: &mut [Step], at: usize) -> bool {
    let Next::Step(to) = steps[at].next[1] else {
        return false;
    };
    if steps[at].next[0] == steps[to].next[1] && steps[to].test.mask.is_power_of_two() {
        flip(&mut steps[to]);
    }
    let behind = steps[to];
    let step = &mut steps[at];
    if step.next[0] != behind.next[0] || !behind.test.is_compatible(&step.test, true) {
        return false;
    }
    step.next[1] = behind.next[1];
    if step.test.mask == 0 {
        step.test.offset = behind.test.offset;
    }
    step.test.mask |= behind.test.mask;
    step.test.value |= behind.test.value;
    true
}

/// Removes steps that decide nothing, and those that nothing leads to.
fn remove_unused(steps: &mut Fragment) {
    let mut instead: Vec<Next> = (0..steps.len()).map(Next::Step).collect();
    for at in (0..steps.len()).rev() {
        for next in &mut steps[at].next {
            if let Next::Step(to) = *next {
                *next = instead[to];
            }
        }
        let [no, yes] = steps[at].next;
        if no == yes || steps[at].test.mask == 0 {
            instead[at] = yes;
        }
    }
    match instead[0] {
        Next::Step(first) => keep_reachable(steps, first),
        next => {
            let mut everything = super::constant(true);
            everything[0].next = [next; 2];
            *steps = everything;
        }
    }
}

fn keep_reachable(steps: &mut Fragment, first: usize) {
    steps[0] = steps[first];
    let mut numbers: Vec<Option<usize>> = vec![None; steps.len()];
    numbers[0] = Some(0);
    let mut kept = Vec::new();
    for at in 0..steps.len() {
        if numbers[at].is_none() {
            continue;
        }
        numbers[at] = Some(kept.len());
        for next in steps[at].next {
            if let Next::Step(to) = next {
                numbers[to] = Some(0);
            }
        }
        kept.push(steps[at]);
    }
    for next in kept.iter_mut().flat_map(|s| &mut s.next) {
        if let Next::Step(to) = *next {
            *next = Next::Step(numbers[to].expect("it was reached"));
        }
    }
    *steps = kept;
}
