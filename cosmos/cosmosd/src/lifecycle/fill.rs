// SPDX-License-Identifier: Apache-2.0
//! The pool of guests that cosmosd makes before a client asks: booted to their control thread, and
//! paused.
//!
//! A taken guest gets the new guest's name, devices and configuration. No other guest used it
//! before. The daemon makes the next one while no client waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{info, warn};

use crate::clock::now_s;
use crate::config::Shelf;
use crate::control;
use crate::error::Result;
use crate::guest::{Guest, Made, Shape, State};
use crate::pool::RETRY;
use crate::record::Phase;
use crate::steps::Steps;
use crate::toolstack::Toolstack;

/// How long a guest may take to boot.
const BOOT: Duration = Duration::from_secs(60);

impl Toolstack {
    /// Keeps the pool full as long as the daemon lives.
    pub fn keep_pool(&self) {
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
        if let Some(guest) = self.table.surplus(&wanted) {
            return self.evict(&guest).map(|()| true);
        }
        match self.table.missing(&wanted) {
            None => Ok(false),
            Some(shape) => self.add_to_pool(&shape).map(|()| true),
        }
    }

    fn wanted_shapes(&self) -> Result<Vec<(Shape, usize)>> {
        let shape = |shelf: &Shelf| -> Result<(Shape, usize)> {
            let image_sha256 = match &shelf.image {
                Some(sha256) => sha256.as_str().to_owned(),
                None => self.host.engine_sha256()?.unwrap_or_default(),
            };
            let memory_mib = shelf.memory_mib;
            let shape = Shape {
                image_sha256,
                memory_mib,
                silent: shelf.silent(),
            };
            Ok((shape, shelf.guests))
        };
        self.pool.shelves.iter().map(shape).collect()
    }

    fn add_to_pool(&self, shape: &Shape) -> Result<()> {
        let guest = self.table.admit_to_pool(shape, now_s())?;
        let _owner = guest.own();
        let mut made = Made::default();
        match self.boot(&guest, &mut made) {
            Ok(()) => {
                guest.set_state(State::Pooled, "");
                let domid = guest.domain.domid;
                info!("pool: domain {domid} of {} MiB is ready", shape.memory_mib);
                Ok(())
            }
            Err(cause) => Err(self.abandon(&guest, &made, cause)),
        }
    }

    /// Makes a guest that waits, paused, for its configuration.
    fn boot(&self, guest: &Arc<Guest>, made: &mut Made) -> Result<()> {
        let (domain, mut steps) = (&guest.domain, Steps::begin());
        self.host.check(domain)?;
        let (signals, deadline) = (&guest.signals, Instant::now() + BOOT);
        self.spawn(guest, made, deadline, &mut steps)?;
        let seen = signals.seen();
        self.host.start(domain.domid)?;
        control::wait_boot(&*self.store, signals, seen, domain.domid, deadline)?;
        self.host.pause(domain.domid)?;
        self.records.save(&guest.record(Phase::Pooled))
    }

    /// Gives up one guest of the pool so that another may have its room; false if there is none.
    pub fn make_room(&self) -> bool {
        let pooled = self.table.pooled();
        let Some(guest) = pooled.first() else {
            return false;
        };
        self.evict(guest)
            .inspect_err(|e| warn!("pool: {e}"))
            .is_ok()
    }

    /// Destroys a guest of the pool, unless somebody has taken it.
    pub fn evict(&self, guest: &Guest) -> Result<()> {
        let _owner = guest.own();
        if !self.table.withdraw(guest) {
            return Ok(());
        }
        self.remove(guest, &Made::all(guest))
    }

    /// Takes a guest of the pool over after a restart: it is as it was, or it is removed.
    pub fn recover_pooled(&self, guest: &Arc<Guest>, is_paused: bool) -> Result<()> {
        if !is_paused {
            return self.remove(guest, &Made::all(guest));
        }
        self.watchers
            .insert(guest.domain.domid, Arc::clone(&guest.signals));
        guest.set_state(State::Pooled, "");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::testing::{World, good, spec, uuid};

    /// A world whose pool has its two guests, domains 1 and 2.
    fn filled() -> World {
        let world = World::new();
        while world.toolstack.fill_pool_by_one().unwrap() {}
        assert_eq!(world.toolstack.table.pooled().len(), 2);
        world
    }

    #[test]
    fn a_guest_of_the_pool_becomes_the_new_guest() {
        let world = filled();
        world.faults.take();
        assert!(world.toolstack.list().is_empty());
        let created = world.toolstack.create(&spec(1)).unwrap();
        assert!(created.domid <= 2);
        let calls = world.faults.take();
        assert!(calls.contains(&"host.claim".to_owned()), "{calls:?}");
        assert!(!calls.contains(&"host.spawn".to_owned()), "{calls:?}");
        assert_eq!(world.store.rule(created.domid).unwrap(), "deny all");
        let name = format!("/local/domain/{}/name", created.domid);
        assert!(world.store.keys().contains(&name));
        assert_eq!(world.toolstack.table.pooled().len(), 1);
        assert!(world.toolstack.fill_pool_by_one().unwrap());
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.toolstack.table.pooled().len(), 2);
    }

    #[test]
    fn a_taken_guest_costs_few_requests_to_the_store() {
        let world = filled();
        let mut plain = spec(1);
        (plain.vifs, plain.writes) = (Vec::new(), Vec::new());
        let before = world.store.requests();
        world.toolstack.create(&plain).unwrap();
        // The domain's name, the three nodes of a short configuration; the guest's answer; its
        // state and error for subscribers.
        let made = world.store.requests() - before;
        bounds::hold("max_pooled_guest_store_requests", made as f64);
    }

    #[test]
    fn only_a_guest_like_it_is_taken() {
        let world = filled();
        let mut larger = spec(1);
        larger.memory_mib = good(9);
        assert_eq!(world.toolstack.create(&larger).unwrap().domid, 3);
        assert_eq!(world.toolstack.table.pooled().len(), 2);
    }

    #[test]
    fn the_pool_makes_room() {
        let world = filled();
        let mut large = spec(1);
        large.memory_mib = good(56);
        world.toolstack.create(&large).unwrap();
        assert_eq!(world.toolstack.table.pooled().len(), 1);
        let error = world.toolstack.fill_pool_by_one().unwrap_err();
        assert_eq!(error.code, Code::NoMemory);
        large = spec(2);
        large.memory_mib = good(9);
        let error = world.toolstack.create(&large).err().unwrap();
        assert_eq!(error.message, "9 MiB asked, 56 of 64 MiB are in use");
        assert!(world.toolstack.table.pooled().is_empty());
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
            let error = world.toolstack.create(&spec(1)).err().unwrap();
            assert!(error.message.contains("injected"), "{step}: {error}");
            world.faults.mend();
            let pooled = world.toolstack.table.pooled();
            assert_eq!(pooled.len(), 1, "{step}");
            world.toolstack.evict(&pooled[0]).unwrap();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn a_guest_that_does_not_boot_is_undone() {
        for step in ["host.check", "host.spawn", "host.start", "host.pause"] {
            let world = World::new();
            world.faults.fail(step);
            world.toolstack.fill_pool_by_one().unwrap_err();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn the_pool_survives_a_restart() {
        let world = filled().restart();
        assert_eq!(world.toolstack.table.pooled().len(), 2);
        assert!(world.toolstack.create(&spec(1)).unwrap().domid <= 2);
        let running = world.toolstack.table.pooled()[0].domain.domid;
        world.toolstack.host.unpause(running).unwrap();
        let world = world.restart();
        assert!(world.toolstack.table.pooled().is_empty());
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_half_taken_is_undone_whatever_was_written_first() {
        let world = filled();
        let pooled = world.toolstack.table.pooled();
        let (guest, taken) = world
            .toolstack
            .table
            .take(&spec(1), 0, None)
            .unwrap()
            .unwrap();
        // The record of the pool is still there, as after a crash in between.
        let records = &world.toolstack.records;
        records.save(&guest.record(Phase::Partial)).unwrap();
        assert!(records.load_all().unwrap().len() > pooled.len());
        drop((guest, pooled));
        let world = world.restart();
        let left = world.toolstack.table.pooled();
        assert_eq!(left.len(), 1);
        assert_ne!(left[0].domain.domid, taken.domain.domid);
        world.toolstack.evict(&left[0]).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_guest_that_dies_in_the_pool_is_removed() {
        let world = filled();
        let guest = world.toolstack.table.pooled()[0].clone();
        world.host.kill(guest.domain.domid, false);
        world.toolstack.mark_crashed(&guest, "crashed");
        assert_eq!(world.toolstack.table.pooled().len(), 1);
        assert!(world.toolstack.list().is_empty());
    }
}
