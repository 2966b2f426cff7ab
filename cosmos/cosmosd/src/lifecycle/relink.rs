// SPDX-License-Identifier: Apache-2.0
//! Guests outlive the Xen store: a store that started again gets to know them again (docs/adr/0103).

use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{debug, info, warn};

use crate::base::error::{Code, Result};
use crate::control;
use crate::guest::{Guest, State, Unreachable};
use crate::site::Site;

/// Pause between two looks when the store has lost no guest.
const PAUSE: Duration = Duration::from_secs(5);
/// The same while it has.
const SOON: Duration = Duration::from_millis(500);
/// The least time between two looks: a guest may announce itself all the time.
const REST: Duration = Duration::from_millis(20);
/// A guest that does not announce itself for this long gets another link.
const AGAIN: Duration = Duration::from_secs(5);
/// Any node: the question is whether the store answers.
const PROBE: &str = "/tool";
/// The reason until a guest has announced itself.
const BEGAN_ANEW: &str = "the Xen store was started again, and the guest has no link to it yet";

/// Looks after the links for as long as the daemon lives.
pub fn links_loop(site: &Site) {
    loop {
        let is_any_lost = site.table.all().iter().any(|g| g.unreachable().is_some());
        site.watchers
            .announced
            .take(if is_any_lost { SOON } else { PAUSE });
        relink_all(site);
        std::thread::sleep(REST);
    }
}

/// The store does not answer: no guest hears anything.
pub fn lose_store(site: &Site, reason: &str) {
    let reason = format!("xenstored does not answer: {reason}");
    for guest in site.table.all() {
        if guest.unreachable().is_none() {
            cut_off(site, &guest, &reason);
        }
    }
}

/// A store is there that knows no guest. This makes no requests to it.
pub fn note_new_store(site: &Site) {
    for guest in site.table.all() {
        cut_off(site, &guest, BEGAN_ANEW);
        // The requests to a half-made guest are lost, and its maker gives up.
        if matches!(guest.state(), State::Partial) {
            guest.signals.relink();
        }
    }
}

fn cut_off(site: &Site, guest: &Guest, reason: &str) {
    let (reason, linked) = (reason.to_owned(), None);
    if guest.set_unreachable(Some(Unreachable { reason, linked })) {
        warn!("guest {} is unreachable", guest.domain.uuid);
        site.tell(guest);
    }
}

/// Gives each guest that the store has lost a link, if the store answers. None waits for another.
pub fn relink_all(site: &Site) {
    if let Err(e) = site.store.read(PROBE) {
        return debug!("guests without a link to the Xen store wait: {e}");
    }
    for guest in site.table.all() {
        // A paused guest cannot take one before it continues.
        if guest.unreachable().is_none() || guest.state() != State::Running {
            continue;
        }
        if let Err(e) = relink(site, &guest) {
            let (uuid, reason) = (&guest.domain.uuid, e.message);
            debug!("guest {uuid}: {reason}");
            let linked = Some(Instant::now());
            guest.set_unreachable(Some(Unreachable { reason, linked }));
        }
    }
}

fn relink(site: &Site, guest: &Arc<Guest>) -> Result<()> {
    let Some(_owner) = guest
        .try_lock_lifecycle()
        .filter(|_| site.table.is_current(guest))
    else {
        return Ok(());
    };
    let domid = guest.domain.domid;
    if site.is_known_to_store(guest)? {
        reach(site, guest);
        return Ok(());
    }
    let Some(lost) = guest.unreachable() else {
        return Ok(());
    };
    if lost.linked.is_some_and(|at| at.elapsed() < AGAIN) {
        return Ok(());
    }
    guest.requests.forget_folders();
    match site.host.relink(&guest.domain) {
        Err(e) if e.code == Code::DeadGuest => return Ok(()), // Its watcher tells of its death.
        done => done?,
    }
    let name = guest.status().config_name;
    control::name_config(&*site.store, domid, &name)?;
    let (reason, linked) = (BEGAN_ANEW.to_owned(), Some(Instant::now()));
    guest.set_unreachable(Some(Unreachable { reason, linked }));
    Ok(())
}

/// The store knows the guest, which has told there what it is and what it answered.
fn reach(site: &Site, guest: &Guest) {
    if guest.set_unreachable(None) {
        info!("guest {}: reachable again", guest.domain.uuid);
        site.tell(guest);
    }
    guest.signals.relink();
    site.watchers.offloads.add([guest.domain.domid]);
}

/// Finds out whether the store knows a guest of an earlier cosmosd.
pub fn look_for_link(site: &Site, guest: &Guest) -> bool {
    let found = site.is_known_to_store(guest);
    let reason = match found {
        Ok(true) => {
            guest.set_unreachable(None);
            return true;
        }
        Ok(false) => BEGAN_ANEW.to_owned(),
        Err(e) => e.message,
    };
    cut_off(site, guest, &reason);
    false
}

/// Lets others find a guest that runs now, and tells subscribers the state of its router.
/// Its earlier changes of state were those of a guest that no verb finds.
pub fn publish(site: &Site, guest: &Guest) {
    if guest.unreachable().is_some() {
        look_for_link(site, guest); // The store started again before it was made, or meanwhile.
    }
    guest.set_state(State::Running, "");
    site.announce(guest.domain.domid, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::pause;
    use crate::testing::{World, of, spec, uuid};

    const SOON: Duration = Duration::from_secs(60);

    fn state(world: &World, n: u16) -> String {
        world.info(&uuid(n)).unwrap().state
    }

    /// Guests 1 and 2, which a store that started again does not know.
    fn lost() -> World {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.create(&spec(2)).unwrap();
        world.store.clear();
        note_new_store(&world.site);
        world
    }

    #[test]
    fn guests_are_unreachable_until_a_new_store_knows_them() {
        let world = lost();
        let read = |n| world.read(&uuid(n));
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!((&*info.state, &*info.reason), ("unreachable", BEGAN_ANEW));
        assert_eq!(read(1).unwrap_err().code, Code::DeadGuest);
        relink_all(&world.site);
        assert_eq!(state(&world, 1), "unreachable"); // It has not announced itself.
        relink_all(&world.site);
        for n in 1..=2 {
            assert_eq!(state(&world, n), "running");
            assert_eq!(read(n).unwrap(), "deny all");
            world.destroy(&uuid(n)).unwrap();
        }
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_does_not_announce_itself_holds_up_no_other() {
        let world = lost();
        world.faults.fail("host.announce");
        relink_all(&world.site);
        world.faults.mend();
        world.store.announce(2);
        relink_all(&world.site);
        assert_eq!(state(&world, 1), "unreachable");
        assert_eq!(state(&world, 2), "running");
        world.faults.take();
        relink_all(&world.site);
        assert!(!world.faults.take().contains(&"host.relink".to_owned()));
        world.store.announce(1);
        relink_all(&world.site);
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn a_guest_that_is_being_made_when_a_store_begins_is_reachable() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let guest = world.site.table.find(&uuid(1)).unwrap();
        guest.set_state(State::Partial, "");
        note_new_store(&world.site);
        publish(&world.site, &guest);
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn a_host_that_makes_no_links_says_so() {
        let world = lost();
        world.faults.fail("host.relink");
        relink_all(&world.site);
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "unreachable");
        assert!(info.reason.contains("injected"), "{}", info.reason);
    }

    #[test]
    fn a_store_that_was_away_and_lost_nothing_is_found_again() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        lose_store(&world.site, "it is gone");
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "unreachable");
        assert_eq!(info.reason, "xenstored does not answer: it is gone");
        world.faults.take();
        relink_all(&world.site);
        assert_eq!(state(&world, 1), "running");
        assert!(!world.faults.take().contains(&"host.relink".to_owned()));
    }

    #[test]
    fn a_paused_guest_gets_its_link_when_it_goes_on() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        pause::pause(&world.site, &of(1)).unwrap();
        world.store.clear();
        note_new_store(&world.site);
        relink_all(&world.site);
        assert_eq!(state(&world, 1), "paused");
        pause::unpause(&world.site, &of(1)).unwrap();
        assert_eq!(state(&world, 1), "unreachable");
        assert!(!world.site.watchers.announced.take(SOON).is_empty());
        relink_all(&world.site);
        relink_all(&world.site);
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn a_guest_that_a_later_cosmosd_finds_without_a_link_gets_one() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.store.clear();
        let world = world.restart();
        assert_eq!(state(&world, 1), "unreachable");
        relink_all(&world.site);
        relink_all(&world.site);
        assert_eq!(state(&world, 1), "running");
    }

    #[test]
    fn what_a_guest_was_asked_ends_with_its_new_link() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        world.store.hold_answers(true);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| world.read(&uuid(1)));
            let is_asked = |key: &String| key.contains("/request/");
            while !world.store.keys().iter().any(is_asked) {
                std::thread::yield_now();
            }
            world.store.clear();
            note_new_store(&world.site);
            relink_all(&world.site);
            relink_all(&world.site);
            let error = asked.join().unwrap().unwrap_err();
            assert_eq!(error.code, Code::Store);
            assert!(error.message.contains("started again"), "{error}");
        });
    }
}
