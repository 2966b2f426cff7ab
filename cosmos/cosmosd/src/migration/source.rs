// SPDX-License-Identifier: Apache-2.0
//! The source's side of a migration (docs/adr/0070-live-migration.md). cosmosd halts the guest's routers for
//! one client. The halt ends when the client reports that the guest runs on the target, or goes
//! away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{info, warn};

use cosmos_proto::answer;

use crate::control;
use crate::error::Result;
use crate::guest::{Guest, not_moved};
use crate::spec::Uuid;
use crate::toolstack::Toolstack;

/// How long a guest may take to run again whose client has gone.
const RESUME: Duration = Duration::from_secs(30);

impl Toolstack {
    /// Halts a guest's routers for a client that moves it, and keeps others from changing it;
    /// returns how they were, and its numbered changes.
    pub fn migrate_source(
        &self,
        uuid: &Uuid,
        connection: u64,
        timeout: Duration,
    ) -> Result<answer::Halted> {
        let guest = self.table.get(uuid)?;
        guest.check_answers()?;
        guest.migrate_target.check()?;
        self.depart(&guest, connection)?;
        let halted = self.halt(&guest, Instant::now() + timeout);
        if halted.is_err() {
            self.stay(&guest, connection, RESUME)
                .unwrap_or_else(|e| warn!("guest {uuid}: {e}"));
        }
        halted
    }

    /// From here on the guest takes no numbered change.
    fn depart(&self, guest: &Guest, connection: u64) -> Result<()> {
        let _order = guest.ledger.order();
        guest.ledger.book().check_movable()?;
        guest.migrate_source.begin(connection)
    }

    fn halt(&self, guest: &Guest, deadline: Instant) -> Result<answer::Halted> {
        let routers = control::routers(self.router_of(guest, 0, deadline))?;
        let ran = routers.iter().filter(|router| !router.is_halted());
        let ran: Vec<u8> = ran.map(|router| router.rid).collect();
        guest.migrate_source.set_halted(&ran);
        // On disk before they are: the next cosmosd lets them run again.
        self.keep(guest)?;
        self.run_all(guest, &ran, false, deadline)?;
        let changes = self.history(guest)?;
        Ok(answer::Halted { routers, changes })
    }

    /// The other host has the guest: it will not run here again unless somebody wants it.
    pub fn settle_departure(&self, uuid: &Uuid, connection: u64) -> Result<()> {
        let guest = self.table.get(uuid)?;
        guest
            .migrate_source
            .halted_by(connection)
            .ok_or_else(not_moved)?;
        self.set_left(&guest, true)?;
        guest.migrate_source.settle(connection)?;
        self.keep(&guest)
    }

    /// The guest does not move: what was halted runs again.
    pub fn cancel_departure(&self, uuid: &Uuid, connection: u64, timeout: Duration) -> Result<()> {
        let guest = self.table.get(uuid)?;
        self.stay(&guest, connection, timeout)
    }

    /// Lets run again what is halted for a client, and others change the guest.
    pub fn stay(&self, guest: &Guest, connection: u64, timeout: Duration) -> Result<()> {
        let halted = guest
            .migrate_source
            .halted_by(connection)
            .ok_or_else(not_moved)?;
        let run = self.run_all(guest, &halted, true, Instant::now() + timeout);
        guest.migrate_source.end();
        run.and_then(|()| self.set_left(guest, false))
            .and_then(|()| self.keep(guest))
    }

    /// Halts routers, or lets them run.
    fn run_all(&self, guest: &Guest, rids: &[u8], run: bool, deadline: Instant) -> Result<()> {
        rids.iter()
            .try_for_each(|rid| control::run(self.router_of(guest, *rid, deadline), run))
    }

    /// A client has gone: what it was moving away goes on here, unless it has arrived there, and
    /// what it was bringing is undone.
    pub fn forget_client(&self, connection: u64) {
        for guest in self.table.all() {
            if guest.migrate_source.halted_by(connection).is_some() {
                self.end_departure(&guest, connection);
            }
            if guest.migrate_target.is_by(connection) {
                self.turn_away(&guest);
            }
        }
    }

    fn end_departure(&self, guest: &Arc<Guest>, connection: u64) {
        let uuid = &guest.domain.uuid;
        if guest.migrate_source.is_settled() {
            info!("guest {uuid} stays halted: it runs elsewhere, or has to be started here");
            return guest.migrate_source.end();
        }
        match self.stay(guest, connection, RESUME) {
            Ok(()) => info!("guest {uuid}: its mover went away; its routers go on"),
            Err(e) => warn!("guest {uuid}: its mover went away: {e}; start its routers"),
        }
    }
}
