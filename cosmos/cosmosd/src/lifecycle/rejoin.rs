// SPDX-License-Identifier: Apache-2.0
//! The ports of guests that outlive valed: a new valed gets them again (docs/adr/0050-survival.md).

use std::collections::HashSet;
use std::sync::Arc;

use log::{error, info, warn};

use super::{fill, links};
use crate::base::error::{Code, Result};
use crate::guest::{Guest, State};
use crate::site::Site;

/// Adds the ports that the switch lacks. Trouble with one guest keeps no other from it. Then
/// tells subscribers, who know the rules and limits of the ports.
pub fn rejoin(site: &Site) {
    let ports = match site.switch.ports() {
        Ok(ports) => ports.into_iter(),
        Err(e) => return warn!("ports of the guests: {e}"),
    };
    let there: HashSet<String> = ports.map(|p| format!("{}:{}", p.switch, p.port)).collect();
    let mut is_any_back = false;
    for guest in site.table.all() {
        match rejoin_one(site, &guest, &there) {
            Ok(is_back) => is_any_back |= is_back,
            // The switch is gone again: its next start brings the next attempt.
            Err(e) if e.code == Code::Switch => warn!("guest {}: {e}", guest.domain.uuid),
            // Its watcher tells of its death.
            Err(e) if e.code == Code::DeadGuest => info!("guest {}: {e}", guest.domain.uuid),
            Err(e) => {
                error!("guest {} is cut off: {e}; destroy it", guest.domain.uuid);
                guest.set_state(State::Error, e.message);
            }
        }
    }
    if is_any_back {
        site.health.announce();
    }
    fill::evict_disconnected(site);
}

/// True if a port came back.
fn rejoin_one(site: &Site, guest: &Arc<Guest>, there: &HashSet<String>) -> Result<bool> {
    let _owner = guest.lock_lifecycle();
    if !matches!(guest.state(), State::Running | State::Paused) || !site.table.is_current(guest) {
        return Ok(false);
    }
    let (uuid, mut is_back) = (&guest.domain.uuid, false);
    for vif in &guest.vifs() {
        if !vif.is_plugged() || there.contains(&vif.place()) {
            continue;
        }
        let rings = site.host.rings(&guest.domain, guest.rings(vif.devid))?;
        let domid = guest.domain.domid;
        match site.switch.rejoin(domid, vif, rings.as_ref()) {
            // The guest was made meanwhile.
            Err(e) if e.code == Code::Exists => {}
            done => {
                done?;
                is_back = true;
                info!("guest {uuid}: port {} is in the switch again", vif.place());
            }
        }
    }
    links::set_links(site, guest).map(|()| is_back)
}

#[cfg(test)]
mod tests {
    use super::rejoin;
    use crate::testing::{World, spec, uuid};

    #[test]
    fn a_guest_without_rings_is_in_error() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.create(&spec(2)).unwrap();
        world.switch.clear();
        world.faults.fail("host.rings 1");
        rejoin(&world.site);
        let state = |n| world.info(&uuid(n)).unwrap().state;
        assert_eq!((state(1), state(2)), ("error".into(), "running".into()));
        world.faults.mend();
        world.destroy(&uuid(1)).unwrap();
        world.destroy(&uuid(2)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn ports_of_a_guest_that_outlived_the_switch_come_back() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let before = world.switch.ports();
        world.switch.clear();
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        rejoin(&world.site);
        assert_eq!(world.switch.ports(), before);
        rejoin(&world.site);
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }
}
