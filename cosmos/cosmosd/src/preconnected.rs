// SPDX-License-Identifier: Apache-2.0
//! The preconnected vifs of a guest of the pool (docs/adr/0098-guest-pool.md).

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// MTU of a preconnected vif until it gets an address.
pub const MTU: u16 = 1500;

/// The preconnected vifs of a guest: those of the switch with the devids from 0 on, then those of stock
/// netback. A guest that was taken from the pool has addresses for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preconnected {
    pub vifs: u32,
    /// Slots of each ring of `vifs`.
    pub slots: u32,
    pub nics: u32,
}

impl Default for Preconnected {
    fn default() -> Self {
        Self {
            vifs: 0,
            slots: default_slots(),
            nics: 0,
        }
    }
}

/// The slots of a vif whose request names none.
pub fn default_slots() -> u32 {
    256
}

impl Preconnected {
    pub fn has_vif(&self, devid: u32) -> bool {
        devid < self.vifs
    }

    pub fn has_nic(&self, devid: u32) -> bool {
        self.nics().contains(&devid)
    }

    /// The devids of those of stock netback.
    pub fn nics(&self) -> Range<u32> {
        self.vifs..self.vifs + self.nics
    }
}
