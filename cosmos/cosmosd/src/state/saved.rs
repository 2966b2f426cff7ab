// SPDX-License-Identifier: Apache-2.0
//! The files that hold the memory of saved guests; `lifecycle::save` writes and reads them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::files::{make_private_dir, remove_file};
use crate::spec::Uuid;

/// The directory of saved guests' memory.
pub struct Saved {
    dir: PathBuf,
}

impl Saved {
    pub fn open(state_dir: &Path) -> Result<Self> {
        let dir = state_dir.join("saved");
        make_private_dir(&dir)?;
        Ok(Self { dir })
    }

    pub fn create(&self, uuid: &Uuid) -> Result<File> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        at(&self.path(uuid), |path| options.open(path))
    }

    pub fn read(&self, uuid: &Uuid) -> Result<File> {
        at(&self.path(uuid), |path| File::open(path))
    }

    /// Removes a guest's memory; none is no error.
    pub fn remove(&self, uuid: &Uuid) -> Result<()> {
        at(&self.path(uuid), remove_file)
    }

    /// Removes what belongs to no saved guest: a save was cut short.
    pub fn sweep(&self, is_saved: impl Fn(&str) -> bool) -> Result<()> {
        let entries = at(&self.dir, |dir| fs::read_dir(dir))?;
        for entry in entries {
            let path = at(&self.dir, |_| entry)?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if !is_saved(&stem) {
                at(&path, remove_file)?;
            }
        }
        Ok(())
    }

    /// The size of a guest's file.
    pub fn bytes(&self, uuid: &Uuid) -> Result<u64> {
        at(&self.path(uuid), |path| path.metadata()).map(|file| file.len())
    }

    pub fn path(&self, uuid: &Uuid) -> PathBuf {
        self.dir.join(format!("{uuid}.memory"))
    }
}

fn at<T>(path: &Path, body: impl FnOnce(&Path) -> io::Result<T>) -> Result<T> {
    body(path).map_err(|e| Error::internal(path.display(), e))
}
