// SPDX-License-Identifier: Apache-2.0
//! The parts of this host that all verbs and threads share, and what several of them do with them.
//!
//! The verbs are functions of the site: those about the life of a guest in `lifecycle`, about its
//! routers in `routers` and `changes`, about what is there in `report`. Making a guest needs more,
//! which `lifecycle::Maker` owns.

use std::sync::Arc;
use std::time::Instant;

use control_socket::EventHub;
use cosmos_proto::{Rid, TimeoutMs};
use serde_json::json;

use crate::base::error::Result;
use crate::control::{self, Router};
use crate::disk::Disk;
use crate::guest::record::Phase;
use crate::guest::{Guest, State, Table};
use crate::health::Health;
use crate::host::Host;
use crate::state::ledger::LedgerState;
use crate::store::{Store, Watchers};
use crate::switch::Switch;

/// The state of a router that takes packets.
const RUNNING: &str = "Running";

/// See the module.
pub struct Site {
    pub(crate) host: Box<dyn Host>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) switch: Box<dyn Switch>,
    pub(crate) disk: Disk,
    pub(crate) table: Table,
    pub(crate) events: Arc<EventHub>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) health: Health,
}

impl Site {
    /// A router of a guest that can answer. Requests to it end after `timeout`.
    pub fn router<'a>(
        &'a self,
        guest: &'a Guest,
        rid: Rid,
        timeout: TimeoutMs,
    ) -> Result<Router<'a>> {
        guest.check_is_click()?;
        guest.check_answers()?;
        let deadline = Instant::now() + timeout.duration();
        Ok(self.router_of(guest, rid.get(), deadline))
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

    /// Writes what of a guest has changed to its state file.
    pub fn save_record(&self, guest: &Guest) -> Result<()> {
        let _owner = guest.lock_lifecycle();
        match guest.state() {
            State::Running | State::Paused => {
                self.disk.records.save(&guest.record(Phase::Complete))
            }
            _ => Ok(()),
        }
    }

    /// Changes the ledger of a guest, first on disk; after an error it is as it was.
    pub fn change_ledger<T>(
        &self,
        guest: &Guest,
        change: impl FnOnce(&mut LedgerState) -> Result<T>,
    ) -> Result<T> {
        let mut ledger = guest.ledger.open_state()?;
        let mut new = ledger.clone();
        let answer = change(&mut new)?;
        if new != *ledger {
            self.disk.ledgers.save(&guest.domain.uuid, &new)?;
            *ledger = new;
        }
        Ok(answer)
    }

    /// Notes that another host has the guest, or that this one has it again.
    pub fn set_migrated_away(&self, guest: &Guest, migrated_away: bool) -> Result<()> {
        self.change_ledger(guest, |ledger| {
            ledger.migrated_away = migrated_away;
            Ok(())
        })
    }

    /// Wakes what waits for a guest when its part of the store changes.
    pub fn watch(&self, guest: &Guest) {
        self.watchers
            .insert(guest.domain.domid, Arc::clone(&guest.signals));
    }

    /// Notifies subscribers how a guest is now.
    pub fn tell(&self, guest: &Guest) {
        if let Some(now) = guest.describe(None) {
            let event = json!({
                "uuid": now.uuid, "domid": now.domid, "state": now.state, "reason": now.reason,
            });
            self.events.publish("guest", event);
        }
    }

    /// Notifies subscribers the states of routers of a domain, one bit each.
    pub fn announce(&self, domid: u16, routers: u64) {
        let guest = self.table.by_domid(domid);
        let Some(guest) = guest.filter(|g| g.state() != State::Partial) else {
            return;
        };
        for rid in (0..=clickos_protocol::MAX_RID).filter(|rid| routers & (1 << rid) != 0) {
            if let Ok(Some((word, error))) = self.router_state(&guest, rid) {
                let data = json!({
                    "uuid": guest.domain.uuid, "rid": rid, "state": word, "message": error,
                });
                self.events.publish("state", data);
            }
        }
    }

    /// The state of a router and its error. A guest without routers has one state: it runs.
    fn router_state(&self, guest: &Guest, rid: u8) -> Result<Option<(String, String)>> {
        if guest.check_is_click().is_err() {
            return Ok((rid == 0).then(|| (RUNNING.to_owned(), String::new())));
        }
        let state = control::router_state(&*self.store, guest.domain.domid, rid)?;
        Ok(state.map(|state| (state.word, state.error)))
    }

    /// True if the store knows a guest: it has announced itself, or, if its kernel is not
    /// Click's, its domain is there.
    pub fn is_known_to_store(&self, guest: &Guest) -> Result<bool> {
        let domid = guest.domain.domid;
        if guest.check_is_click().is_ok() {
            return control::is_announced(&*self.store, domid);
        }
        let found = self.store.read(&format!("/local/domain/{domid}"))?;
        Ok(found.is_some())
    }
}
