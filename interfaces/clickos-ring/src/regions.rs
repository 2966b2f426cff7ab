// SPDX-License-Identifier: Apache-2.0
//! The regions of one guest.
//!
//! A frame that came in by one port leaves by another without a copy of the guest.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::Mapping;
use crate::layout::Layout;
use crate::memory::Memory;

/// A region with its layout.
pub(crate) type Region<M> = (Arc<M>, Layout);

/// The regions of one guest by their numbers. It keeps none of them mapped.
pub struct Regions<M: Memory = Mapping> {
    list: Mutex<List<M>>,
}

struct List<M> {
    known: Vec<(u16, Weak<M>, Layout)>,
    /// The number that was given last.
    last: u16,
}

impl<M: Memory> Default for Regions<M> {
    fn default() -> Self {
        let (known, last) = (Vec::new(), 0);
        let list = Mutex::new(List { known, last });
        Self { list }
    }
}

impl<M: Memory> Regions<M> {
    /// A number for a new region, other than those of the others. No number comes soon again: the
    /// guest may still send from a region that is gone.
    pub fn number(&self) -> u16 {
        let mut list = self.lock();
        loop {
            list.last = list.last.wrapping_add(1).max(1);
            let last = list.last;
            if list.known.iter().all(|(number, ..)| *number != last) {
                return last;
            }
        }
    }

    /// Gives a number, from 1 on, to a region. The last one that asks has it.
    pub(crate) fn set(&self, number: u16, memory: &Arc<M>, layout: Layout) {
        let mut list = self.lock();
        list.last = list.last.max(number);
        list.known
            .retain(|(n, memory, _)| *n != number && memory.strong_count() > 0);
        if number > 0 {
            list.known.push((number, Arc::downgrade(memory), layout));
        }
    }

    /// The region of a number, while it is mapped.
    pub(crate) fn get(&self, number: u16) -> Option<Region<M>> {
        let list = self.lock();
        let mut known = list.known.iter();
        let (_, memory, layout) = known.find(|(n, ..)| *n == number)?;
        Some((memory.upgrade()?, *layout))
    }

    fn lock(&self) -> MutexGuard<'_, List<M>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
