// SPDX-License-Identifier: Apache-2.0
//! Functions of 32-bit numbers that are constant on intervals, made for fast look-ups: a tree whose nodes
//! divide the span between their first and their last step into equal cells, some for each step. A few
//! thousand steps that are spread somehow evenly are two levels deep; no distribution makes a tree
//! deeper than 32, and a level has at most six cells for each step.
use alloc::vec::Vec;

/// Nodes of more steps have twice as many cells for each.
const FEW: usize = 8;
/// Marks a root or a cell that is the number of a node, not a value.
const NODE: u32 = 1 << 31;

struct Node {
    /// The number added to a key before the shift: keys below the first step get the first cell.
    bias: i64,
    shift: u32,
    first_cell: u32,
    last: u32,
}

/// Functions, each known by its root.
#[derive(Default)]
pub struct Forest {
    nodes: Vec<Node>,
    cells: Vec<u32>,
}

impl Forest {
    /// Values are smaller than this.
    pub const MAX_VALUES: u32 = NODE;

    /// True if this is a root, not a value.
    #[inline]
    pub fn is_root(n: u32) -> bool {
        n & NODE != 0
    }

    /// The value at `key` of the function with this root; of a value, itself.
    #[inline]
    pub fn get(&self, root: u32, key: u32) -> u32 {
        let mut cell = root;
        while cell & NODE != 0 {
            let node = &self.nodes[(cell & !NODE) as usize];
            let at = (i64::from(key) + node.bias).max(0) >> node.shift;
            let at = at.min(i64::from(node.last)) as usize;
            cell = self.cells[node.first_cell as usize + at];
        }
        cell
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.cells.as_slice()) + size_of_val(self.nodes.as_slice())
    }

    /// Gives memory back that is for further functions.
    pub fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.cells.shrink_to_fit();
    }

    /// Adds a function that is `below` up to the first step; a step is where a value begins, and the
    /// value. Steps rise strictly.
    pub fn plant(&mut self, below: u32, steps: &[(u32, u32)]) -> u32 {
        let [(first, _), ..] = steps else {
            return below;
        };
        let (shift, cells) = division(steps);
        let number = index(self.nodes.len());
        let first_cell = self.cells.len();
        self.nodes.push(Node {
            bias: (1 << shift) - i64::from(*first),
            shift,
            first_cell: index(first_cell),
            last: index(cells - 1),
        });
        self.cells.resize(first_cell + cells, below);
        self.fill(first_cell + 1..first_cell + cells, steps, shift);
        NODE | number
    }

    /// Fills the cells of a node from the second on.
    fn fill(&mut self, cells: core::ops::Range<usize>, steps: &[(u32, u32)], shift: u32) {
        let mut begin = u64::from(steps[0].0);
        let (mut rest, mut value) = (steps, steps[0].1);
        for cell in cells {
            let end = begin + (1 << shift);
            let inside = rest.partition_point(|(start, _)| u64::from(*start) < end);
            let (here, behind) = rest.split_at(inside);
            let at_begin = here.first().filter(|(s, _)| u64::from(*s) == begin);
            let within = &here[usize::from(at_begin.is_some())..];
            value = at_begin.map_or(value, |(_, v)| *v);
            self.cells[cell] = self.plant(value, within);
            value = within.last().map_or(value, |(_, v)| *v);
            (rest, begin) = (behind, end);
        }
    }
}

fn index(n: usize) -> u32 {
    u32::try_from(n)
        .ok()
        .filter(|n| n & NODE == 0)
        .expect("fewer than 2 billion cells")
}

/// By how much keys are shifted, and how many cells there are, the one below the first step included.
fn division(steps: &[(u32, u32)]) -> (u32, usize) {
    let span = u64::from(steps[steps.len() - 1].0 - steps[0].0);
    let spread = if steps.len() > FEW { 4 } else { 2 };
    let most = spread * steps.len() as u64;
    let shift = (0..32)
        .find(|shift| span >> shift < most)
        .expect("there is room for a cell");
    (shift, (span >> shift) as usize + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn check(below: u32, steps: &BTreeMap<u32, u32>) -> Forest {
        let list: Vec<_> = steps.iter().map(|(s, v)| (*s, *v)).collect();
        let mut made = Forest::default();
        let root = made.plant(below, &list);
        let edges = list
            .iter()
            .flat_map(|(s, _)| [s.wrapping_sub(1), *s, s.wrapping_add(1)]);
        for key in edges.chain([0, 1, 1 << 16, u32::MAX]) {
            let want = steps.range(..=key).next_back().map_or(below, |(_, v)| *v);
            assert_eq!(made.get(root, key), want, "{key}");
        }
        made
    }

    proptest! {
        #[test]
        fn looks_up_what_it_was_given(
            far in prop::collection::btree_map(any::<u32>(), 0u32..9, 0..200),
            near in prop::collection::btree_map(0xac10_0000u32..0xac10_0400, 0u32..9, 0..100),
            below in 0u32..9,
        ) {
            check(below, &far);
            check(below, &near);
            check(below, &far.into_iter().chain(near).collect());
        }
    }

    #[test]
    fn edges_and_ill_natured_steps() {
        check(1, &BTreeMap::new());
        check(1, &BTreeMap::from([(0, 2), (u32::MAX, 3)]));
        let doubling = (0..32).map(|bit| (1 << bit, bit)).collect();
        let nested = check(7, &doubling);
        assert!(nested.bytes() < 8192, "{}", nested.bytes());
        let crowded = (0..5000)
            .map(|n| (n * 2, n))
            .chain([(1 << 30, 0)])
            .collect();
        assert!(check(0, &crowded).bytes() < 200_000);
    }
}
