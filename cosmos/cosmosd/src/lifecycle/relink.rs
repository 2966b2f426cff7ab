// SPDX-License-Identifier: Apache-2.0
//! Guests outlive the Xen store: a store that began anew gets to know them again (docs/adr/0103).

use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{debug, info, warn};
use serde_json::json;

use crate::control;
use crate::error::{Code, Result};
use crate::guest::{Guest, State, Unreachable};
use crate::toolstack::Toolstack;

/// Pause between two looks when the store has lost no guest.
const PAUSE: Duration = Duration::from_secs(5);
/// The same while it has.
const SOON: Duration = Duration::from_millis(500);
/// The least time between two looks: a guest may announce itself all the time.
const REST: Duration = Duration::from_millis(20);
/// A guest that does not announce itself for so long gets another link.
const AGAIN: Duration = Duration::from_secs(5);
/// Any node: the question is whether the store answers.
const PROBE: &str = "/tool";
/// The reason until a guest has announced itself.
const BEGAN_ANEW: &str = "the Xen store was started again, and the guest has no link to it yet";

impl Toolstack {
    /// Looks after the links for as long as the daemon lives.
    pub fn keep_links(&self) {
        loop {
            let is_any_lost = self.table.all().iter().any(|g| g.unreachable().is_some());
            self.watchers
                .announced
                .take(if is_any_lost { SOON } else { PAUSE });
            self.relink_all();
            std::thread::sleep(REST);
        }
    }

    /// The store does not answer: no guest hears anything.
    pub fn lose_store(&self, reason: &str) {
        let reason = format!("xenstored does not answer: {reason}");
        for guest in self.table.all() {
            if guest.unreachable().is_none() {
                self.cut_off(&guest, &reason);
            }
        }
    }

    /// A store is there that knows no guest. This makes no requests to it.
    pub fn note_new_store(&self) {
        for guest in self.table.all() {
            self.cut_off(&guest, BEGAN_ANEW);
            // The requests to a half-made guest are lost, and its maker gives up.
            if matches!(guest.state(), State::Partial) {
                guest.signals.relink();
            }
        }
    }

    fn cut_off(&self, guest: &Guest, reason: &str) {
        let (reason, linked) = (reason.to_owned(), None);
        if guest.set_unreachable(Some(Unreachable { reason, linked })) {
            warn!("guest {} is unreachable", guest.domain.uuid);
            self.tell(guest);
        }
    }

    /// Gives each guest that the store has lost a link, if the store answers. None waits for
    /// another.
    pub fn relink_all(&self) {
        if let Err(e) = self.store.read(PROBE) {
            return debug!("guests without a link to the Xen store wait: {e}");
        }
        for guest in self.table.all() {
            // A paused guest cannot take one before it goes on.
            if guest.unreachable().is_none() || guest.state() != State::Running {
                continue;
            }
            if let Err(e) = self.relink(&guest) {
                let (uuid, reason) = (&guest.domain.uuid, e.message);
                debug!("guest {uuid}: {reason}");
                let linked = Some(Instant::now());
                guest.set_unreachable(Some(Unreachable { reason, linked }));
            }
        }
    }

    fn relink(&self, guest: &Arc<Guest>) -> Result<()> {
        let Some(_owner) = guest.try_own().filter(|_| self.is_current(guest)) else {
            return Ok(());
        };
        let domid = guest.domain.domid;
        if control::is_announced(&*self.store, domid)? {
            self.reach(guest);
            return Ok(());
        }
        let Some(lost) = guest.unreachable() else {
            return Ok(());
        };
        if lost.linked.is_some_and(|at| at.elapsed() < AGAIN) {
            return Ok(());
        }
        guest.requests.forget_folders();
        match self.host.relink(&guest.domain) {
            Err(e) if e.code == Code::DeadGuest => return Ok(()), // Its watcher tells of its death.
            done => done?,
        }
        let name = guest.status().config_name;
        control::name_config(&*self.store, domid, &name)?;
        let (reason, linked) = (BEGAN_ANEW.to_owned(), Some(Instant::now()));
        guest.set_unreachable(Some(Unreachable { reason, linked }));
        Ok(())
    }

    /// The store knows the guest, which has told there what it is and what it answered.
    fn reach(&self, guest: &Guest) {
        if guest.set_unreachable(None) {
            info!("guest {}: reachable again", guest.domain.uuid);
            self.tell(guest);
        }
        guest.signals.relink();
        self.watchers.wishes.add([guest.domain.domid]);
    }

    /// Finds out whether the store knows a guest of an earlier cosmosd.
    pub fn look_for_link(&self, guest: &Guest) -> bool {
        let found = control::is_announced(&*self.store, guest.domain.domid);
        let reason = match found {
            Ok(true) => {
                guest.set_unreachable(None);
                return true;
            }
            Ok(false) => BEGAN_ANEW.to_owned(),
            Err(e) => e.message,
        };
        self.cut_off(guest, &reason);
        false
    }

    /// Tells subscribers how a guest is now.
    pub fn tell(&self, guest: &Guest) {
        if let Some(now) = guest.describe(None) {
            let event = json!({
                "uuid": now.uuid, "domid": now.domid, "state": now.state, "reason": now.reason,
            });
            self.events.publish("guest", event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, spec, uuid};

    const SOON: Duration = Duration::from_secs(60);

    fn state(world: &World, n: u16) -> String {
        world.toolstack.info(&uuid(n)).unwrap().state
    }

    /// Guests 1 and 2, which a store that began anew does not know.
    fn lost() -> World {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.toolstack.create(&spec(2)).unwrap();
        world.store.clear();
        world.toolstack.note_new_store();
        world
    }

    #[test]
    fn guests_are_unreachable_until_a_new_store_knows_them() {
        let world = lost();
        let read = |n| world.toolstack.read(&uuid(n), 0, ("fw.config", ""), SOON);
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!((&*info.state, &*info.reason), ("unreachable", BEGAN_ANEW));
        assert_eq!(read(1).unwrap_err().code, Code::DeadGuest);
        world.toolstack.relink_all();
        assert_eq!(state(&world, 1), "unreachable"); // It has not announced itself.
        world.toolstack.relink_all();
        for n in 1..=2 {
            assert_eq!(state(&world, n), "running");
            assert_eq!(read(n).unwrap(), "deny all");
            world.toolstack.destroy(&uuid(n)).unwrap();
        }
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_does_not_announce_itself_holds_up_no_other() {
        let world = lost();
        world.faults.fail("host.announce");
        world.toolstack.relink_all();
        world.faults.mend();
        world.store.announce(2);
        world.toolstack.relink_all();
        assert_eq!(state(&world, 1), "unreachable");
        assert_eq!(state(&world, 2), "running");
        world.faults.take();
        world.toolstack.relink_all();
        assert!(!world.faults.take().contains(&"host.relink".to_owned()));
        world.store.announce(1);
        world.toolstack.relink_all();
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn a_guest_that_is_being_made_when_a_store_begins_is_reachable() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        let guest = world.toolstack.table.find(&uuid(1)).unwrap();
        guest.set_state(State::Partial, "");
        world.toolstack.note_new_store();
        world.toolstack.publish(&guest);
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn a_host_that_makes_no_links_says_so() {
        let world = lost();
        world.faults.fail("host.relink");
        world.toolstack.relink_all();
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "unreachable");
        assert!(info.reason.contains("injected"), "{}", info.reason);
    }

    #[test]
    fn a_store_that_was_away_and_lost_nothing_is_found_again() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.toolstack.lose_store("it is gone");
        let info = world.toolstack.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "unreachable");
        assert_eq!(info.reason, "xenstored does not answer: it is gone");
        world.faults.take();
        world.toolstack.relink_all();
        assert_eq!(state(&world, 1), "running");
        assert!(!world.faults.take().contains(&"host.relink".to_owned()));
    }

    #[test]
    fn a_paused_guest_gets_its_link_when_it_goes_on() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.toolstack.pause(&uuid(1)).unwrap();
        world.store.clear();
        world.toolstack.note_new_store();
        world.toolstack.relink_all();
        assert_eq!(state(&world, 1), "paused");
        world.toolstack.unpause(&uuid(1)).unwrap();
        assert_eq!(state(&world, 1), "unreachable");
        assert!(!world.toolstack.watchers.announced.take(SOON).is_empty());
        world.toolstack.relink_all();
        world.toolstack.relink_all();
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn a_guest_that_a_later_cosmosd_finds_without_a_link_gets_one() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.store.clear();
        let world = world.restart();
        assert_eq!(state(&world, 1), "unreachable");
        world.toolstack.relink_all();
        world.toolstack.relink_all();
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn what_a_guest_was_asked_ends_with_its_new_link() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world.store.hold_answers(true);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| world.toolstack.read(&uuid(1), 0, ("fw.config", ""), SOON));
            let is_asked = |key: &String| key.contains("/request/");
            while !world.store.keys().iter().any(is_asked) {
                std::thread::yield_now();
            }
            world.store.clear();
            world.toolstack.note_new_store();
            world.toolstack.relink_all();
            world.toolstack.relink_all();
            let error = asked.join().unwrap().unwrap_err();
            assert_eq!(error.code, Code::Store);
            assert!(error.message.contains("started again"), "{error}");
        });
    }
}
