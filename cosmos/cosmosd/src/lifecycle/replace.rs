// SPDX-License-Identifier: Apache-2.0
//! A guest that takes the place of a running one: a restart.
//!
//! cosmosd first checks and holds what the new one needs: place in the table, memory, image, room
//! for files, the store, the switch. Only then it touches the running one.

use std::sync::Arc;

use log::{info, warn};

use super::{beside, destroy, links};
use crate::base::clock::now_s;
use crate::base::error::{Code, Error, Result};
use crate::guest::record::Phase;
use crate::guest::{Guest, State, in_switch};
use crate::site::Site;
use crate::spec::Spec;
use crate::state::room::Held;

/// A guest in the table, and the one of the pool that becomes it.
pub type Admitted = (Arc<Guest>, Option<Arc<Guest>>);

/// As `admit`. With `replace` a guest of this UUID ends first, unless its place would stay empty.
pub fn admit_or_replace(site: &Site, spec: &Spec) -> Result<Admitted> {
    loop {
        let Some(old) = site.table.find(&spec.uuid).filter(|_| spec.replace) else {
            let admitted = admit(site, spec, None);
            let exists = admitted.as_ref().is_err_and(|e| e.code == Code::Exists);
            if exists && spec.replace && site.table.find(&spec.uuid).is_some() {
                continue; // Another request has put one there meanwhile.
            }
            return admitted;
        };
        if old.state() == State::Partial {
            old.signals.cancel(); // Half made: it forwards nothing yet.
        }
        let _owner = old.lock_lifecycle();
        if site.table.is_current(&old) {
            return replace_owned(site, &old, spec);
        }
    }
}

fn replace_owned(site: &Site, old: &Guest, spec: &Spec) -> Result<Admitted> {
    let replaced = replace_checked(site, old, spec);
    old.hold_memory(0);
    replaced
}

fn replace_checked(site: &Site, old: &Guest, spec: &Spec) -> Result<Admitted> {
    let held = check_replacement(site, old, spec)?;
    old.signals.cancel();
    destroy::begin_end(site, old);
    // Its entry and its files stay: they are the new one's place.
    destroy::clear(site, old, &old.all_parts(), |_| Ok(()))?;
    info!("guest {} ended for its restart", spec.uuid);
    drop(held);
    admit(site, spec, Some(old)).inspect_err(|_| {
        site.disk
            .remove_files(&spec.uuid)
            .unwrap_or_else(|e| warn!("guest {}: {e}", spec.uuid));
        site.table.remove(&spec.uuid);
    })
}

fn check_replacement(site: &Site, old: &Guest, spec: &Spec) -> Result<Held> {
    old.check_not_migrating()?;
    let new = preview(site, old, spec)?;
    match old.state() {
        State::Running | State::Paused => site.host.check_instead(&new.domain, &old.domain)?,
        _ => site.host.check(&new.domain)?,
    }
    beside::check_strangers(site, &old.domain)?;
    site.store.read("/local/domain")?;
    let wanted = in_switch(&new.domain.uuid, &new.domain.vifs);
    links::check_free(site, &wanted, &in_switch(&old.domain.uuid, &old.vifs()))?;
    site.disk.records.hold(&new.record(Phase::Partial))?;
    {
        let _no_change = old.ledger.state(); // One that is saved now may need more.
        site.disk.ledgers.hold(&spec.uuid)?;
    }
    site.disk.room.hold()
}

/// The pool makes room for a guest that needs more than the one before.
fn preview(site: &Site, old: &Guest, spec: &Spec) -> Result<Guest> {
    loop {
        match site.table.preview(spec, old) {
            Err(e) if is_full(&e) && destroy::make_room(site) => {}
            previewed => return previewed,
        }
    }
}

/// A guest of the pool if there is one like this, else a new one; others of the pool make
/// room for it.
pub fn admit(site: &Site, spec: &Spec, old: Option<&Guest>) -> Result<Admitted> {
    loop {
        if let Some((guest, pooled)) = site.table.take(spec, now_s(), old)? {
            return Ok((guest, Some(pooled)));
        }
        match site.table.admit(spec, now_s(), old) {
            Err(e) if is_full(&e) && destroy::make_room(site) => {}
            admitted => return admitted.map(|guest| (guest, None)),
        }
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error.code, Code::NoMemory | Code::TooMany)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::migration;
    use crate::report;
    use crate::store::Store;
    use crate::testing::{World, good, spec, uuid};
    use std::fs;

    fn again() -> Spec {
        Spec {
            replace: true,
            writes: vec![(good("fw.config"), "allow icmp".into())],
            ..spec(1)
        }
    }

    fn rule(world: &World) -> String {
        let read = world.read(&uuid(1));
        read.unwrap()
    }

    #[test]
    fn a_guest_takes_the_place_of_one_that_runs() {
        let world = World::running();
        let second = world.create(&again()).unwrap();
        assert_ne!(second.domid, 1);
        assert_eq!(rule(&world), "allow icmp");
        assert!(world.switch.all_up());
        assert_eq!(report::guests(&world.site).guests.len(), 1);
        let world = world.restart();
        assert_eq!(rule(&world), "allow icmp");
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_moves_is_not_replaced() {
        let world = World::running();
        let guest = world.site.table.get(&uuid(1)).unwrap();
        guest.migrate_source.begin(7).unwrap();
        let error = world.create(&again()).err().unwrap();
        assert_eq!(error.code, Code::Busy);
        migration::forget_client(&world.site, 7);
        assert_eq!(rule(&world), "deny all");
        world.create(&again()).unwrap();
        assert_eq!(rule(&world), "allow icmp");
    }

    #[test]
    fn without_one_before_it_is_a_creation() {
        let world = World::new();
        world.create(&again()).unwrap();
        world.host.kill(1, false);
        let world = world.restart();
        assert_eq!(world.info(&uuid(1)).unwrap().state, "crashed");
        world.create(&again()).unwrap();
        assert_eq!(rule(&world), "allow icmp");
    }

    #[test]
    fn whatever_the_host_lacks_the_guest_runs_on() {
        type Break = fn(&World);
        type Ask = fn(&mut Spec);
        let cases: [(&str, Break, Ask, Code); 8] = [
            (
                "stranger",
                |w| w.host.put_stranger(77, uuid(1).as_str(), "x"),
                |_| {},
                Code::Exists,
            ),
            (
                "host",
                |w| w.faults.fail("host.check"),
                |_| {},
                Code::Internal,
            ),
            (
                "switch",
                |w| w.faults.fail("switch.existing"),
                |_| {},
                Code::Internal,
            ),
            (
                "memory",
                |_| {},
                |s| s.memory_mib = good(65),
                Code::NoMemory,
            ),
            (
                "image",
                |_| {},
                |s| s.image_sha256 = "00".into(),
                Code::BadImage,
            ),
            (
                "port",
                |w| w.switch.put("vale0:other"),
                |s| {
                    s.vifs[0].port = serde_json::from_value("other".into()).unwrap();
                },
                Code::Exists,
            ),
            (
                "record",
                |w| block(w, "guests", "spare"),
                |_| {},
                Code::StateDir,
            ),
            (
                "ledger",
                |w| block(w, "ledgers", "spare"),
                |_| {},
                Code::StateDir,
            ),
        ];
        for (what, break_it, ask, code) in cases {
            let world = World::running();
            break_it(&world);
            let mut spec = again();
            ask(&mut spec);
            let error = world.create(&spec).err().unwrap();
            assert_eq!(error.code, code, "{what}: {error}");
            assert_eq!(rule(&world), "deny all", "{what}");
            assert!(world.switch.all_up(), "{what}");
            assert_eq!(world.info(&uuid(1)).unwrap().state, "running");
        }
    }

    /// Puts a directory where cosmosd writes a file.
    fn block(world: &World, folder: &str, kind: &str) {
        let path = world
            .dir
            .path()
            .join(format!("{folder}/{}.{kind}", uuid(1)));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
    }

    #[test]
    fn the_memory_of_the_one_before_counts_as_free_and_no_other_takes_it() {
        let world = World::new();
        for n in 1..=4 {
            let mut large = spec(n);
            large.memory_mib = good(16);
            world.create(&large).unwrap();
        }
        let mut same = again();
        same.memory_mib = good(16);
        world.create(&same).unwrap();
        same.memory_mib = good(17);
        let error = world.create(&same).err().unwrap();
        assert_eq!(error.message, "17 MiB asked, 48 of 64 MiB are in use");
        assert_eq!(rule(&world), "allow icmp");
    }

    #[test]
    fn a_restart_that_fails_later_leaves_nothing() {
        for step in ["host.spawn", "host.start", "store.request"] {
            let world = World::running();
            world.faults.fail(step);
            world.create(&again()).err().unwrap();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn a_guest_that_cannot_be_undone_is_in_error_until_it_can() {
        let world = World::running();
        world.faults.fail("host.stop");
        world.create(&again()).err().unwrap();
        assert_eq!(world.info(&uuid(1)).unwrap().state, "error");
        world.faults.mend();
        world.create(&again()).unwrap();
        assert_eq!(rule(&world), "allow icmp");
        assert!(world.store.read("/local/domain/1").unwrap().is_none());
    }
}
