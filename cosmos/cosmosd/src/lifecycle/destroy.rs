// SPDX-License-Identifier: Apache-2.0
//! Ends of guests: destroyed by request, or dead by themselves. Both undo what `create` made, in
//! reverse order, and may be repeated.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use log::{error, info, warn};
use serde_json::json;

use crate::control;
use crate::error::{Error, Result};
use crate::guest::Made;
use crate::guest::{Guest, State};
use crate::host::Death;
use crate::record::Phase;
use crate::spec::Uuid;
use crate::toolstack::Toolstack;

impl Toolstack {
    /// Destroys a guest; one that does not exist is no error. One that is being created is
    /// given up.
    pub fn destroy(&self, uuid: &Uuid) -> Result<()> {
        while let Some(guest) = self.table.find(uuid) {
            guest.signals.cancel();
            let _owner = guest.own();
            // The previous owner may have removed it, or put another in its place.
            if self.is_current(&guest) {
                return self.destroy_owned(&guest);
            }
        }
        Ok(())
    }

    pub fn is_current(&self, guest: &Arc<Guest>) -> bool {
        let now = self.table.find(&guest.domain.uuid);
        now.is_some_and(|now| Arc::ptr_eq(&now, guest))
    }

    fn destroy_owned(&self, guest: &Guest) -> Result<()> {
        self.begin_end(guest);
        self.remove(guest, &Made::all(guest))?;
        info!("guest {} destroyed", guest.domain.uuid);
        Ok(())
    }

    /// Notes that a guest is being undone.
    pub fn begin_end(&self, guest: &Guest) {
        guest.set_state(State::Partial, "");
        if let Err(e) = self.records.save(&guest.record(Phase::Partial)) {
            // A daemon that is killed now finds it later as a guest that died.
            warn!(
                "guest {}: {e}; destroying it all the same",
                guest.domain.uuid
            );
        }
    }

    /// Undoes what was made of a guest and forgets it. If something is left the guest stays
    /// listed in state `error`, and [`Toolstack::retry`] goes on.
    pub fn remove(&self, guest: &Guest, made: &Made) -> Result<()> {
        self.clear(guest, made, |uuid| self.remove_files(uuid))?;
        self.table.remove(&guest.domain.uuid);
        Ok(())
    }

    /// As `remove`, for a guest that stays listed; `last` undoes what remains.
    pub fn clear(
        &self,
        guest: &Guest,
        made: &Made,
        last: impl FnOnce(&Uuid) -> Result<()>,
    ) -> Result<()> {
        let uuid = &guest.domain.uuid;
        let undone = self.undo(guest, made).and_then(|()| {
            self.host.remove_console(&guest.domain)?;
            self.saved.remove(uuid)?;
            guest.ledger.end(|| last(uuid))
        });
        self.watchers.remove(guest.domain.domid);
        guest.set_left(undone.as_ref().err().map(|_| made.clone()));
        if let Err(left) = &undone {
            guest.set_state(State::Error, left.message.clone());
        }
        undone
    }

    pub fn remove_files(&self, uuid: &Uuid) -> Result<()> {
        self.ledgers.remove(uuid)?;
        self.records.remove(uuid)
    }

    /// Goes through all steps even if one fails, and returns the first error.
    pub fn undo(&self, guest: &Guest, made: &Made) -> Result<()> {
        let domain = &guest.domain;
        let stopped = if made.spawned {
            self.host.stop(domain)
        } else {
            Ok(())
        };
        let ports = made.ports.iter().rev();
        let removed = ports
            .map(|vif| self.switch.remove(vif))
            .fold(Ok(()), Result::and);
        if !made.prepared {
            return stopped.and(removed);
        }
        let silent = self.remove_silent(domain);
        let forgotten = self.host.forget(domain);
        stopped.and(removed).and(silent).and(forgotten)
    }

    /// Handles deaths as long as the host reports them.
    pub fn watch_deaths(self: &Arc<Self>, deaths: Receiver<Death>) {
        for death in deaths {
            let Some(guest) = self.table.by_domid(death.domid) else {
                continue;
            };
            guest.signals.die(&death.reason);
            let (this, reason) = (Arc::clone(self), death.reason);
            // In a thread of its own: somebody may own the guest and notice its death first.
            let thread = std::thread::Builder::new().name(format!("crashed {}", death.domid));
            if let Err(e) = thread.spawn(move || this.mark_crashed(&guest, &reason)) {
                error!("domain {}: its death is not handled: {e}", death.domid);
            }
        }
    }

    /// Notes the death of a guest that ran, and releases what it used.
    pub fn mark_crashed(&self, guest: &Guest, reason: &str) {
        if guest.state() == State::Pooled {
            return self.evict(guest).unwrap_or_else(|e| warn!("pool: {e}"));
        }
        let _owner = guest.own();
        if !matches!(guest.state(), State::Running | State::Paused) {
            return; // The thread that created or destroyed it handled this death.
        }
        let (uuid, domid) = (&guest.domain.uuid, guest.domain.domid);
        let reason = match control::panic_message(&*self.store, domid) {
            Some(words) => format!("{reason}: {words}"),
            None => reason.to_owned(),
        };
        warn!("guest {uuid}, domain {domid}, died: {reason}");
        guest.set_state(State::Crashed, &reason);
        self.events.publish(
            "died",
            json!({"uuid": uuid, "domid": domid, "reason": reason}),
        );
        self.release(guest).unwrap_or_else(|e: Error| {
            error!("guest {uuid}: releasing what it used failed: {e}; cosmosd tries again");
        });
    }

    /// Releases all that a dead guest used; its console stays.
    pub fn release(&self, guest: &Guest) -> Result<()> {
        let saved = self.records.save(&guest.record(Phase::Crashed));
        self.watchers.remove(guest.domain.domid);
        let undone = self.undo(guest, &Made::all(guest)).and(saved);
        guest.set_left(undone.as_ref().err().map(|_| Made::all(guest)));
        undone
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Code;
    use crate::testing::{World, spec, uuid};
    use std::time::{Duration, Instant};

    fn until(mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !done() {
            assert!(Instant::now() < deadline, "not in time");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn destroy_leaves_nothing_and_may_be_repeated() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
        world.toolstack.destroy(&uuid(1)).unwrap();
    }

    #[test]
    fn a_failed_destroy_does_what_it_can_and_is_tried_again() {
        for step in [
            "host.stop",
            "switch.remove vale0:g1-0",
            "host.forget",
            "host.remove_console",
        ] {
            let world = World::new();
            world.toolstack.create(&spec(1)).unwrap();
            world.faults.fail(step);
            world.toolstack.destroy(&uuid(1)).unwrap_err();
            assert!(
                !world.switch.ports().contains(&"vale0:g1-1".to_owned()),
                "{step}"
            );
            assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "error");
            world.faults.mend();
            world.toolstack.destroy(&uuid(1)).unwrap();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn a_dead_guest_stays_listed_with_its_reason() {
        let mut world = World::new();
        world.watch_deaths();
        world.toolstack.create(&spec(1)).unwrap();
        world
            .store
            .put("/local/domain/1/data/clickos/panic", "broke\u{1b}");
        world.host.kill(1, true);
        until(|| world.toolstack.info(&uuid(1)).unwrap().state == "crashed");
        until(|| world.remains().len() == 3); // Its record, entry and ledger.
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!(info.reason, "killed by signal 9 (SIGKILL): broke\\x1b");
        let error = world
            .toolstack
            .read(&uuid(1), 0, ("fw.config", ""), Duration::ZERO)
            .unwrap_err();
        assert_eq!(error.code, Code::DeadGuest);
        assert!(error.message.contains("SIGKILL"), "{error}");
        assert_eq!(
            world.toolstack.pause(&uuid(1)).unwrap_err().code,
            Code::DeadGuest
        );
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }
}
