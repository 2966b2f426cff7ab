// SPDX-License-Identifier: Apache-2.0
//! One guest: what it is, how it is, and who may change that.

mod created_parts;
mod domids;
mod migration;
pub mod record;
mod shape;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use cosmos_proto::answer;

use crate::base::error::{Code, Error, Result};
use crate::control::Requests;
use crate::host::{Domain, Instance, Rings, usual_rings};
use crate::spec::{Link, Vif};
use crate::state::ledger::{Ledger, LedgerState};
use crate::store::Signals;
use record::{Phase, Record};

pub use created_parts::{CreatedParts, in_switch};
pub use migration::{FORMER, MigrateSource, MigrateTarget};
pub use shape::Shape;
pub use table::{Capacity, Table};

/// The listed state of a guest that runs and that the Xen store has lost.
const UNREACHABLE: &str = "unreachable";

/// How a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Being created or destroyed: not listed.
    Partial,
    /// Booted and paused for the next guest of this shape; no list shows it.
    Pooled,
    Running,
    Paused,
    /// Its memory lies in a file.
    Saved,
    /// It died; what it used was released.
    Crashed,
    /// The guest is unusable, but remains exist: destroy it.
    Error,
}

impl State {
    /// As it is listed; what is being created or destroyed is not.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Partial | Self::Pooled => None,
            Self::Running => Some("running"),
            Self::Paused => Some("paused"),
            Self::Saved => Some("saved"),
            Self::Crashed => Some("crashed"),
            Self::Error => Some("error"),
        }
    }

    pub fn is_listed(self) -> bool {
        self.name().is_some()
    }

    /// True if its memory is in use.
    pub fn holds_memory(self) -> bool {
        !matches!(self, Self::Crashed | Self::Saved)
    }
}

/// The part of a guest that changes during its life.
#[derive(Debug, Clone)]
pub struct Status {
    pub state: State,
    /// Why it is crashed or in error.
    pub reason: String,
    /// Name of the first router's configuration.
    pub config_name: String,
    pub instance: Option<Instance>,
    /// The links that have changed since the guest was made, by devid.
    pub links: BTreeMap<u32, Link>,
    /// The interfaces that came after it was made.
    pub added: Vec<Vif>,
    /// The devids of those that it was made with and that left it.
    pub detached: BTreeSet<u32>,
    /// Why requests do not come to it, while it forwards on.
    pub unreachable: Option<Unreachable>,
    /// Descriptors of its vifs' rings, by devid, where guests are processes.
    pub rings: BTreeMap<u32, Rings>,
}

/// A guest that the Xen store has lost.
#[derive(Debug, Clone)]
pub struct Unreachable {
    pub reason: String,
    /// When it got a link to the store that is there now.
    pub linked: Option<Instant>,
}

/// See the module.
pub struct Guest {
    pub domain: Domain,
    /// Seconds since 1970.
    pub created_s: u64,
    pub signals: Arc<Signals>,
    pub requests: Requests,
    pub ledger: Ledger,
    pub migrate_source: MigrateSource,
    pub migrate_target: MigrateTarget,
    /// Held by the one thread that makes, stops or removes it.
    lifecycle: Mutex<()>,
    status: Mutex<Status>,
    /// Remains that a failed undo has to remove again.
    leftovers: Mutex<Option<CreatedParts>>,
    /// Memory, in MiB, of the guest that is about to take its place.
    held_mib: AtomicU32,
}

impl Guest {
    pub fn new(domain: Domain, created_s: u64, mut status: Status) -> Self {
        for (index, vif) in domain.vifs.iter().enumerate() {
            let usual = || usual_rings(index);
            status.rings.entry(vif.devid).or_insert_with(usual);
        }
        Self {
            domain,
            created_s,
            signals: Arc::default(),
            requests: Requests::default(),
            ledger: Ledger::default(),
            migrate_source: MigrateSource::default(),
            migrate_target: MigrateTarget::default(),
            lifecycle: Mutex::new(()),
            status: Mutex::new(status),
            leftovers: Mutex::default(),
            held_mib: AtomicU32::default(),
        }
    }

    /// Counts the memory of the guest that is about to take its place; 0 if none is.
    pub fn hold_memory(&self, mib: u32) {
        self.held_mib.store(mib, Ordering::Relaxed);
    }

    /// The memory that others may not have, in MiB.
    pub fn memory_mib(&self) -> u32 {
        let own = match self.state().holds_memory() {
            true => self.domain.memory_mib,
            false => 0,
        };
        own.max(self.held_mib.load(Ordering::Relaxed))
    }

    /// A guest as an earlier cosmosd left it.
    pub fn from_record(record: Record, ledger: LedgerState) -> Self {
        let state = match record.phase {
            Phase::Partial | Phase::Pooled => State::Partial,
            Phase::Complete | Phase::Saving => State::Running,
            Phase::Saved => State::Saved,
            Phase::Crashed => State::Crashed,
        };
        let status = Status {
            state,
            reason: record.reason,
            config_name: record.config_name,
            instance: record.instance,
            links: BTreeMap::new(),
            added: Vec::new(),
            detached: BTreeSet::new(),
            unreachable: None,
            rings: record.rings,
        };
        let domain = Domain {
            domid: record.domid,
            handle: record.handle.unwrap_or_else(|| record.uuid.clone()),
            uuid: record.uuid,
            name: record.name,
            memory_mib: record.memory_mib,
            vcpus: record.vcpus,
            image_sha256: record.image_sha256,
            vifs: record.vifs,
            nics: record.nics,
            kernel: record.kernel,
            preconnected: record.preconnected,
        };
        let migrate_source = MigrateSource::former(&record.halted);
        Self {
            migrate_source,
            ledger: Ledger::of(ledger),
            ..Self::new(domain, record.created_s, status)
        }
    }

    /// The record for a restarted cosmosd.
    pub fn record(&self, phase: Phase) -> Record {
        let status = self.status();
        Record {
            uuid: self.domain.uuid.clone(),
            handle: Some(self.domain.handle.clone()),
            name: self.domain.name.clone(),
            domid: self.domain.domid,
            memory_mib: self.domain.memory_mib,
            vcpus: self.domain.vcpus,
            created_s: self.created_s,
            image_sha256: self.domain.image_sha256.clone(),
            vifs: self.vifs(),
            rings: status.rings,
            nics: self.domain.nics.clone(),
            kernel: self.domain.kernel.clone(),
            preconnected: self.domain.preconnected,
            config_name: status.config_name,
            phase: match self.migrate_target.is_under_way() {
                true => Phase::Partial, // Undone after a crash.
                false => phase,
            },
            reason: status.reason,
            instance: status.instance,
            halted: self.migrate_source.to_resume(),
        }
    }

    /// Waits until no other thread makes, stops or removes it.
    pub fn lock_lifecycle(&self) -> MutexGuard<'_, ()> {
        self.lifecycle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::lock_lifecycle`]; none while another thread has it.
    pub fn try_lock_lifecycle(&self) -> Option<MutexGuard<'_, ()>> {
        match self.lifecycle.try_lock() {
            Ok(owner) => Some(owner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub fn status(&self) -> Status {
        self.lock().clone()
    }

    pub fn state(&self) -> State {
        self.lock().state
    }

    pub fn set_state(&self, state: State, reason: impl Into<String>) {
        let mut status = self.lock();
        status.state = state;
        status.reason = reason.into();
    }

    pub fn unreachable(&self) -> Option<Unreachable> {
        self.lock().unreachable.clone()
    }

    /// Returns true if that changes how it is listed.
    pub fn set_unreachable(&self, unreachable: Option<Unreachable>) -> bool {
        let mut status = self.lock();
        let is_changed = status.unreachable.is_some() != unreachable.is_some();
        status.unreachable = unreachable;
        is_changed && status.state == State::Running
    }

    /// Everything there can be of it.
    pub fn all_parts(&self) -> CreatedParts {
        CreatedParts {
            prepared: true,
            ports: in_switch(&self.domain.uuid, &self.vifs()),
            spawned: true,
        }
    }

    pub fn leftovers(&self) -> Option<CreatedParts> {
        self.lock_leftovers().clone()
    }

    pub fn set_leftovers(&self, parts: Option<CreatedParts>) {
        *self.lock_leftovers() = parts;
    }

    fn lock_leftovers(&self) -> MutexGuard<'_, Option<CreatedParts>> {
        self.leftovers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails while it is being moved to or from another host.
    pub fn check_not_migrating(&self) -> Result<()> {
        self.migrate_target.check()?;
        self.migrate_source.check()
    }

    /// Its interfaces with their links as they are now.
    pub fn vifs(&self) -> Vec<Vif> {
        let status = self.lock();
        let first = self.domain.vifs.iter();
        let first = first.filter(|vif| !status.detached.contains(&vif.devid));
        let mut vifs: Vec<Vif> = first.chain(&status.added).cloned().collect();
        for vif in &mut vifs {
            vif.link = *status.links.get(&vif.devid).unwrap_or(&vif.link);
        }
        vifs
    }

    /// Adds an interface, or replaces the one of this devid.
    pub fn add_vif(&self, vif: Vif) {
        self.remove_vif(vif.devid);
        let mut status = self.lock();
        status.links.insert(vif.devid, vif.link);
        status.added.push(vif);
    }

    /// Forgets an interface.
    pub fn remove_vif(&self, devid: u32) {
        let mut status = self.lock();
        if self.domain.vifs.iter().any(|vif| vif.devid == devid) {
            status.detached.insert(devid);
        }
        status.added.retain(|vif| vif.devid != devid);
        status.links.remove(&devid);
    }

    pub fn set_rings(&self, devid: u32, rings: Rings) {
        self.lock().rings.insert(devid, rings);
    }

    pub fn rings(&self, devid: u32) -> Rings {
        let rings = self.lock().rings.get(&devid).copied();
        rings.unwrap_or_else(|| usual_rings(0))
    }

    pub fn set_link(&self, devid: u32, link: Link) {
        self.lock().links.insert(devid, link);
    }

    pub fn set_instance(&self, instance: Instance) {
        self.lock().instance = Some(instance);
    }

    pub fn set_config_name(&self, name: &str) {
        self.lock().config_name = name.to_owned();
    }

    /// Fails for a guest whose kernel is not Click's.
    pub fn check_is_click(&self) -> Result<()> {
        if self.domain.kernel.is_none() {
            return Ok(());
        }
        let message = format!(
            "guest {}: its kernel is not Click's: it has no routers and no handlers",
            self.domain.uuid
        );
        Err(Error::new(Code::Unsupported, message))
    }

    /// Fails unless it runs and can answer.
    pub fn check_answers(&self) -> Result<()> {
        let status = self.status();
        let words = match status.state {
            State::Running => match status.unreachable {
                None => return self.signals.check(),
                Some(of) => format!("is unreachable: {}", of.reason),
            },
            State::Paused => "is paused".to_owned(),
            State::Partial | State::Pooled => "is being created or destroyed".to_owned(),
            State::Saved => "is saved; restore it first".to_owned(),
            State::Crashed => format!("has crashed: {}", status.reason),
            State::Error => format!("is in error: {}", status.reason),
        };
        Err(Error::new(
            Code::DeadGuest,
            format!("guest {} {words}", self.domain.uuid),
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guest as `list` and `info` show it, if they do.
    pub fn describe(&self, cpu_time_ns: Option<u64>) -> Option<answer::Guest> {
        let status = self.status();
        let (state, reason) = match (status.state, status.unreachable) {
            (State::Running, _) if self.migrate_target.is_under_way() => {
                ("arriving", status.reason)
            }
            (State::Running, Some(of)) => (UNREACHABLE, of.reason),
            (state, _) => (state.name()?, status.reason),
        };
        let domain = self.domain.clone();
        let ledger = self.ledger.state();
        Some(answer::Guest {
            incarnation: ledger.incarnation.clone(),
            number: ledger.newest,
            held: ledger.held,
            uuid: domain.uuid,
            name: domain.name,
            domid: domain.domid,
            state: state.to_owned(),
            reason,
            memory_mib: domain.memory_mib,
            vcpus: domain.vcpus,
            created_s: self.created_s,
            cpu_time_ns: cpu_time_ns.unwrap_or(0),
            image_sha256: domain.image_sha256,
            vifs: self.vifs(),
            nics: domain.nics,
            config_name: status.config_name,
        })
    }
}
