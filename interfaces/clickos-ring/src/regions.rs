// SPDX-License-Identifier: Apache-2.0
//! The regions of one guest, so that a frame that came in by one port leaves by another without a
//! copy of the guest.
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::Mapping;
use crate::layout::{Layout, MOST_REGION};
use crate::memory::Memory;

/// A region with its layout.
pub(crate) type Region<M> = (Arc<M>, Layout);
/// The same, which keeps nothing mapped.
type Known<M> = (Weak<M>, Layout);

/// The regions of one guest by their numbers. It keeps none of them mapped.
pub struct Regions<M: Memory = Mapping> {
    list: Mutex<Vec<Option<Known<M>>>>,
}

impl<M: Memory> Default for Regions<M> {
    fn default() -> Self {
        let list = Mutex::new(vec![None; MOST_REGION.into()]);
        Self { list }
    }
}

impl<M: Memory> Regions<M> {
    /// Gives a number, from 1 on, to a region. The last one that asks has it.
    pub(crate) fn set(&self, number: u16, memory: &Arc<M>, layout: Layout) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::from(number).checked_sub(1);
        if let Some(place) = place.and_then(|place| list.get_mut(place)) {
            *place = Some((Arc::downgrade(memory), layout));
        }
    }

    /// The region of a number, while it is mapped.
    pub(crate) fn get(&self, number: u16) -> Option<Region<M>> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::from(number).checked_sub(1)?;
        let (memory, layout) = list.get(place)?.as_ref()?;
        Some((memory.upgrade()?, *layout))
    }
}
