// SPDX-License-Identifier: Apache-2.0
//! All that the verbs do, on whatever host, store and switch they are given.

use std::sync::Arc;
use std::time::{Duration, Instant};

use control_socket::EventHub;
use cosmos_proto::answer;
use serde_json::json;

use crate::build_slots::BuildSlots;
use crate::control::{self, Router, RouterSpec};
use crate::error::{Code, Error, Result};
use crate::guest::{Guest, State, Table};
use crate::health::Health;
use crate::host::Host;
use crate::images::Images;
use crate::ledgers::Ledgers;
use crate::pool::Pool;
use crate::record::{Phase, Records};
use crate::saved::Saved;
use crate::spec::{Cpu, HandlerName, Uuid, Write};
use crate::state_room::StateRoom;
use crate::store::{Store, Watchers};
use crate::switch::Switch;
use crate::text::escape;

/// The most console text one call gives, in bytes of the log.
pub const MAX_CONSOLE: usize = 256 << 10;

/// Bytes of a console's end in which the cause of a silence is looked for.
const LAST_WORDS: usize = 400;
/// The guests' name for the store's answer that their quota is used up (xen/io/xs_wire.h).
const NO_SPACE: &str = "ENOSPC";

/// See the module.
pub struct Toolstack {
    pub host: Box<dyn Host>,
    pub turns: BuildSlots,
    pub store: Arc<dyn Store>,
    pub switch: Box<dyn Switch>,
    pub records: Records,
    pub ledgers: Ledgers,
    pub table: Arc<Table>,
    pub watchers: Arc<Watchers>,
    pub events: Arc<EventHub>,
    pub health: Health,
    pub pool: Pool,
    pub saved: Saved,
    pub room: Arc<StateRoom>,
    pub started: Instant,
}

impl Toolstack {
    /// A router of a guest that can answer.
    pub fn router<'a>(
        &'a self,
        guest: &'a Guest,
        rid: u8,
        timeout: Duration,
    ) -> Result<Router<'a>> {
        control::check_rid(rid)?;
        guest.check_answers()?;
        Ok(self.router_of(guest, rid, Instant::now() + timeout))
    }

    pub fn router_of<'a>(&'a self, guest: &'a Guest, rid: u8, deadline: Instant) -> Router<'a> {
        Router {
            store: &*self.store,
            signals: &guest.signals,
            requests: &guest.requests,
            domid: guest.domain.domid,
            rid,
            deadline,
        }
    }

    /// Asks a router something, for which the guest has so long.
    fn ask<T>(
        &self,
        guest: &Guest,
        rid: u8,
        timeout: Duration,
        request: impl FnOnce(Router<'_>) -> Result<T>,
    ) -> Result<T> {
        let answer = request(self.router(guest, rid, timeout)?);
        answer.map_err(|error| self.with_cause(guest, error))
    }

    /// Begins a change; fails while a client moves the guest away.
    fn change<T>(
        &self,
        guest: &Guest,
        rid: u8,
        timeout: Duration,
        request: impl FnOnce(Router<'_>) -> Result<T>,
    ) -> Result<T> {
        guest.migrate_source.check()?;
        self.ask(guest, rid, timeout, request)
    }

    /// A guest whose quota is used up cannot answer: it says so on its console only.
    pub fn with_cause(&self, guest: &Guest, error: Error) -> Error {
        if error.code != Code::Timeout {
            return error;
        }
        let tail = self.host.console(&guest.domain, LAST_WORDS);
        let tail = tail.map_or_else(|_| String::new(), |tail| escape(&tail));
        let Some(words) = tail.lines().rev().find(|line| line.contains(NO_SPACE)) else {
            return error;
        };
        let message = format!(
            "the guest's quota in the Xen store is used up, its console says {words:?}; remove \
             what it does not need below /local/domain/{}/data, or destroy it",
            guest.domain.domid
        );
        Error::new(Code::Store, message)
    }

    pub fn install(
        &self,
        uuid: &Uuid,
        rid: u8,
        spec: &RouterSpec<'_>,
        timeout: Duration,
    ) -> Result<u64> {
        let guest = self.table.get(uuid)?;
        let install = |router: Router<'_>| control::install(router, spec);
        let generation = self.change(&guest, rid, timeout, install)?;
        if rid == 0 {
            guest.set_config_name(spec.config_name);
            self.keep(&guest).map_err(Error::after_change)?;
        }
        Ok(generation)
    }

    /// Halts a router or lets it run again.
    pub fn run(&self, uuid: &Uuid, rid: u8, run: bool, timeout: Duration) -> Result<()> {
        let guest = self.table.get(uuid)?;
        self.change(&guest, rid, timeout, |router| control::run(router, run))?;
        match run {
            true => self.set_left(&guest, false),
            false => Ok(()),
        }
    }

    pub fn set_cpu(&self, uuid: &Uuid, cpu: &Cpu) -> Result<()> {
        let guest = self.table.get(uuid)?;
        let _owner = guest.own();
        match guest.state() {
            State::Running | State::Paused => self.host.set_cpu(&guest.domain, cpu),
            _ => guest.check_answers(),
        }
    }

    /// Writes what of a guest has changed to its state file.
    pub fn keep(&self, guest: &Guest) -> Result<()> {
        let _owner = guest.own();
        match guest.state() {
            State::Running | State::Paused => self.records.save(&guest.record(Phase::Complete)),
            _ => Ok(()),
        }
    }

    pub fn routers(&self, uuid: &Uuid, timeout: Duration) -> Result<Vec<answer::Router>> {
        let guest = self.table.get(uuid)?;
        self.ask(&guest, 0, timeout, control::routers)
    }

    pub fn handlers(
        &self,
        uuid: &Uuid,
        rid: u8,
        timeout: Duration,
    ) -> Result<Vec<answer::Handler>> {
        let guest = self.table.get(uuid)?;
        self.ask(&guest, rid, timeout, control::handlers)
    }

    /// Reads a handler, by its name and parameter.
    pub fn read(
        &self,
        uuid: &Uuid,
        rid: u8,
        (name, param): (&str, &str),
        timeout: Duration,
    ) -> Result<String> {
        let guest = self.table.get(uuid)?;
        self.ask(&guest, rid, timeout, |router| {
            control::read(router, name, param)
        })
    }

    /// Reads handlers by their names, several at a time. Values beyond `limit` bytes in all become
    /// errors.
    pub fn read_many(
        &self,
        (uuid, rid): (&Uuid, u8),
        names: &[HandlerName],
        limit: usize,
        timeout: Duration,
    ) -> Result<Vec<Result<String>>> {
        let guest = self.table.get(uuid)?;
        self.ask(&guest, rid, timeout, |router| {
            control::read_many(router, names, limit)
        })
    }

    pub fn write(&self, uuid: &Uuid, rid: u8, writes: &[Write], timeout: Duration) -> Result<()> {
        let guest = self.table.get(uuid)?;
        self.change(&guest, rid, timeout, |router| {
            control::write(router, writes)
        })
    }

    pub fn pause(&self, uuid: &Uuid) -> Result<()> {
        self.switch_state(uuid, State::Running, State::Paused, |domid| {
            self.host.pause(domid)
        })
    }

    pub fn unpause(&self, uuid: &Uuid) -> Result<()> {
        self.switch_state(uuid, State::Paused, State::Running, |domid| {
            self.host.unpause(domid)
        })
    }

    /// Goes from one state to another; being there already is fine.
    fn switch_state(
        &self,
        uuid: &Uuid,
        from: State,
        to: State,
        act: impl FnOnce(u16) -> Result<()>,
    ) -> Result<()> {
        let guest = self.table.get(uuid)?;
        guest.check_settled()?;
        let _owner = guest.own();
        match guest.state() {
            state if state == to => Ok(()),
            state if state == from => {
                guest.signals.check()?;
                act(guest.domain.domid)?;
                self.turn_to(&guest, to);
                Ok(())
            }
            _ => guest.check_answers(),
        }
    }

    pub fn console(&self, uuid: &Uuid, max_bytes: usize) -> Result<String> {
        let guest = self.table.get(uuid)?;
        let tail = self
            .host
            .console(&guest.domain, max_bytes.min(MAX_CONSOLE))?;
        Ok(escape(&tail))
    }

    /// One guest as `info` shows it.
    pub fn info(&self, uuid: &Uuid) -> Result<answer::Guest> {
        let guest = self.table.get(uuid)?;
        self.describe(&guest).ok_or_else(|| {
            Error::new(
                Code::NoSuchGuest,
                format!("guest {uuid} is being destroyed"),
            )
        })
    }

    /// All guests, without their address lists: those of many guests do not fit into one answer.
    pub fn list(&self) -> Vec<answer::Guest> {
        let guests = self.table.all();
        guests
            .iter()
            .filter_map(|guest| self.outline(guest))
            .collect()
    }

    fn outline(&self, guest: &Guest) -> Option<answer::Guest> {
        let mut described = self.describe(guest)?;
        described
            .vifs
            .iter_mut()
            .for_each(|vif| vif.allowed.clear());
        Some(described)
    }

    fn describe(&self, guest: &Guest) -> Option<answer::Guest> {
        guest.describe(self.host.cpu_time_ns(guest.domain.domid))
    }

    /// The cache of images, on a host that has one.
    pub fn images(&self) -> Result<&Images> {
        let kind = self.host.kind();
        let message = format!("hosts of kind {kind} run the installed engine only");
        self.host
            .images()
            .ok_or_else(|| Error::new(Code::Unsupported, message))
    }

    pub fn describe_host(&self) -> Result<answer::Host> {
        let capacity = self.table.capacity();
        let guests = self.table.all();
        Ok(answer::Host {
            host_kind: self.host.kind().to_owned(),
            memory_mib: capacity.memory_mib.into(),
            memory_used_mib: self.table.memory_used_mib(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            guests: guests.iter().filter(|g| g.state().is_listed()).count(),
            pooled: self.table.pooled().len(),
            max_guests: capacity.guests,
            uptime_s: self.started.elapsed().as_secs(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine_sha256: self.host.engine_sha256()?,
            faults: self.health.faults(),
        })
    }
}

impl Toolstack {
    /// Lets others find a guest that runs now, and tells subscribers the state of its router.
    /// Its earlier changes of state were those of a guest that no verb finds.
    pub fn publish(&self, guest: &Guest) {
        if guest.unreachable().is_some() {
            self.look_for_link(guest); // The store began anew before it was made, or meanwhile.
        }
        guest.set_state(State::Running, "");
        let domid = guest.domain.domid;
        announce_states(&self.table, &*self.store, &self.events, domid, 1);
    }
}

/// The event after routers of a guest changed their state.
pub fn announce_states(
    table: &Table,
    store: &dyn Store,
    events: &EventHub,
    domid: u16,
    routers: u64,
) {
    let Some(guest) = table
        .by_domid(domid)
        .filter(|g| g.state() != State::Partial)
    else {
        return;
    };
    for rid in (0..=clickos_protocol::MAX_RID).filter(|rid| routers & (1 << rid) != 0) {
        if let Ok(Some(state)) = control::router_state(store, domid, rid) {
            let data = json!({
                "uuid": guest.domain.uuid, "rid": rid,
                "state": state.word, "message": state.error,
            });
            events.publish("state", data);
        }
    }
}
