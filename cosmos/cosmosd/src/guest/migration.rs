// SPDX-License-Identifier: Apache-2.0
//! The client that moves a guest to or from another host, and what it halted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::error::{Code, Error, Result};

/// The connection of a client that an earlier cosmosd had.
pub const FORMER: u64 = u64::MAX;

/// True if a guest is being moved away.
#[derive(Default)]
pub struct MigrateSource(Mutex<Option<OutgoingMigration>>);

struct OutgoingMigration {
    /// The client's.
    connection: u64,
    /// The routers that ran.
    halted: Vec<u8>,
    /// True if the other host has the guest, so that it must not run here again by itself.
    is_committed: bool,
}

impl OutgoingMigration {
    fn new(connection: u64, halted: &[u8]) -> Self {
        Self {
            connection,
            halted: halted.to_vec(),
            is_committed: false,
        }
    }
}

impl MigrateSource {
    /// The state of a guest whose routers an earlier cosmosd halted.
    pub fn former(halted: &[u8]) -> Self {
        let hold = (!halted.is_empty()).then(|| OutgoingMigration::new(FORMER, halted));
        Self(Mutex::new(hold))
    }

    /// Fails while the guest is being moved.
    pub fn check(&self) -> Result<()> {
        check(&self.lock())
    }

    /// The routers that run again after a crash of this daemon.
    pub fn to_resume(&self) -> Vec<u8> {
        let hold = self.lock();
        let mine = hold.as_ref().filter(|hold| !hold.is_committed);
        mine.map_or_else(Vec::new, |hold| hold.halted.clone())
    }

    pub fn begin(&self, connection: u64) -> Result<()> {
        let mut hold = self.lock();
        check(&hold)?;
        *hold = Some(OutgoingMigration::new(connection, &[]));
        Ok(())
    }

    /// Notes that a client will run these routers next.
    pub fn hold(&self, connection: u64, halted: &[u8]) {
        *self.lock() = Some(OutgoingMigration::new(connection, halted));
    }

    pub fn set_halted(&self, routers: &[u8]) {
        if let Some(hold) = &mut *self.lock() {
            hold.halted = routers.to_vec();
        }
    }

    pub fn commit(&self, connection: u64) -> Result<()> {
        match &mut *self.lock() {
            Some(hold) if hold.connection == connection => hold.is_committed = true,
            _ => return Err(not_moved()),
        }
        Ok(())
    }

    /// The routers a client has halted by this move.
    ///
    /// # Errors
    /// `bad-request` for another client.
    pub fn halted_by(&self, connection: u64) -> Result<Vec<u8>> {
        let hold = self.lock();
        let mine = hold.as_ref().filter(|hold| hold.connection == connection);
        mine.map(|hold| hold.halted.clone()).ok_or_else(not_moved)
    }

    pub fn is_committed(&self) -> bool {
        self.lock().as_ref().is_some_and(|hold| hold.is_committed)
    }

    pub fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<OutgoingMigration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(hold: &Option<OutgoingMigration>) -> Result<()> {
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

/// The connection of the client that brings a guest, as long as it does.
#[derive(Default)]
pub struct MigrateTarget(Mutex<Option<u64>>);

impl MigrateTarget {
    /// Fails while the guest is on its way.
    pub fn check(&self) -> Result<()> {
        match self.is_under_way() {
            false => Ok(()),
            true => Err(Error::new(
                Code::Busy,
                "the guest is being moved to this host",
            )),
        }
    }

    pub fn is_under_way(&self) -> bool {
        self.lock().is_some()
    }

    pub fn begin(&self, connection: u64) {
        *self.lock() = Some(connection);
    }

    pub fn end(&self) {
        *self.lock() = None;
    }

    pub fn is_by(&self, connection: u64) -> bool {
        *self.lock() == Some(connection)
    }

    fn lock(&self) -> MutexGuard<'_, Option<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
