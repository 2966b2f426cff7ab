// SPDX-License-Identifier: Apache-2.0
//! The parts of a guest that exist, so that an undo removes them and no others.

use super::Guest;
use crate::spec::{Uuid, Vif};

/// The parts of a guest that exist and have to be undone.
#[derive(Debug, Clone, Default)]
pub struct CreatedParts {
    pub prepared: bool,
    pub ports: Vec<Vif>,
    pub spawned: bool,
}

impl CreatedParts {
    /// Everything there can be of a guest.
    pub fn all(guest: &Guest) -> Self {
        Self {
            prepared: true,
            ports: in_switch(&guest.domain.uuid, &guest.vifs()),
            spawned: true,
        }
    }
}

/// Interfaces by the names of their ports in the switch.
pub fn in_switch(guest: &Uuid, vifs: &[Vif]) -> Vec<Vif> {
    vifs.iter().map(|vif| vif.in_switch(guest)).collect()
}
