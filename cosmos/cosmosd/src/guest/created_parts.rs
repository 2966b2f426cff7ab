// SPDX-License-Identifier: Apache-2.0
//! The parts of a guest that exist, so that an undo removes them and no others.

use crate::spec::{Uuid, Vif};

/// The parts of a guest that exist and have to be undone.
#[derive(Debug, Clone, Default)]
pub struct CreatedParts {
    pub prepared: bool,
    pub ports: Vec<Vif>,
    pub spawned: bool,
}

/// Interfaces by the names of their ports in the switch.
pub fn in_switch(guest: &Uuid, vifs: &[Vif]) -> Vec<Vif> {
    vifs.iter().map(|vif| vif.in_switch(guest)).collect()
}
