// SPDX-License-Identifier: Apache-2.0
//! IPFilter's list has steps that ask for one of many values next to each other.
use alloc::vec;
use alloc::vec::Vec;

use click_core::sort;

use super::{Listing, Next, Step};

/// The values of longer groups are sorted.
const SORTED_FROM: usize = 7;

/// The list with such steps together.
pub fn grouped(listing: Listing) -> Listing {
    let Listing::Steps(mut steps) = listing else {
        return listing;
    };
    super::optimize::sort(&mut steps);
    let order = order(&steps);
    let mut numbers = vec![0; steps.len()];
    for (number, at) in order.iter().flatten().enumerate() {
        numbers[*at] = number;
    }
    let renumbered = |next: Next| match next {
        Next::Step(to) => Next::Step(numbers[to]),
        other => other,
    };
    let mut list = Vec::new();
    for group in &order {
        let mut part: Vec<Step> = group.iter().map(|at| steps[*at]).collect();
        if part.len() >= SORTED_FROM {
            sort_values(&mut part);
        }
        for step in &mut part {
            step.next = step.next.map(renumbered);
        }
        list.extend(part);
    }
    Listing::Steps(list)
}

/// The values as numbers of Click's little-endian hosts.
fn sort_values(part: &mut [Step]) {
    let mut values: Vec<u32> = part.iter().map(|s| s.test.value).collect();
    sort::by_key(&mut values, |v| v.swap_bytes());
    part.iter_mut()
        .zip(values)
        .for_each(|(s, v)| s.test.value = v);
}

/// The numbers of the steps of each group.
fn order(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut leading = vec![0; steps.len()];
    for next in steps.iter().flat_map(|s| s.next) {
        if let Next::Step(to) = next {
            leading[to] += 1;
        }
    }
    let mut taken = vec![false; steps.len()];
    let mut groups = Vec::new();
    for at in 0..steps.len() {
        if taken[at] {
            continue;
        }
        let mut group = vec![at];
        let mut last = at;
        while let Next::Step(to) = steps[last].next[0] {
            if leading[to] != 1 || !alike(&steps[at], &steps[to]) {
                break;
            }
            taken[to] = true;
            group.push(to);
            last = to;
        }
        groups.push(group);
    }
    groups
}

fn alike(a: &Step, b: &Step) -> bool {
    a.next[1] == b.next[1] && a.test.offset == b.test.offset && a.test.mask == b.test.mask
}
