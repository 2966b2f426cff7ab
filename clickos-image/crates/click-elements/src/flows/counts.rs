// SPDX-License-Identifier: Apache-2.0
//! Counts by number: numbers that are near each other share a page, and pages are found by a keyed hash.
use click_core::{memory, sort};

use super::chunks::Chunks;
use crate::prelude::*;

/// Numbers of a page.
const PAGE: u32 = 16;

/// A place in the directory: a page's number and where the page is, counted from 1.
type Place = (u32, u32);

/// Counts, of as many pages as are allowed.
pub struct Counts {
    directory: Vec<Place>,
    pages: Chunks<[u64; PAGE as usize]>,
    used: u32,
    most: u32,
    /// An odd random factor, so that senders cannot choose numbers that share a place.
    key: u64,
    distinct: u64,
    total: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self::new(1, 1)
    }
}

impl Counts {
    /// No counts; at most that many pages. `key` should be random.
    pub fn new(most: usize, key: u64) -> Self {
        Self {
            directory: vec![(0, 0); 16],
            pages: Chunks::new(),
            used: 0,
            most: u32::try_from(most).unwrap_or(u32::MAX - 1),
            key: key | 1,
            distinct: 0,
            total: 0,
        }
    }

    /// How many numbers were counted.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The place of a page, or the free one where it would be.
    #[inline]
    fn place(&self, page: u32) -> usize {
        let mask = self.directory.len() - 1;
        let product = u128::from(u64::from(page) ^ self.key >> 32) * u128::from(self.key);
        let mut place = (product >> 32) as usize & mask;
        while self.directory[place].1 != 0 && self.directory[place].0 != page {
            place = (place + 1) & mask;
        }
        place
    }

    /// The count of a number, if there is room for it.
    pub fn get(&self, number: u32) -> u64 {
        match self.directory[self.place(number / PAGE)].1.checked_sub(1) {
            Some(page) => self.pages[page][(number % PAGE) as usize],
            None => 0,
        }
    }

    /// Adds to the count of a number; false if there is no room for it.
    #[inline]
    pub fn add(&mut self, number: u32, amount: u64) -> bool {
        let place = self.place(number / PAGE);
        let page = match self.directory[place].1.checked_sub(1) {
            Some(page) => page,
            None => match self.add_page(number / PAGE) {
                Some(page) => page,
                None => return false,
            },
        };
        let count = &mut self.pages[page][(number % PAGE) as usize];
        self.distinct += u64::from(*count == 0 && amount > 0);
        *count += amount;
        self.total += amount;
        true
    }

    fn add_page(&mut self, number: u32) -> Option<u32> {
        if self.used >= self.most {
            return None;
        }
        if 2 * (self.used as usize + 1) > self.directory.len() {
            self.grow()?;
        }
        let page = self.used;
        self.pages.reach(page, &[0; PAGE as usize])?;
        self.used += 1;
        let place = self.place(number);
        self.directory[place] = (number, page + 1);
        Some(page)
    }

    /// Doubles the directory; `None` if the memory does not take it.
    fn grow(&mut self) -> Option<()> {
        let size = 2 * self.directory.len();
        let bytes = size * size_of::<Place>();
        memory::has_room(bytes + memory::RESERVE).then_some(())?;
        let old = core::mem::replace(&mut self.directory, vec![(0, 0); size]);
        for (number, page) in old.into_iter().filter(|(_, page)| *page != 0) {
            let place = self.place(number);
            self.directory[place] = (number, page);
        }
        Some(())
    }

    /// All numbers that were counted with their counts, in order.
    pub fn sorted(&self) -> Vec<(u32, u64)> {
        let mut pages: Vec<_> = self
            .directory
            .iter()
            .filter(|(_, page)| *page != 0)
            .collect();
        sort::by(&mut pages, Ord::cmp);
        let of_page = |(number, page): &Place| {
            let (first, counts) = (number * PAGE, &self.pages[page - 1]);
            (first..=first + (PAGE - 1)).zip(*counts)
        };
        let all = pages.into_iter().flat_map(of_page);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.most as usize, self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn as_a_map(adds in prop::collection::vec((prop_oneof![0u32..50, any::<u32>(), u32::MAX - 20..=u32::MAX], 0u64..3), 0..300)) {
            let (mut counts, mut model) = (Counts::new(100, 0x9e37_79b9_7f4a_7c15), BTreeMap::new());
            for (number, amount) in adds {
                if counts.add(number, amount) {
                    *model.entry(number).or_insert(0) += amount;
                } else {
                    prop_assert_eq!(counts.used, 100);
                }
            }
            model.retain(|_, count| *count > 0);
            prop_assert_eq!(counts.distinct(), model.len() as u64);
            prop_assert_eq!(counts.total(), model.values().sum::<u64>());
            model.iter().for_each(|(number, count)| assert_eq!(counts.get(*number), *count));
            prop_assert_eq!(counts.sorted(), model.into_iter().collect::<Vec<_>>());
        }
    }
}
