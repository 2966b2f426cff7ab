// SPDX-License-Identifier: Apache-2.0
//! The start of cosmosd: guests of an earlier one are found again, half-made ones undone.

use std::sync::Arc;

use log::{error, info, warn};

use super::{destroy, fill, links, relink, save};
use crate::base::error::Result;
use crate::control;
use crate::guest::record::{Phase, Record};
use crate::guest::{Guest, State};
use crate::host::Found;
use crate::site::Site;
use crate::spec::Vif;

/// The reason of a crash between two lives of cosmosd.
const DIED_UNSEEN: &str = "ended while cosmosd was not running";
/// The reason of a crash that leaves a useless domain.
const HALF: &str = "its domain has lost its keys in the Xen store";

/// Rebuilds the table of guests from the state files and what is there.
///
/// # Errors
/// A state file that cannot be read. Trouble with one guest puts that guest in error.
pub fn recover(site: &Site) -> Result<()> {
    let mut records = site.disk.records.load_all()?;
    // Those of the pool last: one may have been taken by a half-made guest, and goes with it.
    records.sort_by_key(|record| record.phase == Phase::Pooled);
    for record in records {
        let guest = Arc::new(Guest::from_record(
            record.clone(),
            site.disk.ledgers.load(&record.uuid)?,
        ));
        site.table.restore(Arc::clone(&guest));
        let uuid = &record.uuid;
        match recover_one(site, &guest, &record) {
            Ok(()) => info!("guest {uuid}, domain {}: {:?}", record.domid, guest.state()),
            Err(e) if guest.leftovers().is_some() => {
                error!("guest {uuid}: {e}; cosmosd tries again")
            }
            Err(e) => {
                error!("guest {uuid}: {e}; destroy it");
                guest.set_state(State::Error, e.message);
            }
        }
    }
    let saved = site.table.all();
    let is_saved = |uuid: &str| {
        let mut saved = saved.iter().filter(|g| g.state() == State::Saved);
        saved.any(|guest| guest.domain.uuid.as_str() == uuid)
    };
    site.disk.saved.sweep(is_saved)
}

fn recover_one(site: &Site, guest: &Arc<Guest>, record: &Record) -> Result<()> {
    match record.phase {
        // Not attended: its console may be gone already.
        Phase::Partial => {
            warn!("guest {}: half made or half destroyed: undone", record.uuid);
            find(site, guest, record)?;
            destroy::remove(site, guest, &guest.all_parts())
        }
        Phase::Pooled => {
            let is_paused = find(site, guest, record)? == Found::Paused;
            if is_paused {
                site.host.attend(&guest.domain)?;
            }
            fill::recover_pooled(site, guest, is_paused)
        }
        Phase::Saving => {
            warn!("guest {}: save was cut short, guest continues", record.uuid);
            save::cancel_save(site, guest)?;
            site.disk.records.save(&guest.record(Phase::Complete))?;
            recover_complete(site, guest, record)
        }
        Phase::Saved => destroy::undo(site, guest, &guest.all_parts()),
        Phase::Crashed => destroy::release_dead(site, guest),
        Phase::Complete => recover_complete(site, guest, record),
    }
}

fn find(site: &Site, guest: &Guest, record: &Record) -> Result<Found> {
    match &record.instance {
        Some(instance) => site.host.adopt(&guest.domain, instance),
        None => Ok(Found::Gone),
    }
}

fn recover_complete(site: &Site, guest: &Arc<Guest>, record: &Record) -> Result<()> {
    match find(site, guest, record)? {
        Found::Gone => destroy::mark_crashed(site, guest, DIED_UNSEEN),
        Found::Half => destroy::mark_crashed(site, guest, HALF),
        found => {
            site.host.attend(&guest.domain)?;
            resume(site, guest, found)?;
        }
    }
    Ok(())
}

fn resume(site: &Site, guest: &Arc<Guest>, found: Found) -> Result<()> {
    let domain = &guest.domain;
    let state = if found == Found::Paused {
        State::Paused
    } else {
        State::Running
    };
    guest.set_state(state, "");
    site.watch(guest);
    if relink::look_for_link(site, guest) {
        let pending = guest.ledger.state().pending.clone();
        control::forget_requests(&*site.store, domain.domid, &pending)?;
    }
    let mut wanted = guest.vifs();
    wanted.retain(Vif::is_plugged);
    match site.switch.existing(&wanted) {
        // An earlier cosmosd may have been killed between its record and the switch.
        Ok(ports) if ports.len() == wanted.len() => links::set_links(site, guest),
        // They come back by `rejoin`, as soon as valed answers.
        _ => {
            warn!("guest {}: the switch lacks ports", domain.uuid);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::{pause, rejoin};
    use crate::testing::{World, of, spec, uuid};

    #[test]
    fn guests_survive_a_restart() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.create(&spec(2)).unwrap();
        pause::pause(&world.site, &of(2)).unwrap();
        world
            .store
            .put("/local/domain/1/data/clickos/0/request/9/0", ".read a.b");
        let world = world.restart();
        let state = |n| world.info(&uuid(n)).unwrap().state;
        assert_eq!((state(1), state(2)), ("running".into(), "paused".into()));
        assert!(!world.store.keys().iter().any(|key| key.contains("request")));
        assert_eq!(world.read(&uuid(1)).unwrap(), "deny all");
        assert_eq!(world.create(&spec(3)).unwrap().domid, 3);
        for n in 1..=3 {
            world.destroy(&uuid(n)).unwrap();
        }
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn half_made_guests_are_undone() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let guest = world.site.table.find(&uuid(1)).unwrap();
        world
            .site
            .disk
            .records
            .save(&guest.record(Phase::Partial))
            .unwrap();
        drop(guest);
        let world = world.restart();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn nobody_attends_to_a_guest_that_is_undone() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let guest = world.site.table.find(&uuid(1)).unwrap();
        let partial = guest.record(Phase::Partial);
        assert!(partial.instance.is_some());
        world.site.disk.records.save(&partial).unwrap();
        drop(guest);
        world.faults.fail("host.attend");
        let world = world.restart();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_domain_without_its_keys_is_destroyed() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.host.halve(1);
        let world = world.restart();
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "crashed");
        assert_eq!(info.reason, HALF);
        assert_eq!(world.host.found(1), None);
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_died_unseen_is_crashed() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.host.kill(1, false);
        let world = world.restart();
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "crashed");
        assert_eq!(info.reason, DIED_UNSEEN);
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        let world = world.restart();
        assert_eq!(world.info(&uuid(1)).unwrap().reason, DIED_UNSEEN);
    }

    #[test]
    fn a_guest_without_its_ports_waits_for_the_switch() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.switch.clear();
        let world = world.restart();
        assert_eq!(world.info(&uuid(1)).unwrap().state, "running");
        rejoin::rejoin(&world.site);
        assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g1-1"]);
        assert!(world.switch.all_up());
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn trouble_with_one_guest_does_not_hide_the_others() {
        for step in ["host.adopt", "host.attend"] {
            let world = World::new();
            world.create(&spec(1)).unwrap();
            world.faults.fail(step);
            let world = world.restart();
            assert_eq!(world.info(&uuid(1)).unwrap().state, "error");
        }
    }
}
