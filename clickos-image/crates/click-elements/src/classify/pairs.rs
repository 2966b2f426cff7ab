// SPDX-License-Identifier: Apache-2.0
//! Functions of numbers of two bytes that are constant on intervals: a table for each first byte, equal ones kept
//! once, of which ports of some services need only a few.
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The small numbers that a first byte and each second one lead to.
type Table = [u8; 256];
/// Tables of a function at most, 16 KiB.
const MAX_TABLES: usize = 64;

/// A small number for each number of two bytes.
pub struct Numbers {
    /// For each first byte its table.
    table_of: Box<[u8; 256]>,
    tables: Vec<Table>,
}

impl Numbers {
    /// A function that is `below` up to the first step; a step is where a number begins, and the number. `None` if
    /// those are not small or would need too much memory. Steps rise strictly.
    pub fn new(below: u32, steps: &[(u32, u32)]) -> Option<Self> {
        let mut made = Self {
            table_of: Box::new([0; 256]),
            tables: Vec::new(),
        };
        let (mut begun, mut rest) = (u8::try_from(below).ok()?, steps);
        for first in 0..256 {
            let inside = rest.partition_point(|(start, _)| start >> 8 == first);
            let (here, behind) = rest.split_at(inside);
            let mut table = [begun; 256];
            for (start, number) in here {
                begun = u8::try_from(*number).ok()?;
                table[(start & 255) as usize..].fill(begun);
            }
            made.table_of[first as usize] = made.number(table)?;
            rest = behind;
        }
        Some(made)
    }

    /// The number of a table, which is added unless it is there.
    fn number(&mut self, table: Table) -> Option<u8> {
        let known = self.tables.iter().position(|t| *t == table);
        let number = known.unwrap_or(self.tables.len());
        if number == self.tables.len() {
            self.tables.push(table);
        }
        u8::try_from(number).ok().filter(|_| number < MAX_TABLES)
    }

    /// The small number for one of two bytes.
    #[inline]
    pub fn get(&self, value: u32) -> usize {
        let [.., first, second] = value.to_be_bytes();
        let table = self.table_of[usize::from(first)];
        usize::from(self.tables[usize::from(table)][usize::from(second)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_is_that_of_the_last_step(
            below in 0u32..9,
            steps in prop::collection::btree_map(
                prop_oneof![0u32..=0x1_0000, 0x1300u32..0x1600], 0u32..256, 0..25),
        ) {
            let list: Vec<_> = steps.iter().map(|(start, number)| (*start, *number)).collect();
            let made = Numbers::new(below, &list);
            let made = made.expect("at most 25 tables have steps, and 26 none");
            let edges = list.iter().flat_map(|(start, _)| start.saturating_sub(1)..start + 2);
            let of_first_bytes = (0..256).flat_map(|first| [first << 8, first << 8 | 255]);
            for value in edges.chain(of_first_bytes).filter(|value| *value <= 0xffff) {
                let want = steps.range(..=value).next_back().map_or(below, |(_, number)| *number);
                prop_assert_eq!(made.get(value), want as usize, "{}", value);
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let nothing: Vec<_> = (1..256).map(|n| (n * 256 + n, 0)).collect();
        assert_eq!(Numbers::new(0, &nothing).unwrap().tables.len(), 1);
        let ports: Vec<_> = (1..60).map(|n| (n * 256 + n, n % 2)).collect();
        assert_eq!(Numbers::new(0, &ports).unwrap().tables.len(), 61);
        let many: Vec<_> = (1..256).map(|n| (n * 256 + n, n % 2)).collect();
        assert!(Numbers::new(0, &many).is_none());
        assert!(Numbers::new(256, &[]).is_none());
        assert!(Numbers::new(0, &[(7, 256)]).is_none());
    }
}
