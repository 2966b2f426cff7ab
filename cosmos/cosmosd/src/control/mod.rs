// SPDX-License-Identifier: Apache-2.0
//! The toolstack's side of the control protocol (docs/control-protocol.md).

mod install;
mod list;
mod request;
mod slots;
mod verdict;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use xenstore::{Access, Perm};

use clickos_protocol::MAX_RID;

use crate::base::error::{Error, Result};
use crate::base::text::escape;
use crate::spec::random_bytes;
use crate::state::ledger::PendingChange;
use crate::store::{Change, Seen, Signals, Store};

pub use install::{RouterSpec, install, propose, propose_first, router_state, run};
pub use list::routers;
pub use request::{begin_write, handlers, read, read_many, write};
use slots::Slots;
pub use verdict::{forget, verdict};

/// Random bytes that a guest is given.
const SEED_BYTES: usize = 32;

/// # Errors
/// `bad-request` for what is no router's id.
pub fn check_rid(rid: u8) -> Result<()> {
    match rid {
        0..=MAX_RID => Ok(()),
        _ => Err(Error::bad_request(format!(
            "rid: expected 0 to {MAX_RID}, got {rid}"
        ))),
    }
}

/// Requests under way between this daemon and one guest.
pub struct Requests {
    slots: Slots,
    next_seq: AtomicU32,
    /// The routers (one bit each) that have a node for requests.
    open: AtomicU64,
}

impl Default for Requests {
    /// Begins at a number an earlier cosmosd has not used lately: the guest may still be
    /// answering that one's requests.
    fn default() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            slots: Slots::default(),
            next_seq: AtomicU32::new(since.as_millis() as u32),
            open: AtomicU64::default(),
        }
    }
}

impl Requests {
    fn seq(&self) -> u32 {
        self.next_seq.fetch_add(1, Ordering::Relaxed)
    }

    fn is_open(&self, rid: u8) -> bool {
        self.open.load(Ordering::Relaxed) & (1 << rid) != 0
    }

    /// The store began again: no router has that node.
    pub fn forget_folders(&self) {
        self.open.store(0, Ordering::Relaxed);
    }

    fn set_open(&self, rid: u8) {
        self.open.fetch_or(1 << rid, Ordering::Relaxed);
    }
}

/// One router of one guest, and until when to wait for it.
#[derive(Clone, Copy)]
pub struct Router<'a> {
    pub store: &'a dyn Store,
    pub signals: &'a Signals,
    pub requests: &'a Requests,
    pub domid: u16,
    pub rid: u8,
    pub deadline: Instant,
}

impl Router<'_> {
    fn path(&self, key: &str) -> String {
        format!("{}/{}/{key}", root(self.domid), self.rid)
    }

    /// A node of this router that the guest reads and cannot change.
    fn node(&self, key: &str, value: impl Into<Vec<u8>>) -> Change {
        node(self.domid, self.path(key), value)
    }

    /// New random bits for the guest.
    fn seed(&self) -> Result<Change> {
        seed(self.domid)
    }
}

/// A node that the guest reads and cannot change.
fn node(domid: u16, path: String, value: impl Into<Vec<u8>>) -> Change {
    let perms = [Perm::new(Access::None, 0), Perm::new(Access::Read, domid)];
    Change::write_as(path, value, &perms)
}

fn seed(domid: u16) -> Result<Change> {
    let path = format!("{}/seed", root(domid));
    Ok(node(domid, path, random_bytes::<SEED_BYTES>()?))
}

/// Gives a guest that has not run yet random bits, which it takes in with its first router.
pub fn give_seed(store: &dyn Store, domid: u16) -> Result<()> {
    store.apply(&[seed(domid)?])
}

/// The node of a guest's request that the switch decides packets of a device.
pub fn offload_path(domid: u16, devid: u32) -> String {
    format!("{}/offload/{devid}", root(domid))
}

/// Answers it.
///
/// # Errors
/// `store`.
pub fn answer_offload(store: &dyn Store, domid: u16, devid: u32, answer: &str) -> Result<()> {
    let path = format!("{}/offloaded/{devid}", root(domid));
    store.apply(&[node(domid, path, answer)])
}

fn root(domid: u16) -> String {
    format!("/local/domain/{domid}/{}", clickos_protocol::ROOT)
}

/// A guest's last words, if it had any.
pub fn panic_message(store: &dyn Store, domid: u16) -> Option<String> {
    let words = store.read(&format!("{}/panic", root(domid))).ok()??;
    (!words.is_empty()).then(|| escape(&words))
}

/// Writes the name of the first router's configuration, which no guest tells.
pub fn name_config(store: &dyn Store, domid: u16, name: &str) -> Result<()> {
    let path = format!("{}/0/config_name", root(domid));
    store.apply(&[node(domid, path, name)])
}

/// True if a guest has announced itself to this store.
pub fn is_announced(store: &dyn Store, domid: u16) -> Result<bool> {
    let version = format!("{}/version", root(domid));
    Ok(store.read(&version)?.is_some())
}

/// Waits until a guest has booted: it then has told its version, and waits for a router.
pub fn wait_boot(
    store: &dyn Store,
    signals: &Signals,
    seen: Seen,
    domid: u16,
    deadline: Instant,
) -> Result<()> {
    let version = format!("{}/version", root(domid));
    signals.wait_since(seen, "boot", deadline, || {
        Ok(store.read(&version)?.map(drop))
    })
}

/// Takes back that a guest is to suspend itself, unless it has read that already.
pub fn withdraw_suspend(store: &dyn Store, domid: u16) -> Result<()> {
    let path = format!("/local/domain/{domid}/control/shutdown");
    match store.read(&path)?.as_deref() {
        Some(b"suspend") => store.commit(&[Change::write(path, "")]),
        _ => Ok(()),
    }
}

/// Removes the requests an earlier cosmosd left, and their answers, but those of `pending`.
pub fn forget_requests(store: &dyn Store, domid: u16, pending: &[PendingChange]) -> Result<()> {
    let root = root(domid);
    let names = store.list(&root)?;
    let rids = names
        .iter()
        .filter(|name| name.parse().is_ok_and(|rid: u8| rid <= MAX_RID));
    let mut changes = Vec::new();
    for rid in rids {
        for key in ["response", "request"] {
            let folder = format!("{root}/{rid}/{key}");
            let kept = |seq: &&String| !pending.iter().any(|b| b.place.is_request(rid, seq));
            let names = store.list(&folder)?;
            let gone: Vec<_> = names.iter().filter(kept).collect();
            match gone.len() == names.len() {
                true => changes.push(Change::remove(folder)),
                false => changes.extend(
                    gone.iter()
                        .map(|seq| Change::remove(format!("{folder}/{seq}"))),
                ),
            }
        }
    }
    store.apply(&changes)
}
