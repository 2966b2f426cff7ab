// SPDX-License-Identifier: Apache-2.0
//! How much each VLAN holds of what all share.
use crate::prelude::*;

/// What the flows of a VLAN hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    pub flows: u32,
    pub bytes: usize,
}

/// What each VLAN holds of what all share: its senders may forge any number of hosts.
#[derive(Default)]
pub struct Vlans(Vec<Held>);

impl Vlans {
    pub fn get(&self, vlan: u16) -> Held {
        let held = self.0.get(usize::from(vlan));
        held.copied().unwrap_or_default()
    }

    pub fn get_mut(&mut self, vlan: u16) -> &mut Held {
        let place = usize::from(vlan);
        if place >= self.0.len() {
            self.0.resize(place + 1, Held::default());
        }
        &mut self.0[place]
    }
}
