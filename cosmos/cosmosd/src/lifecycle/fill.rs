// SPDX-License-Identifier: Apache-2.0
//! The pool of guests that cosmosd makes before a client asks: booted to their control thread, and
//! paused.
//!
//! A taken guest gets the new guest's name, devices and configuration. No other guest used it
//! before. The daemon makes the next one while no client waits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{info, warn};

use super::{Maker, create, destroy};
use crate::base::clock::now_s;
use crate::base::error::{Code, Error, Result};
use crate::base::steps::Steps;
use crate::config::PoolEntry;
use crate::control;
use crate::guest::record::Phase;
use crate::guest::{CreatedParts, Guest, Shape, State};
use crate::host::Domain;
use crate::pool::RETRY;
use crate::site::Site;

/// How long a guest may take to boot.
const BOOT: Duration = Duration::from_secs(60);

impl Maker {
    /// Keeps the pool full as long as the daemon lives.
    pub fn pool_loop(&self) {
        loop {
            self.pool.wait_quiet();
            match self.fill_pool_by_one() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(e) => warn!("pool: {e}; tried again in {RETRY:?} or at the next creation"),
            }
            self.pool.wait_used();
        }
    }

    /// Adds a guest to the pool, or removes a surplus one; returns false if the pool is complete.
    pub fn fill_pool_by_one(&self) -> Result<bool> {
        let wanted = self.wanted_shapes()?;
        if let Some(guest) = self.site.table.surplus(&wanted) {
            return destroy::evict(&self.site, &guest).map(|()| true);
        }
        match self.site.table.missing(&wanted) {
            None => Ok(false),
            Some(shape) => match self.add_to_pool(&shape) {
                // Guests on demand need no room of a full host.
                Err(e) if is_full(&e) && !self.is_configured(&shape) => Ok(false),
                added => added.map(|()| true),
            },
        }
    }

    fn is_configured(&self, shape: &Shape) -> bool {
        let configured = self.configured_shapes().unwrap_or_default();
        configured.iter().any(|(known, _)| known == shape)
    }

    fn wanted_shapes(&self) -> Result<Vec<(Shape, usize)>> {
        let mut wanted = self.configured_shapes()?;
        for (shape, guests) in self.pool.demanded() {
            let kept = wanted.iter().filter(|(known, _)| *known == shape);
            let kept = kept.map(|(_, guests)| guests).sum();
            wanted.push((shape, guests.saturating_sub(kept)));
        }
        Ok(wanted)
    }

    fn configured_shapes(&self) -> Result<Vec<(Shape, usize)>> {
        let shape = |entry: &PoolEntry| -> Result<(Shape, usize)> {
            let image_sha256 = match &entry.image {
                Some(sha256) => sha256.as_str().to_owned(),
                None => self.site.host.engine_sha256()?.unwrap_or_default(),
            };
            let memory_mib = entry.memory_mib;
            let shape = Shape {
                image_sha256,
                memory_mib,
                preconnected: entry.preconnected(),
            };
            Ok((shape, entry.guests))
        };
        self.pool.entries.iter().map(shape).collect()
    }

    fn add_to_pool(&self, shape: &Shape) -> Result<()> {
        let guest = self.site.table.admit_to_pool(shape, now_s())?;
        let _owner = guest.lock_lifecycle();
        let mut made = CreatedParts::default();
        match self.boot(&guest, &mut made) {
            Ok(()) => {
                guest.set_state(State::Pooled, "");
                let domid = guest.domain.domid;
                info!("pool: domain {domid} of {} MiB is ready", shape.memory_mib);
                Ok(())
            }
            Err(cause) => Err(create::abandon(&self.site, &guest, &made, cause)),
        }
    }

    /// Makes a guest that waits, paused, for its configuration.
    fn boot(&self, guest: &Arc<Guest>, made: &mut CreatedParts) -> Result<()> {
        let (domain, mut steps) = (&guest.domain, Steps::begin());
        self.site.host.check(domain)?;
        let (signals, deadline) = (&guest.signals, Instant::now() + BOOT);
        self.spawn(guest, made, deadline, &mut steps)?;
        // Who looks at the host's list sees that no guest is missing in cosmosd's.
        let names = self.site.host.names(domain, &domain.name);
        self.site.store.apply(&names)?;
        let seen = signals.seen();
        self.site.host.start(domain.domid)?;
        control::wait_boot(&*self.site.store, signals, seen, domain.domid, deadline)?;
        self.site.host.pause(domain.domid)?;
        self.site.disk.records.save(&guest.record(Phase::Pooled))
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error.code, Code::NoMemory | Code::TooMany)
}

/// Takes a guest of the pool over after a restart: it is as it was, or it is removed.
pub fn recover_pooled(site: &Site, guest: &Arc<Guest>, is_paused: bool) -> Result<()> {
    if !is_paused {
        return destroy::remove(site, guest, &guest.all_parts());
    }
    site.watch(guest);
    guest.set_state(State::Pooled, "");
    Ok(())
}

/// Removes the guests of the pool whose preconnected vifs the switch has lost, as after its restart.
/// Their handshakes would start again when they are taken.
pub fn evict_disconnected(site: &Site) {
    let mut pooled = site.table.pooled();
    pooled.retain(|guest| guest.domain.preconnected.vifs > 0);
    if pooled.is_empty() {
        return;
    }
    let there = match site.switch.preconnected() {
        Ok(vifs) => vifs.into_iter().map(|vif| (vif.domid, vif.devid)),
        Err(e) => return warn!("pool: {e}"),
    };
    let there: HashSet<_> = there.collect();
    for guest in pooled {
        let Domain {
            domid,
            preconnected,
            ..
        } = guest.domain;
        if (0..preconnected.vifs).all(|devid| there.contains(&(domid, devid))) {
            continue;
        }
        info!("pool: the switch has lost the vifs of domain {domid}; it is replaced");
        destroy::evict(site, &guest).unwrap_or_else(|e| warn!("pool: {e}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report;
    use crate::testing::{World, good, spec, uuid};

    /// A world whose pool has its two guests, domains 1 and 2.
    fn filled() -> World {
        let world = World::new();
        while world.maker.fill_pool_by_one().unwrap() {}
        assert_eq!(world.site.table.pooled().len(), 2);
        world
    }

    #[test]
    fn a_guest_of_the_pool_becomes_the_new_guest() {
        let world = filled();
        world.faults.take();
        assert!(report::guests(&world.site).guests.is_empty());
        for domid in [1, 2] {
            let name = world.store.value(&format!("/local/domain/{domid}/name"));
            assert!(name.unwrap().starts_with("pool "));
        }
        let created = world.create(&spec(1)).unwrap();
        assert!(created.domid <= 2);
        let calls = world.faults.take();
        assert!(calls.contains(&"host.claim".to_owned()), "{calls:?}");
        assert!(!calls.contains(&"host.spawn".to_owned()), "{calls:?}");
        assert_eq!(world.store.rule(created.domid).unwrap(), "deny all");
        let name = format!("/local/domain/{}/name", created.domid);
        assert_eq!(world.store.value(&name).unwrap(), uuid(1).as_str());
        assert_eq!(world.site.table.pooled().len(), 1);
        assert!(world.maker.fill_pool_by_one().unwrap());
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.site.table.pooled().len(), 2);
    }

    #[test]
    fn a_taken_guest_costs_few_requests_to_the_store() {
        let world = filled();
        let mut plain = spec(1);
        (plain.vifs, plain.writes) = (Vec::new(), Vec::new());
        let before = world.store.requests();
        world.create(&plain).unwrap();
        // The domain's name, the three nodes of a short configuration; the guest's answer; its
        // state and error for subscribers.
        let made = world.store.requests() - before;
        bounds::hold("max_pooled_guest_store_requests", made as f64);
    }

    #[test]
    fn the_next_guest_of_a_size_is_made_ahead() {
        let world = World::with_demand(Vec::new(), 16);
        assert!(!world.maker.fill_pool_by_one().unwrap(), "nobody asked yet");
        let first = world.create(&spec(1)).unwrap();
        assert!(world.maker.fill_pool_by_one().unwrap());
        let pooled = world.site.table.pooled();
        assert_eq!(pooled.len(), 1);
        assert_eq!(
            pooled[0].domain.preconnected.vifs as usize,
            spec(1).vifs.len()
        );
        drop(pooled);
        let second = world.create(&spec(2)).unwrap();
        assert!(first.domid != second.domid && second.domid == 2);
        while world.maker.fill_pool_by_one().unwrap() {}
        assert_eq!(world.site.table.pooled().len(), 2, "16 MiB");
    }

    #[test]
    fn guests_on_demand_leave_with_the_demand_and_need_no_room() {
        let world = World::with_demand(Vec::new(), 1024);
        let mut large = spec(1);
        large.memory_mib = good(40);
        world.create(&large).unwrap();
        assert!(!world.maker.fill_pool_by_one().unwrap(), "40 of 64 MiB");
        world.destroy(&uuid(1)).unwrap();
        assert!(world.maker.fill_pool_by_one().unwrap());
        let world = world.restart();
        assert!(world.maker.fill_pool_by_one().unwrap(), "it is removed");
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_failed_is_no_demand() {
        let world = World::with_demand(Vec::new(), 16);
        world.faults.fail("host.start");
        world.create(&spec(1)).err().unwrap();
        world.faults.mend();
        assert!(!world.maker.fill_pool_by_one().unwrap());
    }

    #[test]
    fn only_a_guest_like_it_is_taken() {
        let world = filled();
        let mut larger = spec(1);
        larger.memory_mib = good(9);
        assert_eq!(world.create(&larger).unwrap().domid, 3);
        assert_eq!(world.site.table.pooled().len(), 2);
    }

    #[test]
    fn the_pool_makes_room() {
        let world = filled();
        let mut large = spec(1);
        large.memory_mib = good(56);
        world.create(&large).unwrap();
        assert_eq!(world.site.table.pooled().len(), 1);
        let error = world.maker.fill_pool_by_one().unwrap_err();
        assert_eq!(error.code, Code::NoMemory);
        large = spec(2);
        large.memory_mib = good(9);
        let error = world.create(&large).err().unwrap();
        assert_eq!(error.message, "9 MiB asked, 56 of 64 MiB are in use");
        assert!(world.site.table.pooled().is_empty());
    }

    #[test]
    fn a_taken_guest_that_fails_leaves_nothing_of_it() {
        for step in [
            "host.claim",
            "host.start",
            "store.spec",
            "switch.add vale0:g1-1",
        ] {
            let world = filled();
            world.faults.fail(step);
            let error = world.create(&spec(1)).err().unwrap();
            assert!(error.message.contains("injected"), "{step}: {error}");
            world.faults.mend();
            let pooled = world.site.table.pooled();
            assert_eq!(pooled.len(), 1, "{step}");
            destroy::evict(&world.site, &pooled[0]).unwrap();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn a_guest_that_does_not_boot_is_undone() {
        for step in ["host.check", "host.spawn", "host.start", "host.pause"] {
            let world = World::new();
            world.faults.fail(step);
            world.maker.fill_pool_by_one().unwrap_err();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn the_pool_survives_a_restart() {
        let world = filled().restart();
        assert_eq!(world.site.table.pooled().len(), 2);
        assert!(world.create(&spec(1)).unwrap().domid <= 2);
        let running = world.site.table.pooled()[0].domain.domid;
        world.site.host.unpause(running).unwrap();
        let world = world.restart();
        assert!(world.site.table.pooled().is_empty());
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_half_taken_is_undone_whatever_was_written_first() {
        let world = filled();
        let pooled = world.site.table.pooled();
        let (guest, taken) = world.site.table.take(&spec(1), 0, None).unwrap().unwrap();
        // The record of the pool is still there, as after a crash in between.
        let records = &world.site.disk.records;
        records.save(&guest.record(Phase::Partial)).unwrap();
        assert!(records.load_all().unwrap().len() > pooled.len());
        drop((guest, pooled));
        let world = world.restart();
        let left = world.site.table.pooled();
        assert_eq!(left.len(), 1);
        assert_ne!(left[0].domain.domid, taken.domain.domid);
        destroy::evict(&world.site, &left[0]).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_dies_in_the_pool_is_removed() {
        let world = filled();
        let guest = world.site.table.pooled()[0].clone();
        world.host.kill(guest.domain.domid, false);
        destroy::mark_crashed(&world.site, &guest, "crashed");
        assert_eq!(world.site.table.pooled().len(), 1);
        assert!(report::guests(&world.site).guests.is_empty());
    }
}
