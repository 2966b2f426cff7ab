// SPDX-License-Identifier: Apache-2.0
//! The real store: xenstored behind its UNIX socket.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use log::warn;
use xenstore::{Client, Code as XsCode, Error as XsError, Request, Tx};

use super::{Change, Store, Watchers};
use crate::base::error::{Code, Error, Result};

/// How long the watching connection rests after a failure.
const RECONNECT: Duration = Duration::from_secs(1);
/// How long the watching connection waits for an event when nothing else is to do.
const IDLE: Duration = Duration::from_secs(3600);
/// The one node watched: every domain is below it.
const DOMAINS: &str = "/local/domain";

/// A node of this daemon's. A store without it began again, and has lost all guests.
const MARK: &str = "/tool/clickos/cosmosd";

/// Called before the first request to a store that began again.
type OnNew = Box<dyn Fn() + Send + Sync>;

/// One connection for requests, opened when first used and again after it broke.
pub struct XenStore {
    socket: PathBuf,
    client: Mutex<Option<Client>>,
    on_new: OnceLock<OnNew>,
}

impl XenStore {
    pub fn new(socket: PathBuf) -> Self {
        Self {
            socket,
            client: Mutex::new(None),
            on_new: OnceLock::new(),
        }
    }

    /// Lets `told` know of each store that begins again, before any request reaches it. It makes no
    /// requests itself. Only the first call counts.
    pub fn on_new(&self, told: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_new.set(Box::new(told));
    }

    /// Connects, and finds out whether this store is another one.
    fn connect(&self) -> std::result::Result<Client, XsError> {
        let mut client = Client::connect(&self.socket)?;
        if client.read_opt(Tx::NONE, MARK)?.is_none() {
            if let Some(told) = self.on_new.get() {
                told();
            }
            client.write(Tx::NONE, MARK, b"")?;
        }
        Ok(client)
    }

    /// Runs `body` with the connection; one that broke while idle is opened again once.
    fn with<T>(&self, body: impl Fn(&mut Client) -> std::result::Result<T, XsError>) -> Result<T> {
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let reused = slot.is_some();
        match self.attempt(&mut slot, &body) {
            Err(e) if e.is_fatal() && reused => self.attempt(&mut slot, &body),
            other => other,
        }
        .map_err(store_error)
    }

    fn attempt<T>(
        &self,
        slot: &mut MutexGuard<'_, Option<Client>>,
        body: impl Fn(&mut Client) -> std::result::Result<T, XsError>,
    ) -> std::result::Result<T, XsError> {
        let mut client = match slot.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let result = body(&mut client);
        if !result.as_ref().is_err_and(XsError::is_fatal) {
            **slot = Some(client);
        }
        result
    }
}

fn store_error(error: XsError) -> Error {
    Error::new(Code::Store, error.to_string())
}

fn requests(changes: &[Change], tx: Tx) -> std::result::Result<Vec<Request>, XsError> {
    let mut requests = Vec::with_capacity(changes.len());
    for change in changes {
        match change {
            Change::Write { path, value, perms } => {
                requests.push(Request::write(tx, path, value)?);
                if let Some(perms) = perms {
                    requests.push(Request::set_perms(tx, path, perms)?);
                }
            }
            Change::Remove { path } => requests.push(Request::rm(tx, path)?),
        }
    }
    Ok(requests)
}

impl Store for XenStore {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.with(|client| client.read_opt(Tx::NONE, path))
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        self.with(|client| client.directory_opt(Tx::NONE, path))
    }

    fn read_all(&self, paths: &[&str]) -> Result<Vec<Option<Vec<u8>>>> {
        self.with(|client| client.read_all(Tx::NONE, paths))
    }

    fn apply(&self, changes: &[Change]) -> Result<()> {
        self.with(|client| client.do_all(&requests(changes, Tx::NONE)?))
    }

    fn commit(&self, changes: &[Change]) -> Result<()> {
        match changes {
            // One request is done or not by itself.
            [Change::Write { perms: None, .. }] => self.apply(changes),
            changes => {
                self.with(|client| client.transaction(|tx| tx.all(&requests(changes, tx.tx())?)))
            }
        }
    }

    fn introduce(&self, domid: u16) -> Result<()> {
        // Frame and port have no meaning behind the shim: it finds the ring by the domain's id.
        self.with(|client| client.introduce(domid, 1, 1))
    }

    fn release(&self, domid: u16) -> Result<()> {
        self.with(|client| match client.release(domid) {
            Err(e) if e.is(XsCode::NoEntry) || e.is(XsCode::Invalid) => Ok(()),
            other => other,
        })
    }
}

/// Passes the store's watch events to their waiters, forever. After a lost connection it reconnects
/// and wakes all waiters, because events may be lost.
///
/// `report` gets the reason of each loss, and `None` after each connection.
pub fn watch(socket: &Path, watchers: &Watchers, report: impl Fn(Option<String>)) -> ! {
    loop {
        if let Err(e) = watch_once(socket, watchers, &report) {
            report(Some(e.to_string()));
            warn!(
                "{}: watching the store: {e}; trying again every {RECONNECT:?}",
                socket.display()
            );
        }
        std::thread::sleep(RECONNECT);
    }
}

fn watch_once(
    socket: &Path,
    watchers: &Watchers,
    report: &impl Fn(Option<String>),
) -> std::result::Result<(), XsError> {
    let mut client = Client::connect(socket)?;
    client.watch(DOMAINS, "cosmosd")?;
    report(None);
    watchers.wake_all();
    let mut announce_at: Option<Instant> = None;
    loop {
        let wait = announce_at.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
        match client.wait_event(wait) {
            Ok(Some(event)) => watchers.changed(&event.path),
            Ok(None) => {}
            Err(XsError::EventsLost) => watchers.wake_all(),
            Err(e) => return Err(e),
        }
        announce_at = watchers.announce(Instant::now());
    }
}
