// SPDX-License-Identifier: Apache-2.0
//! The routers of guests and their handlers. Changes with a number are in `changes`.

use cosmos_proto::answer::{self, ReadError, ReadOutcome};
use cosmos_proto::{
    Install, MAX_READ_BYTES, OfGuest, OfRouter, Read, Reads, Rid, Run, TimeoutMs, Writes,
};

use crate::base::error::{Code, Error, Result};
use crate::base::text::escape;
use crate::control::{self, Router, RouterSpec};
use crate::guest::Guest;
use crate::site::Site;
use crate::spec::pairs;

/// Bytes of a console's end in which the cause of a silence is looked for.
const LAST_WORDS: usize = 400;
/// The guests' name for the store's answer that their quota is used up (xen/io/xs_wire.h).
const NO_SPACE: &str = "ENOSPC";

/// Asks a router something, and waits for the guest until `timeout`.
fn ask<T>(
    site: &Site,
    guest: &Guest,
    rid: Rid,
    timeout: TimeoutMs,
    request: impl FnOnce(Router<'_>) -> Result<T>,
) -> Result<T> {
    let answer = request(site.router(guest, rid, timeout)?);
    answer.map_err(|error| with_cause(site, guest, error))
}

/// Begins a change; fails while a client moves the guest away.
fn change<T>(
    site: &Site,
    guest: &Guest,
    rid: Rid,
    timeout: TimeoutMs,
    request: impl FnOnce(Router<'_>) -> Result<T>,
) -> Result<T> {
    guest.migrate_source.check()?;
    ask(site, guest, rid, timeout, request)
}

/// A guest whose quota is used up cannot answer: it says so on its console only.
pub fn with_cause(site: &Site, guest: &Guest, error: Error) -> Error {
    if error.code != Code::Timeout {
        return error;
    }
    let tail = site.host.console(&guest.domain, LAST_WORDS);
    let tail = tail.map_or_else(|_| String::new(), |tail| escape(&tail));
    let Some(words) = tail.lines().rev().find(|line| line.contains(NO_SPACE)) else {
        return error;
    };
    let message = format!(
        "the guest's quota in the Xen store is used up, its console says {words:?}; remove what it \
         does not need below /local/domain/{}/data, or destroy it",
        guest.domain.domid
    );
    Error::new(Code::Store, message)
}

/// Installs a router without a number; returns its generation.
pub fn install(site: &Site, args: &Install) -> Result<u64> {
    let (guest, spec) = (site.table.get(&args.uuid)?, spec_of(args));
    let install = |router: Router<'_>| control::install(router, &spec);
    let generation = change(site, &guest, args.rid, args.timeout_ms, install)?;
    note_config(site, &guest, args)?;
    Ok(generation)
}

pub fn spec_of(args: &Install) -> RouterSpec<'_> {
    RouterSpec {
        config: &args.config,
        config_name: &args.config_name,
        halted: args.halted,
    }
}

/// Keeps the name of the first router's new configuration.
pub fn note_config(site: &Site, guest: &Guest, args: &Install) -> Result<()> {
    if args.rid.get() != 0 {
        return Ok(());
    }
    guest.set_config_name(&args.config_name);
    site.save_record(guest).map_err(Error::after_change)
}

/// Halts a router or lets it run again.
pub fn run(site: &Site, args: &Run) -> Result<()> {
    let guest = site.table.get(&args.uuid)?;
    change(site, &guest, args.rid, args.timeout_ms, |router| {
        control::run(router, args.run)
    })?;
    match args.run {
        true => site.set_migrated_away(&guest, false),
        false => Ok(()),
    }
}

pub fn list(site: &Site, of: &OfGuest) -> Result<answer::Routers> {
    let guest = site.table.get(&of.uuid)?;
    let (rid, timeout) = (Rid::default(), TimeoutMs::default());
    let routers = ask(site, &guest, rid, timeout, control::routers)?;
    Ok(answer::Routers { routers })
}

pub fn handlers(site: &Site, of: &OfRouter) -> Result<answer::Handlers> {
    let guest = site.table.get(&of.uuid)?;
    let handlers = ask(site, &guest, of.rid, of.timeout_ms, control::handlers)?;
    Ok(answer::Handlers { handlers })
}

pub fn read(site: &Site, args: &Read) -> Result<answer::HandlerValue> {
    let guest = site.table.get(&args.uuid)?;
    let value = ask(site, &guest, args.rid, args.timeout_ms, |router| {
        control::read(router, &args.name, &args.param)
    })?;
    Ok(answer::HandlerValue { value })
}

/// Reads several handlers, each for itself. Values beyond a limit in all become errors.
pub fn read_many(site: &Site, args: &Reads) -> Result<answer::HandlerValues> {
    let reads = pairs(&args.names, &args.params)?;
    let guest = site.table.get(&args.uuid)?;
    let values = ask(site, &guest, args.rid, args.timeout_ms, |router| {
        control::read_many(router, &reads, MAX_READ_BYTES)
    })?;
    let values = values.into_iter().map(outcome).collect();
    Ok(answer::HandlerValues { values })
}

fn outcome(value: Result<String>) -> ReadOutcome {
    match value {
        Ok(value) => ReadOutcome::Value(value),
        Err(error) => ReadOutcome::Error(ReadError {
            code: error.code.as_str().to_owned(),
            message: error.message,
        }),
    }
}

/// Writes handlers without a number.
pub fn write(site: &Site, args: &Writes) -> Result<()> {
    let guest = site.table.get(&args.uuid)?;
    let written = change(site, &guest, args.rid, args.timeout_ms, |router| {
        control::write(router, &args.writes)
    });
    written.map_err(|error| error.of_write(args.has_secrets))
}
