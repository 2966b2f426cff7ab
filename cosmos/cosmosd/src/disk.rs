// SPDX-License-Identifier: Apache-2.0
//! All that is on disk of guests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::error::Result;
use crate::guest::record::Records;
use crate::spec::Uuid;
use crate::state::ledger_files::LedgerFiles;
use crate::state::room::{PART, StateRoom};
use crate::state::saved::Saved;

/// See the module.
pub struct Disk {
    pub records: Records,
    pub ledgers: LedgerFiles,
    pub saved: Saved,
    pub room: Arc<StateRoom>,
}

impl Disk {
    /// Opens (makes) the directory of state. Guests have files in the folders `others`, too, each
    /// with its name in messages.
    pub fn open(state_dir: &Path, others: Vec<(&'static str, PathBuf)>) -> Result<Self> {
        let mut folders = vec![(PART, state_dir.to_owned())];
        folders.extend(others);
        let room = Arc::new(StateRoom::open(folders)?);
        Ok(Self {
            records: Records::open(state_dir, &room)?,
            ledgers: LedgerFiles::open(state_dir, &room)?,
            saved: Saved::open(state_dir)?,
            room,
        })
    }

    /// Removes the files of a guest that runs no more; none is no error.
    pub fn remove_files(&self, uuid: &Uuid) -> Result<()> {
        self.ledgers.remove(uuid)?;
        self.records.remove(uuid)
    }
}
