// SPDX-License-Identifier: Apache-2.0
//! Sorting that takes little of a guest's image.
//!
//! The sorts of `core` are compiled again for each type and key, 2 to 10 KiB each time. Here numbers of
//! items are sorted, by one copy of that code for all; only comparing and moving is made for a type.
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sorts by what `compare` says; items that are equal keep their order.
pub fn by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if items.len() > 1 {
        let order = order(items.len(), &|a, b| compare(&items[a], &items[b]));
        arrange(items, order);
    }
}

/// Sorts by a key; items with the same key keep their order.
pub fn by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    by(items, |a, b| key(a).cmp(&key(b)));
}

/// A map or set of some items; the last of two with one key counts.
///
/// `collect` would sort the items first, and `extend` adds one after the other.
pub fn tree<T, C: Default + Extend<T>>(items: impl IntoIterator<Item = T>) -> C {
    let mut tree = C::default();
    tree.extend(items);
    tree
}

/// The numbers below `len`, sorted.
#[inline(never)]
fn order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Puts to each place the item that `order` names there, one circle of exchanges after the other.
fn arrange<T>(items: &mut [T], mut order: Vec<usize>) {
    for first in 0..order.len() {
        let mut place = first;
        loop {
            let from = core::mem::replace(&mut order[place], place);
            if from == first {
                break;
            }
            items.swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_core_does(mut items in prop::collection::vec((0u8..20, any::<u32>()), 0..200)) {
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            by_key(&mut items, |item| item.0);
            prop_assert_eq!(items, expected);
        }
    }

    #[test]
    fn the_last_of_two_values_of_a_key_is_in_the_tree() {
        let items = [(2, 'a'), (1, 'b'), (2, 'c')];
        let map: BTreeMap<_, _> = tree(items);
        assert_eq!(map, items.into_iter().collect());
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [(1, 'b'), (2, 'c')]);
    }
}
