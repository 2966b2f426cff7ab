// SPDX-License-Identifier: Apache-2.0
//! Saves a guest to a file, and restores it with its routers and counters.

use std::sync::Arc;

use log::{info, warn};

use crate::control;
use crate::error::{Code, Error, Result};
use crate::guest::{Guest, Made, State};
use crate::record::Phase;
use crate::spec::Uuid;
use crate::steps::Steps;
use crate::toolstack::Toolstack;

impl Toolstack {
    /// Writes a running guest's memory to a file and ends its domain; it stays listed as `saved`.
    pub fn save(&self, uuid: &Uuid) -> Result<()> {
        let guest = self.table.get(uuid)?;
        guest.check_settled()?;
        let _owner = guest.own();
        match guest.state() {
            State::Saved => return Ok(()),
            _ => guest.check_answers()?,
        }
        self.records.save(&guest.record(Phase::Saving))?;
        self.write_memory(&guest)
            .and_then(|()| self.records.save(&guest.record(Phase::Saved)))
            .inspect_err(|_| self.go_on(&guest))?;
        guest.set_state(State::Saved, "");
        self.watchers.remove(guest.domain.domid);
        self.undo(&guest, &Made::all(&guest))?;
        info!("guest {uuid} saved");
        Ok(())
    }

    fn write_memory(&self, guest: &Guest) -> Result<()> {
        let file = self.saved.create(&guest.domain.uuid)?;
        self.host.save(&guest.domain, &file)?;
        file.sync_all()
            .map_err(|e| Error::internal(format!("guest {}", guest.domain.uuid), e))
    }

    /// After a failed save: the file goes first, since the disk may be full.
    fn go_on(&self, guest: &Guest) {
        let uuid = &guest.domain.uuid;
        let removed = self.saved.remove(uuid);
        let resumed = self.cancel_save(guest);
        if let Err(e) = &resumed {
            guest.set_state(State::Error, e.message.clone());
        }
        let recorded = resumed.and_then(|()| self.records.save(&guest.record(Phase::Complete)));
        removed
            .and(recorded)
            .unwrap_or_else(|e| warn!("guest {uuid}: {e}"));
    }

    /// A guest whose save did not complete goes on, with the devices that it had.
    pub(crate) fn cancel_save(&self, guest: &Guest) -> Result<()> {
        control::withdraw_suspend(&*self.store, guest.domain.domid)?;
        self.host.cancel_save(&guest.domain)
    }

    /// Makes a saved guest run again, as it was.
    pub fn restore(&self, uuid: &Uuid) -> Result<Steps> {
        self.restore_saved(&self.table.get(uuid)?)
    }

    fn restore_saved(&self, saved: &Arc<Guest>) -> Result<Steps> {
        let uuid = &saved.domain.uuid;
        let _owner = saved.own();
        // Its previous owner may have restored it.
        if saved.state() != State::Saved || !self.is_current(saved) {
            let message = format!("guest {uuid} is not saved");
            return Err(Error::new(Code::Exists, message));
        }
        let guest = self.readmit(saved)?;
        let _new_owner = guest.own();
        let (mut made, mut steps) = (Made::default(), Steps::begin());
        match self.rebuild(&guest, &mut made, &mut steps) {
            Ok(()) => {
                self.publish(&guest);
                info!("guest {uuid} restored in {:.1} ms", steps.total_ms());
                Ok(steps)
            }
            Err(cause) => {
                self.give_back(saved, &guest, &made);
                Err(cause)
            }
        }
    }

    /// The pool makes room for a guest that had some before.
    fn readmit(&self, saved: &Guest) -> Result<Arc<Guest>> {
        loop {
            match self.table.readmit(saved, saved.created_s) {
                Err(e) if e.code == Code::NoMemory && self.make_room() => {}
                admitted => {
                    let guest = admitted?;
                    *guest.ledger.book() = saved.ledger.book().clone();
                    return Ok(guest);
                }
            }
        }
    }

    /// After a failed restore the saved guest is as before, or parts of the new one remain.
    fn give_back(&self, saved: &Arc<Guest>, guest: &Guest, made: &Made) {
        self.watchers.remove(guest.domain.domid);
        match self.undo(guest, made) {
            Ok(()) => self.table.restore(Arc::clone(saved)),
            Err(left) => guest.set_state(State::Error, left.message),
        }
    }

    /// Until all is done the record says that it is saved: a crash costs nothing.
    fn rebuild(&self, guest: &Arc<Guest>, made: &mut Made, steps: &mut Steps) -> Result<()> {
        let (domain, uuid) = (&guest.domain, &guest.domain.uuid);
        self.check_strangers(domain)?;
        self.check_ports(domain)?;
        self.watchers
            .insert(domain.domid, Arc::clone(&guest.signals));
        made.prepared = true;
        self.add_ports(domain, made)?;
        steps.end("switch port");
        made.spawned = true;
        let instance = self.host.restore(domain, &self.saved.read(uuid)?)?;
        guest.set_instance(instance);
        steps.end("domain");
        self.host.start(domain.domid)?;
        self.set_links(guest)?;
        steps.end("start");
        self.records.save(&guest.record(Phase::Complete))?;
        self.saved.remove(uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::testing::{World, good, spec, uuid};
    use std::fs;
    use std::time::Duration;

    fn saved() -> World {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.toolstack.save(&uuid(1)).unwrap();
        world
    }

    fn state(world: &World) -> String {
        world.toolstack.info(&uuid(1)).unwrap().state
    }

    #[test]
    fn a_guest_is_saved_and_restored() {
        let world = saved();
        assert_eq!(state(&world), "saved");
        assert!(world.switch.ports().is_empty());
        assert_eq!(world.toolstack.table.memory_used_mib(), 0);
        world.toolstack.save(&uuid(1)).unwrap();
        let read = world
            .toolstack
            .read(&uuid(1), 0, ("fw.config", ""), Duration::ZERO);
        assert!(read.unwrap_err().message.contains("is saved"));
        world.toolstack.restore(&uuid(1)).unwrap();
        assert_eq!(state(&world), "running");
        assert!(world.switch.all_up());
        assert_eq!(
            world.toolstack.restore(&uuid(1)).err().unwrap().code,
            Code::Exists
        );
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_is_restored_once() {
        let world = saved();
        let guest = world.toolstack.table.get(&uuid(1)).unwrap();
        world.toolstack.restore_saved(&guest).unwrap();
        // The second of two requests, which waited for the first.
        let error = world.toolstack.restore_saved(&guest).err().unwrap();
        assert_eq!(error.code, Code::Exists);
        assert_eq!(state(&world), "running");
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_saved_guest_survives_a_restart_and_is_destroyed() {
        let world = saved().restart();
        assert_eq!(state(&world), "saved");
        world.toolstack.restore(&uuid(1)).unwrap();
        world.toolstack.save(&uuid(1)).unwrap();
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
        let left = fs::read_dir(world.dir.path().join("saved")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_failed_save_leaves_the_guest_running() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.faults.fail("host.save");
        world.toolstack.save(&uuid(1)).unwrap_err();
        assert_eq!(state(&world), "running");
        let left = fs::read_dir(world.dir.path().join("saved")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_full_disk_leaves_the_guest_running() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        let file = world.toolstack.saved.path(&uuid(1));
        std::os::unix::fs::symlink("/dev/full", &file).unwrap();
        let error = world.toolstack.save(&uuid(1)).unwrap_err();
        assert!(error.message.contains("No space left"), "{error}");
        assert!(fs::symlink_metadata(&file).is_err());
        let world = world.restart();
        assert_eq!(state(&world), "running");
    }

    #[test]
    fn a_guest_that_does_not_go_on_after_a_failed_save_is_in_error() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.faults.fail("host.save");
        world.faults.fail("host.cancel_save");
        world.toolstack.save(&uuid(1)).unwrap_err();
        assert_eq!(state(&world), "error");
    }

    #[test]
    fn a_save_cut_short_leaves_the_guest_running() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        let guest = world.toolstack.table.get(&uuid(1)).unwrap();
        let records = &world.toolstack.records;
        records.save(&guest.record(Phase::Saving)).unwrap();
        world.toolstack.write_memory(&guest).unwrap();
        let path = "/local/domain/1/control/shutdown";
        world.store.put(path, "suspend");
        drop(guest);
        let world = world.restart();
        assert_eq!(state(&world), "running");
        assert_eq!(world.store.read(path), Ok(Some(Vec::new())));
        let left = fs::read_dir(world.dir.path().join("saved")).unwrap();
        assert_eq!(left.count(), 0);
        let phases = world.toolstack.records.load_all().unwrap();
        assert_eq!(phases[0].phase, Phase::Complete);
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_failed_restore_keeps_what_was_saved() {
        for step in ["host.restore", "host.start", "switch.set_link vale0:g1-1"] {
            let world = saved();
            world.faults.fail(step);
            let error = world.toolstack.restore(&uuid(1)).err().unwrap();
            assert!(error.message.contains("injected"), "{step}: {error}");
            assert_eq!(state(&world), "saved");
            assert!(world.switch.ports().is_empty(), "{step}");
            world.faults.mend();
            world.toolstack.restore(&uuid(1)).unwrap();
        }
    }

    #[test]
    fn a_restored_guest_needs_room() {
        let world = saved();
        let mut large = spec(2);
        large.memory_mib = good(60);
        world.toolstack.create(&large).unwrap();
        let error = world.toolstack.restore(&uuid(1)).err().unwrap();
        assert_eq!(error.code, Code::NoMemory);
        assert_eq!(state(&world), "saved");
    }
}
