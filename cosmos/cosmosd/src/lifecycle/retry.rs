// SPDX-License-Identifier: Apache-2.0
//! Undoings that failed are tried again: valed may have been away, or the Xen store.

use std::sync::Arc;
use std::time::Duration;

use log::{debug, info};

use crate::guest::{Guest, State};
use crate::toolstack::Toolstack;

const PAUSE: Duration = Duration::from_secs(5);

impl Toolstack {
    /// Tries again for as long as the daemon lives.
    pub fn keep_retrying(&self) {
        loop {
            std::thread::sleep(PAUSE);
            self.retry();
        }
    }

    /// Tries each undoing that failed once more.
    pub fn retry(&self) {
        for guest in self.table.all() {
            self.retry_one(&guest);
        }
    }

    fn retry_one(&self, guest: &Arc<Guest>) {
        if guest.left().is_none() {
            return; // Without waiting for the owner of a guest that has no trouble.
        }
        let _owner = guest.own();
        let Some(made) = guest.left().filter(|_| self.is_current(guest)) else {
            return;
        };
        let undone = match guest.state() {
            State::Error => self.remove(guest, &made),
            State::Crashed => self.release(guest),
            _ => return,
        };
        let uuid = &guest.domain.uuid;
        match undone {
            Ok(()) => info!("guest {uuid}: no part remains now"),
            Err(e) => debug!("guest {uuid}: {e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{World, spec, uuid};

    #[test]
    fn what_a_destruction_left_goes_when_it_can() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.faults.fail("switch.remove vale0:g1-0");
        world.toolstack.destroy(&uuid(1)).unwrap_err();
        world.toolstack.retry();
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "error");
        assert_eq!(world.switch.ports(), ["vale0:g1-0"]);
        world.faults.mend();
        world.toolstack.retry();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_dead_guest_stays_crashed_while_its_ports_are_removed() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.host.kill(1, false);
        world.faults.fail("switch.remove vale0:g1-1");
        let world = world.restart();
        assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        world.faults.mend();
        world.toolstack.retry();
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "crashed");
    }

    #[test]
    fn a_failed_creation_removes_no_more_than_it_made() {
        let world = World::new();
        world.switch.put("vale0:g1-0");
        world.faults.fail("host.remove_console");
        assert!(world.toolstack.create(&spec(1)).is_err());
        world.faults.mend();
        world.toolstack.retry();
        assert_eq!(world.remains(), ["vale0:g1-0"]);
    }
}
