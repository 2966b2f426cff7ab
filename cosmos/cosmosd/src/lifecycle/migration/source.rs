// SPDX-License-Identifier: Apache-2.0
//! The source's side of a migration (docs/adr/0070-live-migration.md). cosmosd halts the guest's routers for
//! one client. The halt ends when the client reports that the guest runs on the target, or goes
//! away.

use std::time::{Duration, Instant};

use log::warn;

use cosmos_proto::{MigrateBegin, OfGuest, answer};

use crate::base::error::Result;
use crate::changes;
use crate::control;
use crate::guest::Guest;
use crate::site::Site;

/// How long a guest may take to run again whose client has gone.
pub const RESUME: Duration = Duration::from_secs(30);

/// Halts a guest's routers for a client that moves it, and keeps others from changing it;
/// returns how they were, and its numbered changes.
pub fn begin(site: &Site, args: &MigrateBegin, connection: u64) -> Result<answer::Halted> {
    let (uuid, timeout) = (&args.uuid, args.timeout_ms.duration());
    let guest = site.table.get(uuid)?;
    guest.check_is_click()?;
    guest.check_answers()?;
    guest.migrate_target.check()?;
    depart(&guest, connection)?;
    let halted = halt(site, &guest, Instant::now() + timeout);
    if halted.is_err() {
        resume(site, &guest, connection, RESUME).unwrap_or_else(|e| warn!("guest {uuid}: {e}"));
    }
    halted
}

/// From here on the guest takes no numbered change.
fn depart(guest: &Guest, connection: u64) -> Result<()> {
    let _order = guest.ledger.lock_changes();
    guest.ledger.state().check_movable()?;
    guest.migrate_source.begin(connection)
}

fn halt(site: &Site, guest: &Guest, deadline: Instant) -> Result<answer::Halted> {
    let routers = control::routers(site.router_of(guest, 0, deadline))?;
    let ran = routers.iter().filter(|router| !router.is_halted());
    let ran: Vec<u8> = ran.map(|router| router.rid).collect();
    guest.migrate_source.set_halted(&ran);
    // On disk before they are: the next cosmosd lets them run again.
    site.save_record(guest)?;
    run_all(site, guest, &ran, false, deadline)?;
    let changes = changes::history(site, guest)?;
    Ok(answer::Halted { routers, changes })
}

/// The other host has the guest: it will not run here again unless somebody wants it.
pub fn commit(site: &Site, of: &OfGuest, connection: u64) -> Result<()> {
    let guest = site.table.get(&of.uuid)?;
    guest.migrate_source.halted_by(connection)?;
    site.set_migrated_away(&guest, true)?;
    guest.migrate_source.commit(connection)?;
    site.save_record(&guest)
}

/// The guest does not move: what was halted runs again.
pub fn cancel(site: &Site, args: &MigrateBegin, connection: u64) -> Result<()> {
    let guest = site.table.get(&args.uuid)?;
    resume(site, &guest, connection, args.timeout_ms.duration())
}

/// Lets run again what is halted for a client, and others change the guest.
pub fn resume(site: &Site, guest: &Guest, connection: u64, timeout: Duration) -> Result<()> {
    let halted = guest.migrate_source.halted_by(connection)?;
    let run = run_all(site, guest, &halted, true, Instant::now() + timeout);
    guest.migrate_source.end();
    run.and_then(|()| site.set_migrated_away(guest, false))
        .and_then(|()| site.save_record(guest))
}

/// Halts routers, or lets them run.
fn run_all(site: &Site, guest: &Guest, rids: &[u8], run: bool, deadline: Instant) -> Result<()> {
    rids.iter()
        .try_for_each(|rid| control::run(site.router_of(guest, *rid, deadline), run))
}
