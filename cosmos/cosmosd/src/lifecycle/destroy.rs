// SPDX-License-Identifier: Apache-2.0
//! Ends of guests: destroyed by request, or dead by themselves. Both undo what `create` made, in
//! reverse order, and may be repeated.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use cosmos_proto::{HandlerName, OfGuest};
use log::{error, info, warn};
use serde_json::json;

use super::preconnected;
use crate::base::error::{Error, Result};
use crate::control;
use crate::guest::record::Phase;
use crate::guest::{CreatedParts, Guest, State};
use crate::host::Death;
use crate::site::Site;
use crate::spec::Uuid;

/// The handler by which a guest of a pair gives way.
const RESIGN: &str = "vrrp.resign";
/// The time that a guest has for it; takeover without it takes 0.6 s.
const RESIGNATION: Duration = Duration::from_millis(200);
/// In this time the switch takes from the rings what the guest said last.
const DELIVERY: Duration = Duration::from_millis(10);

/// Destroys a guest; one that does not exist is no error. One that is being created is given up.
pub fn destroy(site: &Site, of: &OfGuest) -> Result<()> {
    while let Some(guest) = site.table.find(&of.uuid) {
        resign(site, &guest);
        guest.signals.cancel();
        let _owner = guest.lock_lifecycle();
        // The previous owner may have removed it, or put another in its place.
        if site.table.is_current(&guest) {
            return destroy_owned(site, &guest);
        }
    }
    Ok(())
}

/// Lets a guest of a pair resign before its end (RFC 9568, 6.4.3): the other one becomes active immediately. It is
/// known by a virtual router's address; a guest that is not active sends nothing.
fn resign(site: &Site, guest: &Guest) {
    let is_of_a_pair = guest.vifs().iter().any(|vif| {
        let macs = vif.allowed.iter().filter_map(|allowed| allowed.mac);
        macs.map(|mac| mac.0).any(is_of_virtual_router)
    });
    let is_here =
        || guest.check_not_migrating().is_ok() && guest.ledger.state().check_here().is_ok();
    let answers = || guest.check_is_click().and_then(|()| guest.check_answers());
    if !is_of_a_pair || answers().is_err() || !is_here() {
        return;
    }
    let Ok(name) = HandlerName::try_from(RESIGN.to_owned()) else {
        return;
    };
    let router = site.router_of(guest, 0, Instant::now() + RESIGNATION);
    match control::write(router, &[(name, "destroyed".to_owned())]) {
        Ok(()) => std::thread::sleep(DELIVERY),
        Err(e) => info!("guest {}: {RESIGN}: {e}", guest.domain.uuid),
    }
}

/// True for the addresses of virtual routers of IPv4 and IPv6 (RFC 9568, 7.3).
fn is_of_virtual_router(mac: [u8; 6]) -> bool {
    matches!(mac, [0, 0, 0x5e, 0, 1 | 2, _])
}

fn destroy_owned(site: &Site, guest: &Guest) -> Result<()> {
    begin_end(site, guest);
    remove(site, guest, &guest.all_parts())?;
    info!("guest {} destroyed", guest.domain.uuid);
    Ok(())
}

/// Notes that a guest is being undone.
pub fn begin_end(site: &Site, guest: &Guest) {
    guest.set_state(State::Partial, "");
    if let Err(e) = site.disk.records.save(&guest.record(Phase::Partial)) {
        // A daemon that is killed now finds it later as a guest that died.
        warn!(
            "guest {}: {e}; destroying it all the same",
            guest.domain.uuid
        );
    }
}

/// Undoes what was made of a guest and forgets it. If something is left the guest stays
/// listed in state `error`, and `retry` continues.
pub fn remove(site: &Site, guest: &Guest, made: &CreatedParts) -> Result<()> {
    clear(site, guest, made, |uuid| site.disk.remove_files(uuid))?;
    site.table.remove(&guest.domain.uuid);
    Ok(())
}

/// As `remove`, for a guest that stays listed; `last` undoes what remains.
pub fn clear(
    site: &Site,
    guest: &Guest,
    made: &CreatedParts,
    last: impl FnOnce(&Uuid) -> Result<()>,
) -> Result<()> {
    let uuid = &guest.domain.uuid;
    let undone = undo(site, guest, made).and_then(|()| {
        site.host.remove_console(&guest.domain)?;
        site.disk.saved.remove(uuid)?;
        guest.ledger.end(|| last(uuid))
    });
    site.watchers.remove(guest.domain.domid);
    guest.set_leftovers(undone.as_ref().err().map(|_| made.clone()));
    if let Err(left) = &undone {
        guest.set_state(State::Error, left.message.clone());
    }
    undone
}

/// Goes through all steps even if one fails, and returns the first error.
pub fn undo(site: &Site, guest: &Guest, made: &CreatedParts) -> Result<()> {
    let domain = &guest.domain;
    let stopped = if made.spawned {
        site.host.stop(domain)
    } else {
        Ok(())
    };
    let ports = made.ports.iter().rev();
    let removed = ports
        .map(|vif| site.switch.remove(vif))
        .fold(Ok(()), Result::and);
    if !made.prepared {
        return stopped.and(removed);
    }
    let preconnected = preconnected::remove_preconnected(site, domain);
    let forgotten = site.host.forget(domain);
    stopped.and(removed).and(preconnected).and(forgotten)
}

/// Handles deaths as long as the host reports them.
pub fn watch_deaths(site: &Arc<Site>, deaths: Receiver<Death>) {
    for death in deaths {
        let Some(guest) = site.table.by_domid(death.domid) else {
            continue;
        };
        guest.signals.die(&death.reason);
        let (site, reason) = (Arc::clone(site), death.reason);
        // In a thread of its own: somebody may own the guest and notice its death first.
        let thread = std::thread::Builder::new().name(format!("crashed {}", death.domid));
        if let Err(e) = thread.spawn(move || mark_crashed(&site, &guest, &reason)) {
            error!("domain {}: its death is not handled: {e}", death.domid);
        }
    }
}

/// Notes the death of a guest that ran, and releases what it used.
pub fn mark_crashed(site: &Site, guest: &Guest, reason: &str) {
    if guest.state() == State::Pooled {
        return evict(site, guest).unwrap_or_else(|e| warn!("pool: {e}"));
    }
    let _owner = guest.lock_lifecycle();
    if !matches!(guest.state(), State::Running | State::Paused) {
        return; // The thread that created or destroyed it handled this death.
    }
    let (uuid, domid) = (&guest.domain.uuid, guest.domain.domid);
    let reason = match control::panic_message(&*site.store, domid) {
        Some(words) => format!("{reason}: {words}"),
        None => reason.to_owned(),
    };
    warn!("guest {uuid}, domain {domid}, died: {reason}");
    guest.set_state(State::Crashed, &reason);
    site.events.publish(
        "died",
        json!({"uuid": uuid, "domid": domid, "reason": reason}),
    );
    release_dead(site, guest).unwrap_or_else(|e: Error| {
        error!("guest {uuid}: releasing what it used failed: {e}; cosmosd tries again");
    });
}

/// Releases all that a dead guest used; its console stays.
pub fn release_dead(site: &Site, guest: &Guest) -> Result<()> {
    let saved = site.disk.records.save(&guest.record(Phase::Crashed));
    site.watchers.remove(guest.domain.domid);
    let undone = undo(site, guest, &guest.all_parts()).and(saved);
    guest.set_leftovers(undone.as_ref().err().map(|_| guest.all_parts()));
    undone
}

/// Gives up one guest of the pool so that another may have its room; false if the pool is empty.
pub fn make_room(site: &Site) -> bool {
    let pooled = site.table.pooled();
    let Some(guest) = pooled.first() else {
        return false;
    };
    evict(site, guest)
        .inspect_err(|e| warn!("pool: {e}"))
        .is_ok()
}

/// Destroys a guest of the pool, unless somebody has taken it.
pub fn evict(site: &Site, guest: &Guest) -> Result<()> {
    let _owner = guest.lock_lifecycle();
    if !site.table.withdraw(guest) {
        return Ok(());
    }
    remove(site, guest, &guest.all_parts())
}

#[cfg(test)]
mod tests {
    use crate::base::error::Code;
    use crate::lifecycle::pause;
    use crate::testing::{World, of, spec, uuid};
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
        world.create(&spec(1)).unwrap();
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
        world.destroy(&uuid(1)).unwrap();
    }

    #[test]
    fn a_guest_of_a_pair_resigns_before_it_is_destroyed() {
        let world = World::new();
        let mut pair = spec(1);
        let router = vale_proto::Allowed {
            mac: Some("00:00:5e:00:01:07".parse().unwrap()),
            ip: "10.0.0.1/32".parse().unwrap(),
        };
        pair.vifs[0].allowed.push(router);
        for spec in [&pair, &spec(2)] {
            world.create(spec).unwrap();
        }
        for n in [1, 2] {
            world.destroy(&uuid(n)).unwrap();
        }
        assert_eq!(world.store.rule(1).as_deref(), Some("destroyed"));
        assert_eq!(world.store.rule(2).as_deref(), Some("deny all"));
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_silent_guest_of_a_pair_is_destroyed_soon() {
        let world = World::new();
        let mut pair = spec(1);
        pair.vifs[0].allowed.push(vale_proto::Allowed {
            mac: Some("00:00:5e:00:02:07".parse().unwrap()),
            ip: "fe80::1/128".parse().unwrap(),
        });
        world.create(&pair).unwrap();
        world.store.hold_answers(true);
        let began = Instant::now();
        world.destroy(&uuid(1)).unwrap();
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(world.remains(), Vec::<String>::new());
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
            world.create(&spec(1)).unwrap();
            world.faults.fail(step);
            world.destroy(&uuid(1)).unwrap_err();
            assert!(
                !world.switch.ports().contains(&"vale0:g1-1".to_owned()),
                "{step}"
            );
            assert_eq!(world.info(&uuid(1)).unwrap().state, "error");
            world.faults.mend();
            world.destroy(&uuid(1)).unwrap();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn a_dead_guest_stays_listed_with_its_reason() {
        let world = World::new();
        world.watch_deaths();
        world.create(&spec(1)).unwrap();
        world
            .store
            .put("/local/domain/1/data/clickos/panic", "broke\u{1b}");
        world.host.kill(1, true);
        until(|| world.info(&uuid(1)).unwrap().state == "crashed");
        until(|| world.remains().len() == 3); // Its record, entry and ledger.
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.reason, "killed by signal 9 (SIGKILL): broke\\x1b");
        let error = world.read(&uuid(1)).unwrap_err();
        assert_eq!(error.code, Code::DeadGuest);
        assert!(error.message.contains("SIGKILL"), "{error}");
        assert_eq!(
            pause::pause(&world.site, &of(1)).unwrap_err().code,
            Code::DeadGuest
        );
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }
}
