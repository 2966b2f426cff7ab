// SPDX-License-Identifier: Apache-2.0
//! A guest's console log: a bounded file that only the guest appends to.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::files::{make_private_dir, remove_file};
use crate::spec::Uuid;

/// Bytes a guest may write to its console in its lifetime.
pub const MAX_LOG: u64 = 1 << 20;

/// The directory of console logs.
pub struct Consoles {
    dir: PathBuf,
}

impl Consoles {
    pub fn open(state_dir: &Path) -> Result<Self> {
        let dir = state_dir.join("console");
        make_private_dir(&dir)?;
        Ok(Self { dir })
    }

    /// Makes an empty log; the descriptor only appends.
    pub fn create(&self, uuid: &Uuid) -> Result<File> {
        self.remove(uuid)?;
        let path = self.path(uuid);
        OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| Error::internal(path.display(), e))
    }

    /// The log as it is, or an empty one; the descriptor only appends.
    #[cfg(feature = "xen")]
    pub fn append(&self, uuid: &Uuid) -> Result<File> {
        let path = self.path(uuid);
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| Error::internal(path.display(), e))
    }

    /// The log's end; empty when there is no log.
    pub fn tail(&self, uuid: &Uuid, max_bytes: usize) -> Result<Vec<u8>> {
        let path = self.path(uuid);
        match tail(&path, max_bytes) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|e| Error::internal(path.display(), e)),
        }
    }

    pub fn remove(&self, uuid: &Uuid) -> Result<()> {
        let path = self.path(uuid);
        remove_file(&path).map_err(|e| Error::internal(path.display(), e))
    }

    fn path(&self, uuid: &Uuid) -> PathBuf {
        self.dir.join(format!("{uuid}.log"))
    }
}

fn tail(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let wanted = (max_bytes as u64).min(MAX_LOG);
    let start = file.metadata()?.len().saturating_sub(wanted);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::uuid;
    use std::io::Write;

    #[test]
    fn only_the_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let consoles = Consoles::open(dir.path()).unwrap();
        assert_eq!(consoles.tail(&uuid(1), 10).unwrap(), b"");
        let mut log = consoles.create(&uuid(1)).unwrap();
        log.write_all(b"one\ntwo\n").unwrap();
        assert_eq!(consoles.tail(&uuid(1), 4).unwrap(), b"two\n");
        assert_eq!(consoles.tail(&uuid(1), 100).unwrap(), b"one\ntwo\n");
        consoles.create(&uuid(1)).unwrap();
        assert_eq!(consoles.tail(&uuid(1), 100).unwrap(), b"");
        consoles.remove(&uuid(1)).unwrap();
        consoles.remove(&uuid(1)).unwrap();
    }
}
