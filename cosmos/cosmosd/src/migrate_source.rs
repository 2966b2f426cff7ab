// SPDX-License-Identifier: Apache-2.0
//! The source's side of a migration (docs/adr/0015-move.md). cosmosd halts the guest's routers for
//! one client. The halt ends when the client reports that the guest runs on the target, or goes
//! away.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use log::{info, warn};

use cosmos_proto::answer;

use crate::control;
use crate::error::{Code, Error, Result};
use crate::guest::Guest;
use crate::spec::Uuid;
use crate::toolstack::Toolstack;

/// How long a guest may take to run again whose client has gone.
const RESUME: Duration = Duration::from_secs(30);
/// The connection of a client that an earlier cosmosd had.
pub const FORMER: u64 = u64::MAX;

/// True if a guest is being moved away.
#[derive(Default)]
pub struct MigrateSource(Mutex<Option<Hold>>);

struct Hold {
    /// The client's.
    connection: u64,
    /// The routers that ran.
    halted: Vec<u8>,
    /// True if the other host has the guest, so that it must not run here again by itself.
    is_settled: bool,
}

impl Hold {
    fn new(connection: u64, halted: &[u8]) -> Self {
        Self {
            connection,
            halted: halted.to_vec(),
            is_settled: false,
        }
    }
}

impl MigrateSource {
    /// The state of a guest whose routers an earlier cosmosd halted.
    pub fn former(halted: &[u8]) -> Self {
        let hold = (!halted.is_empty()).then(|| Hold::new(FORMER, halted));
        Self(Mutex::new(hold))
    }

    /// Fails while the guest is being moved.
    pub fn check(&self) -> Result<()> {
        check(&self.lock())
    }

    /// The routers that run again after a crash of this daemon.
    pub fn to_resume(&self) -> Vec<u8> {
        let hold = self.lock();
        let mine = hold.as_ref().filter(|hold| !hold.is_settled);
        mine.map_or_else(Vec::new, |hold| hold.halted.clone())
    }

    fn begin(&self, connection: u64) -> Result<()> {
        let mut hold = self.lock();
        check(&hold)?;
        *hold = Some(Hold::new(connection, &[]));
        Ok(())
    }

    /// Notes that a client will run these routers next.
    pub fn hold(&self, connection: u64, halted: &[u8]) {
        *self.lock() = Some(Hold::new(connection, halted));
    }

    fn set_halted(&self, routers: &[u8]) {
        if let Some(hold) = &mut *self.lock() {
            hold.halted = routers.to_vec();
        }
    }

    fn settle(&self, connection: u64) -> Result<()> {
        match &mut *self.lock() {
            Some(hold) if hold.connection == connection => hold.is_settled = true,
            _ => return Err(not_moved()),
        }
        Ok(())
    }

    /// The routers a client has halted by this move.
    fn halted_by(&self, connection: u64) -> Option<Vec<u8>> {
        let hold = self.lock();
        let mine = hold.as_ref().filter(|hold| hold.connection == connection);
        mine.map(|hold| hold.halted.clone())
    }

    fn is_settled(&self) -> bool {
        self.lock().as_ref().is_some_and(|hold| hold.is_settled)
    }

    pub fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Hold>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(hold: &Option<Hold>) -> Result<()> {
    match hold {
        None => Ok(()),
        Some(_) => Err(Error::new(
            Code::Busy,
            "the guest is being moved to another host",
        )),
    }
}

fn not_moved() -> Error {
    Error::bad_request("the guest is not being moved by this client")
}

impl Toolstack {
    /// Halts a guest's routers for a client that moves it, and keeps others from changing it;
    /// returns how they were.
    pub fn migrate_source(
        &self,
        uuid: &Uuid,
        connection: u64,
        timeout: Duration,
    ) -> Result<Vec<answer::Router>> {
        let guest = self.table.get(uuid)?;
        guest.check_answers()?;
        guest.migrate_target.check()?;
        guest.migrate_source.begin(connection)?;
        let halted = self.halt(&guest, Instant::now() + timeout);
        if halted.is_err() {
            self.stay(&guest, connection, RESUME)
                .unwrap_or_else(|e| warn!("guest {uuid}: {e}"));
        }
        halted
    }

    fn halt(&self, guest: &Guest, deadline: Instant) -> Result<Vec<answer::Router>> {
        let routers = control::routers(self.router_of(guest, 0, deadline))?;
        let ran = routers.iter().filter(|router| !router.is_halted());
        let ran: Vec<u8> = ran.map(|router| router.rid).collect();
        guest.migrate_source.set_halted(&ran);
        // On disk before they are: the next cosmosd lets them run again.
        self.keep(guest)?;
        self.run_all(guest, &ran, false, deadline)?;
        Ok(routers)
    }

    /// The other host has the guest: it will not run here again unless somebody wants it.
    pub fn settle_departure(&self, uuid: &Uuid, connection: u64) -> Result<()> {
        let guest = self.table.get(uuid)?;
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
        run.and_then(|()| self.keep(guest))
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
