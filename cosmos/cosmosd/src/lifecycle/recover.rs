// SPDX-License-Identifier: Apache-2.0
//! The start of cosmosd: guests of an earlier one are found again, half-made ones undone.

use std::sync::Arc;

use log::{error, info, warn};

use crate::control;
use crate::error::Result;
use crate::guest::Made;
use crate::guest::{Guest, State};
use crate::host::Found;
use crate::record::{Phase, Record};
use crate::spec::Vif;
use crate::toolstack::Toolstack;

/// The reason of a crash between two lives of cosmosd.
const DIED_UNSEEN: &str = "ended while cosmosd was not running";
/// The reason of a crash that leaves a useless domain.
const HALF: &str = "its domain has lost its keys in the Xen store";

impl Toolstack {
    /// Rebuilds the table of guests from the state files and what is there.
    ///
    /// # Errors
    /// A state file that cannot be read. Trouble with one guest puts that guest in error.
    pub fn recover(&self) -> Result<()> {
        let mut records = self.records.load_all()?;
        // Those of the pool last: one may have been taken by a half-made guest, and goes with it.
        records.sort_by_key(|record| record.phase == Phase::Pooled);
        for record in records {
            let guest = Arc::new(Guest::from_record(
                record.clone(),
                self.ledgers.load(&record.uuid)?,
            ));
            self.table.restore(Arc::clone(&guest));
            let uuid = &record.uuid;
            match self.recover_one(&guest, &record) {
                Ok(()) => info!("guest {uuid}, domain {}: {:?}", record.domid, guest.state()),
                Err(e) if guest.left().is_some() => {
                    error!("guest {uuid}: {e}; cosmosd tries again")
                }
                Err(e) => {
                    error!("guest {uuid}: {e}; destroy it");
                    guest.set_state(State::Error, e.message);
                }
            }
        }
        let saved = self.table.all();
        let is_saved = |uuid: &str| {
            let mut saved = saved.iter().filter(|g| g.state() == State::Saved);
            saved.any(|guest| guest.domain.uuid.as_str() == uuid)
        };
        self.saved.sweep(is_saved)
    }

    fn recover_one(&self, guest: &Arc<Guest>, record: &Record) -> Result<()> {
        match record.phase {
            // Not attended: its console may be gone already.
            Phase::Partial => {
                warn!("guest {}: half made or half destroyed: undone", record.uuid);
                self.find(guest, record)?;
                self.remove(guest, &Made::all(guest))
            }
            Phase::Pooled => {
                let is_paused = self.find(guest, record)? == Found::Paused;
                if is_paused {
                    self.host.attend(&guest.domain)?;
                }
                self.recover_pooled(guest, is_paused)
            }
            Phase::Saving => {
                warn!("guest {}: half saved: it goes on", record.uuid);
                self.cancel_save(guest)?;
                self.records.save(&guest.record(Phase::Complete))?;
                self.recover_complete(guest, record)
            }
            Phase::Saved => self.undo(guest, &Made::all(guest)),
            Phase::Crashed => self.release(guest),
            Phase::Complete => self.recover_complete(guest, record),
        }
    }

    fn find(&self, guest: &Guest, record: &Record) -> Result<Found> {
        match &record.instance {
            Some(instance) => self.host.adopt(&guest.domain, instance),
            None => Ok(Found::Gone),
        }
    }

    fn recover_complete(&self, guest: &Arc<Guest>, record: &Record) -> Result<()> {
        match self.find(guest, record)? {
            Found::Gone => self.mark_crashed(guest, DIED_UNSEEN),
            Found::Half => self.mark_crashed(guest, HALF),
            found => {
                self.host.attend(&guest.domain)?;
                self.resume(guest, found)?;
            }
        }
        Ok(())
    }

    fn resume(&self, guest: &Arc<Guest>, found: Found) -> Result<()> {
        let domain = &guest.domain;
        let state = if found == Found::Paused {
            State::Paused
        } else {
            State::Running
        };
        guest.set_state(state, "");
        self.watchers
            .insert(domain.domid, Arc::clone(&guest.signals));
        if self.look_for_link(guest) {
            let begun = guest.ledger.book().begun.clone();
            control::forget_requests(&*self.store, domain.domid, &begun)?;
        }
        let mut wanted = guest.vifs();
        wanted.retain(Vif::is_plugged);
        match self.switch.existing(&wanted) {
            // An earlier cosmosd may have been killed between its record and the switch.
            Ok(ports) if ports.len() == wanted.len() => self.set_links(guest),
            // They come back by `rejoin`, as soon as valed answers.
            _ => {
                warn!("guest {}: the switch lacks ports", domain.uuid);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, spec, uuid};
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(60);

    #[test]
    fn guests_survive_a_restart() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.toolstack.create(&spec(2)).unwrap();
        world.toolstack.pause(&uuid(2)).unwrap();
        world
            .store
            .put("/local/domain/1/data/clickos/0/request/9/0", ".read a.b");
        let world = world.restart();
        let state = |n| world.toolstack.info(&uuid(n)).unwrap().state;
        assert_eq!((state(1), state(2)), ("running".into(), "paused".into()));
        assert!(!world.store.keys().iter().any(|key| key.contains("request")));
        assert_eq!(
            world
                .toolstack
                .read(&uuid(1), 0, ("fw.config", ""), SOON)
                .unwrap(),
            "deny all"
        );
        assert_eq!(world.toolstack.create(&spec(3)).unwrap().domid, 3);
        for n in 1..=3 {
            world.toolstack.destroy(&uuid(n)).unwrap();
        }
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn half_made_guests_are_undone() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        let guest = world.toolstack.table.find(&uuid(1)).unwrap();
        world
            .toolstack
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
        world.toolstack.create(&spec(1)).unwrap();
        let guest = world.toolstack.table.find(&uuid(1)).unwrap();
        let partial = guest.record(Phase::Partial);
        assert!(partial.instance.is_some());
        world.toolstack.records.save(&partial).unwrap();
        drop(guest);
        world.faults.fail("host.attend");
        let world = world.restart();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_domain_without_its_keys_is_destroyed() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.host.halve(1);
        let world = world.restart();
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "crashed");
        assert_eq!(info.reason, HALF);
        assert_eq!(world.host.found(1), None);
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_died_unseen_is_crashed() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.host.kill(1, false);
        let world = world.restart();
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "crashed");
        assert_eq!(info.reason, DIED_UNSEEN);
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        let world = world.restart();
        assert_eq!(world.toolstack.info(&uuid(1)).unwrap().reason, DIED_UNSEEN);
    }

    #[test]
    fn a_guest_without_its_ports_waits_for_the_switch() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.switch.clear();
        let world = world.restart();
        assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "running");
        world.toolstack.rejoin();
        assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g1-1"]);
        assert!(world.switch.all_up());
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn trouble_with_one_guest_does_not_hide_the_others() {
        for step in ["host.adopt", "host.attend"] {
            let world = World::new();
            world.toolstack.create(&spec(1)).unwrap();
            world.faults.fail(step);
            let world = world.restart();
            assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "error");
        }
    }
}
