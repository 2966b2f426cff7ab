// SPDX-License-Identifier: Apache-2.0
//! Saves a guest to a file, and restores it with its routers and counters.

use std::sync::Arc;

use cosmos_proto::{OfGuest, answer};
use log::{info, warn};

use super::{create, destroy, links, relink};
use crate::base::error::{Code, Error, Result};
use crate::base::steps::Steps;
use crate::control;
use crate::guest::record::Phase;
use crate::guest::{CreatedParts, Guest, State};
use crate::site::Site;

/// Writes a running guest's memory to a file and ends its domain; it stays listed as `saved`.
pub fn save(site: &Site, of: &OfGuest) -> Result<answer::Saved> {
    let guest = site.table.get(&of.uuid)?;
    guest.check_not_migrating()?;
    let _owner = guest.lock_lifecycle();
    if guest.state() != State::Saved {
        guest.check_answers()?;
        save_running(site, &guest)?;
    }
    let bytes = site.disk.saved.bytes(&of.uuid)?;
    Ok(answer::Saved { bytes })
}

fn save_running(site: &Site, guest: &Guest) -> Result<()> {
    site.disk.records.save(&guest.record(Phase::Saving))?;
    write_memory(site, guest)
        .and_then(|()| site.disk.records.save(&guest.record(Phase::Saved)))
        .inspect_err(|_| go_on(site, guest))?;
    guest.set_state(State::Saved, "");
    site.watchers.remove(guest.domain.domid);
    destroy::undo(site, guest, &guest.all_parts())?;
    info!("guest {} saved", guest.domain.uuid);
    Ok(())
}

fn write_memory(site: &Site, guest: &Guest) -> Result<()> {
    let file = site.disk.saved.create(&guest.domain.uuid)?;
    site.host.save(&guest.domain, &file)?;
    file.sync_all()
        .map_err(|e| Error::internal(format!("guest {}", guest.domain.uuid), e))
}

/// After a failed save: the file goes first, since the disk may be full.
fn go_on(site: &Site, guest: &Guest) {
    let uuid = &guest.domain.uuid;
    let removed = site.disk.saved.remove(uuid);
    let resumed = cancel_save(site, guest);
    if let Err(e) = &resumed {
        guest.set_state(State::Error, e.message.clone());
    }
    let recorded = resumed.and_then(|()| site.disk.records.save(&guest.record(Phase::Complete)));
    removed
        .and(recorded)
        .unwrap_or_else(|e| warn!("guest {uuid}: {e}"));
}

/// A guest whose save did not complete continues, with the devices that it had.
pub(crate) fn cancel_save(site: &Site, guest: &Guest) -> Result<()> {
    control::withdraw_suspend(&*site.store, guest.domain.domid)?;
    site.host.cancel_save(&guest.domain)
}

/// Makes a saved guest run again, as it was.
pub fn restore(site: &Site, of: &OfGuest) -> Result<answer::Restored> {
    let steps_ms = restore_saved(site, &site.table.get(&of.uuid)?)?.answer();
    Ok(answer::Restored { steps_ms })
}

fn restore_saved(site: &Site, saved: &Arc<Guest>) -> Result<Steps> {
    let uuid = &saved.domain.uuid;
    let _owner = saved.lock_lifecycle();
    // Its previous owner may have restored it.
    if saved.state() != State::Saved || !site.table.is_current(saved) {
        let message = format!("guest {uuid} is not saved");
        return Err(Error::new(Code::Exists, message));
    }
    let guest = readmit(site, saved)?;
    let _new_owner = guest.lock_lifecycle();
    let (mut made, mut steps) = (CreatedParts::default(), Steps::begin());
    match rebuild(site, &guest, &mut made, &mut steps) {
        Ok(()) => {
            relink::publish(site, &guest);
            info!("guest {uuid} restored in {:.1} ms", steps.total_ms());
            Ok(steps)
        }
        Err(cause) => {
            give_back(site, saved, &guest, &made);
            Err(cause)
        }
    }
}

/// The pool makes room for a guest that had some before.
fn readmit(site: &Site, saved: &Guest) -> Result<Arc<Guest>> {
    loop {
        match site.table.readmit(saved, saved.created_s) {
            Err(e) if e.code == Code::NoMemory && destroy::make_room(site) => {}
            admitted => {
                let guest = admitted?;
                *guest.ledger.state() = saved.ledger.state().clone();
                return Ok(guest);
            }
        }
    }
}

/// After a failed restore the saved guest is as before, or parts of the new one remain.
fn give_back(site: &Site, saved: &Arc<Guest>, guest: &Guest, made: &CreatedParts) {
    site.watchers.remove(guest.domain.domid);
    match destroy::undo(site, guest, made) {
        Ok(()) => site.table.restore(Arc::clone(saved)),
        Err(left) => guest.set_state(State::Error, left.message),
    }
}

/// Until all is done the record says that it is saved: a crash costs nothing.
fn rebuild(
    site: &Site,
    guest: &Arc<Guest>,
    made: &mut CreatedParts,
    steps: &mut Steps,
) -> Result<()> {
    let (domain, uuid) = (&guest.domain, &guest.domain.uuid);
    create::check_unused(site, domain)?;
    site.watch(guest);
    made.prepared = true;
    create::add_ports(site, domain, made)?;
    steps.end("switch port");
    made.spawned = true;
    let instance = site.host.restore(domain, &site.disk.saved.read(uuid)?)?;
    guest.set_instance(instance);
    steps.end("domain");
    site.host.start(domain.domid)?;
    links::set_links(site, guest)?;
    steps.end("start");
    site.disk.records.save(&guest.record(Phase::Complete))?;
    site.disk.saved.remove(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::testing::{World, good, of, spec, uuid};
    use std::fs;

    fn saved() -> World {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        save(&world.site, &of(1)).unwrap();
        world
    }

    fn state(world: &World) -> String {
        world.info(&uuid(1)).unwrap().state
    }

    #[test]
    fn a_guest_is_saved_and_restored() {
        let world = saved();
        assert_eq!(state(&world), "saved");
        assert!(world.switch.ports().is_empty());
        assert_eq!(world.site.table.memory_used_mib(), 0);
        save(&world.site, &of(1)).unwrap();
        let read = world.read(&uuid(1));
        assert!(read.unwrap_err().message.contains("is saved"));
        restore(&world.site, &of(1)).unwrap();
        assert_eq!(state(&world), "running");
        assert!(world.switch.all_up());
        assert_eq!(
            restore(&world.site, &of(1)).err().unwrap().code,
            Code::Exists
        );
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_is_restored_once() {
        let world = saved();
        let guest = world.site.table.get(&uuid(1)).unwrap();
        restore_saved(&world.site, &guest).unwrap();
        // The second of two requests, which waited for the first.
        let error = restore_saved(&world.site, &guest).err().unwrap();
        assert_eq!(error.code, Code::Exists);
        assert_eq!(state(&world), "running");
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_saved_guest_survives_a_restart_and_is_destroyed() {
        let world = saved().restart();
        assert_eq!(state(&world), "saved");
        restore(&world.site, &of(1)).unwrap();
        save(&world.site, &of(1)).unwrap();
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
        let left = fs::read_dir(world.dir.path().join("saved")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_failed_save_leaves_the_guest_running() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.faults.fail("host.save");
        save(&world.site, &of(1)).unwrap_err();
        assert_eq!(state(&world), "running");
        let left = fs::read_dir(world.dir.path().join("saved")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_full_disk_leaves_the_guest_running() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let file = world.site.disk.saved.path(&uuid(1));
        std::os::unix::fs::symlink("/dev/full", &file).unwrap();
        let error = save(&world.site, &of(1)).unwrap_err();
        assert!(error.message.contains("No space left"), "{error}");
        assert!(fs::symlink_metadata(&file).is_err());
        let world = world.restart();
        assert_eq!(state(&world), "running");
    }

    #[test]
    fn a_guest_that_does_not_go_on_after_a_failed_save_is_in_error() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.faults.fail("host.save");
        world.faults.fail("host.cancel_save");
        save(&world.site, &of(1)).unwrap_err();
        assert_eq!(state(&world), "error");
    }

    #[test]
    fn a_save_cut_short_leaves_the_guest_running() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let guest = world.site.table.get(&uuid(1)).unwrap();
        let records = &world.site.disk.records;
        records.save(&guest.record(Phase::Saving)).unwrap();
        write_memory(&world.site, &guest).unwrap();
        let path = "/local/domain/1/control/shutdown";
        world.store.put(path, "suspend");
        drop(guest);
        let world = world.restart();
        assert_eq!(state(&world), "running");
        assert_eq!(world.store.read(path), Ok(Some(Vec::new())));
        let left = fs::read_dir(world.dir.path().join("saved")).unwrap();
        assert_eq!(left.count(), 0);
        let phases = world.site.disk.records.load_all().unwrap();
        assert_eq!(phases[0].phase, Phase::Complete);
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_failed_restore_keeps_what_was_saved() {
        for step in ["host.restore", "host.start", "switch.set_link vale0:g1-1"] {
            let world = saved();
            world.faults.fail(step);
            let error = restore(&world.site, &of(1)).err().unwrap();
            assert!(error.message.contains("injected"), "{step}: {error}");
            assert_eq!(state(&world), "saved");
            assert!(world.switch.ports().is_empty(), "{step}");
            world.faults.mend();
            restore(&world.site, &of(1)).unwrap();
        }
    }

    #[test]
    fn a_restored_guest_needs_room() {
        let world = saved();
        let mut large = spec(2);
        large.memory_mib = good(60);
        world.create(&large).unwrap();
        let error = restore(&world.site, &of(1)).err().unwrap();
        assert_eq!(error.code, Code::NoMemory);
        assert_eq!(state(&world), "saved");
    }
}
