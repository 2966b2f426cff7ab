// SPDX-License-Identifier: Apache-2.0
//! The ports of guests that outlive valed: a new valed gets them again.
//!
//! Only Xen guests do. A process guest ends with the valed that made its rings.

use std::sync::Arc;

use log::{info, warn};

use crate::error::Result;
use crate::guest::{Guest, State};
use crate::spec::Vif;
use crate::toolstack::Toolstack;

impl Toolstack {
    /// Adds the ports that the switch lacks. Trouble with one guest keeps no other from it.
    pub fn rejoin(&self) {
        for guest in self.table.all() {
            self.rejoin_one(&guest)
                .unwrap_or_else(|e| warn!("guest {}: {e}", guest.domain.uuid));
        }
    }

    fn rejoin_one(&self, guest: &Arc<Guest>) -> Result<()> {
        let _owner = guest.own();
        if !matches!(guest.state(), State::Running | State::Paused) || !self.is_current(guest) {
            return Ok(());
        }
        let uuid = &guest.domain.uuid;
        let mut wanted = guest.vifs();
        wanted.retain(Vif::is_plugged);
        let there = self.switch.existing(&wanted)?;
        wanted.retain(|vif| !there.contains(vif));
        for vif in &wanted {
            self.switch.add(guest.domain.domid, vif)?;
            info!("guest {uuid}: port {} is in the switch again", vif.place());
        }
        self.set_links(guest)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{World, spec, uuid};

    #[test]
    fn ports_of_a_guest_that_outlived_the_switch_come_back() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        let before = world.switch.ports();
        world.switch.clear();
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        world.toolstack.rejoin();
        assert_eq!(world.switch.ports(), before);
        world.toolstack.rejoin();
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }
}
