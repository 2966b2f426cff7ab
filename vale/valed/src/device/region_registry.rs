// SPDX-License-Identifier: Apache-2.0
//! The regions of each guest, so that its ports send frames that lie in each other's regions.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ring::Regions;
use vale_proto::{Kind, PortAdd};

/// A guest: its kind, and the number of its domain.
type Guest = (Kind, u16);

/// The guests with ports of version 2.
#[derive(Default)]
pub struct RegionRegistry {
    /// Every guest gets rings of version 1.
    pub(crate) copying: bool,
    regions: Mutex<HashMap<Guest, Weak<Regions>>>,
}

impl RegionRegistry {
    /// No guest yet; none gets rings above `max_version`.
    pub fn new(max_version: u32) -> Self {
        Self {
            copying: max_version == 1,
            ..Self::default()
        }
    }

    /// The highest version of rings.
    pub(crate) fn version(&self) -> u32 {
        match self.copying {
            true => 1,
            false => ring::layout::MAX_VERSION,
        }
    }

    /// The regions of the guest whose new port gets rings of version 2.
    pub(crate) fn regions_in_place(&self, add: &PortAdd) -> Option<Arc<Regions>> {
        let domain = add.in_place_domid.filter(|_| !self.copying)?;
        Some(self.regions(add.kind, domain))
    }

    /// The regions of a guest, which live as long as one of its ports.
    pub fn regions(&self, kind: Kind, domain: u16) -> Arc<Regions> {
        let mut all = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, regions| regions.strong_count() > 0);
        let known = all.get(&(kind, domain)).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let new = Arc::new(Regions::default());
            all.insert((kind, domain), Arc::downgrade(&new));
            new
        })
    }
}
