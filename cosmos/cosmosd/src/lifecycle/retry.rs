// SPDX-License-Identifier: Apache-2.0
//! Undoings that failed are tried again: valed may have been away, or the Xen store.

use std::sync::Arc;
use std::time::Duration;

use log::{debug, info};

use super::destroy;
use crate::guest::{Guest, State};
use crate::site::Site;

const PAUSE: Duration = Duration::from_secs(5);

/// Tries again for as long as the daemon lives.
pub fn retry_loop(site: &Site) {
    loop {
        std::thread::sleep(PAUSE);
        retry(site);
    }
}

/// Tries each undoing that failed once more.
pub fn retry(site: &Site) {
    for guest in site.table.all() {
        retry_one(site, &guest);
    }
}

fn retry_one(site: &Site, guest: &Arc<Guest>) {
    if guest.leftovers().is_none() {
        return; // Without waiting for the owner of a guest that has no trouble.
    }
    let _owner = guest.lock_lifecycle();
    let Some(made) = guest.leftovers().filter(|_| site.table.is_current(guest)) else {
        return;
    };
    let undone = match guest.state() {
        State::Error => destroy::remove(site, guest, &made),
        State::Crashed => destroy::release_dead(site, guest),
        _ => return,
    };
    let uuid = &guest.domain.uuid;
    match undone {
        Ok(()) => info!("guest {uuid}: cleanup complete"),
        Err(e) => debug!("guest {uuid}: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::retry;
    use crate::testing::{World, spec, uuid};

    #[test]
    fn what_a_destruction_left_goes_when_it_can() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.faults.fail("switch.remove vale0:g1-0");
        world.destroy(&uuid(1)).unwrap_err();
        retry(&world.site);
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "error");
        assert_eq!(world.switch.ports(), ["vale0:g1-0"]);
        world.faults.mend();
        retry(&world.site);
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_dead_guest_stays_crashed_while_its_ports_are_removed() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.host.kill(1, false);
        world.faults.fail("switch.remove vale0:g1-1");
        let world = world.restart();
        assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        world.faults.mend();
        retry(&world.site);
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "crashed");
    }

    #[test]
    fn a_failed_creation_removes_no_more_than_it_made() {
        let world = World::new();
        world.switch.put("vale0:g1-0");
        world.faults.fail("host.remove_console");
        assert!(world.create(&spec(1)).is_err());
        world.faults.mend();
        retry(&world.site);
        assert_eq!(world.remains(), ["vale0:g1-0"]);
    }
}
