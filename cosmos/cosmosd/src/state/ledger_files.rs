// SPDX-License-Identifier: Apache-2.0
//! One file per guest with its ledger of numbered changes.
//!
//! The file is not synced: a host that loses power loses its guests too.

use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::spec::Uuid;
use crate::state::files::StateFiles;
use crate::state::ledger::LedgerState;
use crate::state::room::StateRoom;

/// The directory of ledgers.
#[derive(Debug)]
pub struct LedgerFiles(StateFiles);

impl LedgerFiles {
    pub fn open(state_dir: &Path, room: &Arc<StateRoom>) -> Result<Self> {
        let files = StateFiles::open(state_dir, "ledgers", false, room)?;
        files.sweep()?;
        Ok(Self(files))
    }

    /// Writes a ledger so that a killed daemon leaves the old file or the new one. The verdicts of
    /// changes under way have their room then.
    ///
    /// # Errors
    /// `state-dir`: the old one is there.
    pub fn save(&self, uuid: &Uuid, ledger: &LedgerState) -> Result<()> {
        self.0
            .save(uuid.as_str(), &ledger.to_file(), ledger.later_bytes())
    }

    /// Takes the room for the ledger of a guest that starts.
    ///
    /// # Errors
    /// `state-dir`
    pub fn hold(&self, uuid: &Uuid) -> Result<()> {
        self.0.hold(uuid.as_str(), 1)
    }

    /// The ledger of a guest; an empty one if there is no file.
    ///
    /// # Errors
    /// A file that cannot be understood: the guest could take an old change for a new one.
    pub fn load(&self, uuid: &Uuid) -> Result<LedgerState> {
        let place =
            |e: &dyn std::fmt::Display| Error::internal(self.0.path(uuid.as_str()).display(), e);
        match self.0.load(uuid.as_str()).map_err(|e| place(&e))? {
            Some(text) => LedgerState::of_file(&text).map_err(|e| place(&e)),
            None => Ok(LedgerState::default()),
        }
    }

    /// Removes a ledger; one that is not there is no error.
    pub fn remove(&self, uuid: &Uuid) -> Result<()> {
        self.0.remove(uuid.as_str())
    }

    /// The files, for tests of what remains; a spare belongs to its ledger.
    #[cfg(test)]
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.dir()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| {
                path.extension().unwrap() == "json" || !path.with_extension("json").exists()
            })
            .map(|path| format!("ledger {}", path.file_name().unwrap().display()))
            .collect()
    }
}
