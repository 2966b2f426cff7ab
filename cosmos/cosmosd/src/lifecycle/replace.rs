// SPDX-License-Identifier: Apache-2.0
//! A guest that takes the place of a running one: a restart.
//!
//! cosmosd first checks and holds what the new one needs: place in the table, memory, image, room
//! for files, the store, the switch. Only then it touches the running one.

use std::sync::Arc;

use log::{info, warn};

use crate::error::{Code, Error, Result};
use crate::guest::{Guest, Made, State, in_switch};
use crate::record::Phase;
use crate::spec::{Spec, Vif};
use crate::state_room::Held;
use crate::toolstack::Toolstack;

impl Toolstack {
    /// As `admit`. With `replace` a guest of this UUID ends first, unless its place would stay
    /// empty.
    pub fn admit_or_replace(&self, spec: &Spec) -> Result<(Arc<Guest>, Option<Arc<Guest>>)> {
        loop {
            let Some(old) = self.table.find(&spec.uuid).filter(|_| spec.replace) else {
                let admitted = self.admit(spec, None);
                let exists = admitted.as_ref().is_err_and(|e| e.code == Code::Exists);
                if exists && spec.replace && self.table.find(&spec.uuid).is_some() {
                    continue; // Another request has put one there meanwhile.
                }
                return admitted;
            };
            if old.state() == State::Partial {
                old.signals.cancel(); // Half made: it forwards nothing yet.
            }
            let _owner = old.own();
            if self.is_current(&old) {
                return self.replace_owned(&old, spec);
            }
        }
    }

    fn replace_owned(&self, old: &Guest, spec: &Spec) -> Result<(Arc<Guest>, Option<Arc<Guest>>)> {
        let replaced = self.replace_checked(old, spec);
        old.hold_memory(0);
        replaced
    }

    fn replace_checked(
        &self,
        old: &Guest,
        spec: &Spec,
    ) -> Result<(Arc<Guest>, Option<Arc<Guest>>)> {
        let held = self.check_replacement(old, spec)?;
        old.signals.cancel();
        self.begin_end(old);
        // Its entry and its files stay: they are the new one's place.
        self.clear(old, &Made::all(old), |_| Ok(()))?;
        info!("guest {} ended for its restart", spec.uuid);
        drop(held);
        self.admit(spec, Some(old)).inspect_err(|_| {
            self.remove_files(&spec.uuid)
                .unwrap_or_else(|e| warn!("guest {}: {e}", spec.uuid));
            self.table.remove(&spec.uuid);
        })
    }

    fn check_replacement(&self, old: &Guest, spec: &Spec) -> Result<Held> {
        old.check_settled()?;
        let new = self.preview(old, spec)?;
        match old.state() {
            State::Running | State::Paused => self.host.check_instead(&new.domain, &old.domain)?,
            _ => self.host.check(&new.domain)?,
        }
        self.check_strangers(&old.domain)?;
        self.store.read("/local/domain")?;
        self.check_other_ports(old, &new)?;
        self.records.hold(&new.record(Phase::Partial))?;
        {
            let _no_change = old.ledger.book(); // One that is saved now may need more.
            self.ledgers.hold(&spec.uuid)?;
        }
        self.room.hold()
    }

    /// The pool makes room for a guest that needs more than the one before.
    fn preview(&self, old: &Guest, spec: &Spec) -> Result<Guest> {
        loop {
            match self.table.preview(spec, old) {
                Err(e) if matches!(e.code, Code::NoMemory | Code::TooMany) && self.make_room() => {}
                previewed => return previewed,
            }
        }
    }

    /// Ports that exist and are not the old guest's would refuse the new one.
    fn check_other_ports(&self, old: &Guest, new: &Guest) -> Result<()> {
        let of_old = in_switch(&old.domain.uuid, &old.vifs());
        let is_other = |vif: &&Vif| !of_old.iter().any(|own| own.place() == vif.place());
        let wanted = in_switch(&new.domain.uuid, &new.domain.vifs);
        let existing = self.switch.existing(&wanted)?;
        match existing.iter().find(is_other) {
            None => Ok(()),
            Some(vif) => {
                let message = format!("port {} is there already on the switch", vif.place());
                Err(Error::new(Code::Exists, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::testing::{World, good, spec, uuid};
    use std::fs;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(60);

    fn again() -> Spec {
        Spec {
            replace: true,
            writes: vec![(good("fw.config"), "allow icmp".into())],
            ..spec(1)
        }
    }

    fn running() -> World {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world
    }

    fn rule(world: &World) -> String {
        let read = world.toolstack.read(&uuid(1), 0, ("fw.config", ""), SOON);
        read.unwrap()
    }

    #[test]
    fn a_guest_takes_the_place_of_one_that_runs() {
        let world = running();
        let second = world.toolstack.create(&again()).unwrap();
        assert_ne!(second.domid, 1);
        assert_eq!(rule(&world), "allow icmp");
        assert!(world.switch.all_up());
        assert_eq!(world.toolstack.list().len(), 1);
        let world = world.restart();
        assert_eq!(rule(&world), "allow icmp");
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_moves_is_not_replaced() {
        let world = running();
        let guest = world.toolstack.table.get(&uuid(1)).unwrap();
        guest.migrate_source.begin(7).unwrap();
        let error = world.toolstack.create(&again()).err().unwrap();
        assert_eq!(error.code, Code::Busy);
        world.toolstack.forget_client(7);
        assert_eq!(rule(&world), "deny all");
        world.toolstack.create(&again()).unwrap();
        assert_eq!(rule(&world), "allow icmp");
    }

    #[test]
    fn without_one_before_it_is_a_creation() {
        let world = World::new();
        world.toolstack.create(&again()).unwrap();
        world.host.kill(1, false);
        let world = world.restart();
        assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "crashed");
        world.toolstack.create(&again()).unwrap();
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
            let world = running();
            break_it(&world);
            let mut spec = again();
            ask(&mut spec);
            let error = world.toolstack.create(&spec).err().unwrap();
            assert_eq!(error.code, code, "{what}: {error}");
            assert_eq!(rule(&world), "deny all", "{what}");
            assert!(world.switch.all_up(), "{what}");
            assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "running");
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
            world.toolstack.create(&large).unwrap();
        }
        let mut same = again();
        same.memory_mib = good(16);
        world.toolstack.create(&same).unwrap();
        same.memory_mib = good(17);
        let error = world.toolstack.create(&same).err().unwrap();
        assert_eq!(error.message, "17 MiB asked, 48 of 64 MiB are in use");
        assert_eq!(rule(&world), "allow icmp");
    }

    #[test]
    fn a_restart_that_fails_later_leaves_nothing() {
        for step in ["host.spawn", "host.start", "store.request"] {
            let world = running();
            world.faults.fail(step);
            world.toolstack.create(&again()).err().unwrap();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn a_guest_that_cannot_be_undone_is_in_error_until_it_can() {
        let world = running();
        world.faults.fail("host.stop");
        world.toolstack.create(&again()).err().unwrap();
        assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "error");
        world.faults.mend();
        world.toolstack.create(&again()).unwrap();
        assert_eq!(rule(&world), "allow icmp");
        assert!(world.store.read("/local/domain/1").unwrap().is_none());
    }
}
