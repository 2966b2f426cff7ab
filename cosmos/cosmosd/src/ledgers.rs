// SPDX-License-Identifier: Apache-2.0
//! One file per guest with its ledger of numbered changes.
//!
//! The file is not synced: a host that loses power loses its guests too.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::{make_private_dir, remove_file};
use crate::ledger::Book;
use crate::spec::Uuid;

/// The directory of ledgers.
#[derive(Debug)]
pub struct Ledgers(PathBuf);

impl Ledgers {
    pub fn open(state_dir: &Path) -> Result<Self> {
        let dir = state_dir.join("ledgers");
        make_private_dir(&dir)?;
        Ok(Self(dir))
    }

    /// Writes a ledger so that a killed daemon leaves the old file or the new one.
    pub fn save(&self, uuid: &Uuid, book: &Book) -> Result<()> {
        let path = self.path(uuid);
        let new = path.with_extension("new");
        let text = serde_json::to_vec(book).expect("a ledger holds only plain data");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|e| Error::internal(path.display(), e))
    }

    /// The ledger of a guest; an empty one if there is no file.
    ///
    /// # Errors
    /// A file that cannot be understood: the guest could take an old change for a new one.
    pub fn load(&self, uuid: &Uuid) -> Result<Book> {
        let path = self.path(uuid);
        let text = match fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Book::default()),
            read => read.map_err(|e| Error::internal(path.display(), e))?,
        };
        serde_json::from_slice(&text).map_err(|e| Error::internal(path.display(), e))
    }

    /// Removes a ledger; one that is not there is no error.
    pub fn remove(&self, uuid: &Uuid) -> Result<()> {
        let path = self.path(uuid);
        remove_file(&path).map_err(|e| Error::internal(path.display(), e))
    }

    /// The files, for tests of what remains.
    #[cfg(test)]
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries
            .map(|entry| format!("ledger {}", entry.unwrap().file_name().display()))
            .collect()
    }

    fn path(&self, uuid: &Uuid) -> PathBuf {
        self.0.join(format!("{uuid}.json"))
    }
}
