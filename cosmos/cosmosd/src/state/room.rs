// SPDX-License-Identifier: Apache-2.0
//! Whether the folders of state take the files of one more guest (docs/adr/0105).
//!
//! A real write decides: it finds a full disk, used up inodes, a quota and a read-only mount alike.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use log::warn;

use crate::base::error::{Code, Error, Result};
use crate::base::files::remove_file;

/// The name of this part among the faults of the host.
pub const PART: &str = "state_dir";

/// The files of a guest: two records, two ledgers, its console, and one that others make for it.
const FILES: u64 = 6;
/// Bytes of each.
const FILE_BYTES: usize = 16 << 10;
const PREFIX: &str = ".cosmosd-room-";
/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(2);
/// Looks from one write to the next where the file system reports room: a quota does not show.
const LOOKS: u32 = 30;

/// See the module.
#[derive(Debug, Default)]
pub struct StateRoom {
    /// Each with its name for people.
    folders: Vec<(&'static str, PathBuf)>,
    next: AtomicU64,
    has_failed: Mutex<bool>,
    failure: Condvar,
}

/// Space and inodes of one guest's files in each folder, until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct Held(Vec<PathBuf>);

impl Drop for Held {
    fn drop(&mut self) {
        for path in &self.0 {
            remove_file(path).unwrap_or_else(|e| warn!("{}: {e}", path.display()));
        }
    }
}

impl StateRoom {
    /// Removes what an earlier cosmosd held.
    pub fn open(folders: Vec<(&'static str, PathBuf)>) -> Result<Self> {
        let this = Self {
            folders,
            ..Self::default()
        };
        for (_, folder) in &this.folders {
            sweep(folder).map_err(|e| Error::internal(folder.display(), e))?;
        }
        Ok(this)
    }

    /// Takes the room of one guest's files, so that no other program has it meanwhile.
    ///
    /// # Errors
    /// `state-dir`, with the text of the operating system.
    pub fn hold(&self) -> Result<Held> {
        let mut held = Held(Vec::new());
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        for (name, folder) in &self.folders {
            for k in 0..FILES {
                let path = folder.join(format!("{PREFIX}{n}-{k}"));
                held.0.push(path.clone());
                fill(&path).map_err(|e| unwritable(name, &e))?;
            }
        }
        Ok(held)
    }

    /// Notes that a write failed: the next look comes now, and writes.
    pub fn note_failure(&self) {
        *self
            .has_failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.failure.notify_all();
    }

    /// Reports the fault, or none, at each look, for as long as the daemon lives.
    pub fn follow(&self, mut report: impl FnMut(Option<String>)) {
        let mut looks = Looks::default();
        loop {
            if let Some(fault) = looks.next(self) {
                report(fault);
            }
            let has_failed = self.has_failed.lock();
            let has_failed = has_failed.unwrap_or_else(PoisonError::into_inner);
            let waited = self
                .failure
                .wait_timeout_while(has_failed, PAUSE, |failed| !*failed);
            let (mut has_failed, _) = waited.unwrap_or_else(PoisonError::into_inner);
            looks.is_faulty |= std::mem::take(&mut *has_failed);
        }
    }

    fn seems_full(&self) -> bool {
        self.folders.iter().any(|(_, folder)| seems_full(folder))
    }
}

/// The choice of looks that write.
#[derive(Default)]
struct Looks {
    count: u32,
    is_faulty: bool,
}

impl Looks {
    /// A fault, none, or no news.
    fn next(&mut self, room: &StateRoom) -> Option<Option<String>> {
        let is_due = self.count % LOOKS == 0;
        self.count = self.count.wrapping_add(1);
        if !is_due && !self.is_faulty && !room.seems_full() {
            return None;
        }
        let fault = room.hold().err().map(|error| error.message);
        self.is_faulty = fault.is_some();
        Some(fault)
    }
}

/// The error of a write that failed: nothing has changed.
pub fn unwritable(place: impl std::fmt::Display, cause: &io::Error) -> Error {
    Error::new(Code::StateDir, format!("{place}: {cause}"))
}

fn fill(path: &Path) -> io::Result<()> {
    remove_file(path)?;
    // No link of another program's is followed.
    let mut file = File::create_new(path)?;
    file.write_all(&[b' '; FILE_BYTES])
}

fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}

/// The answer of the file system without a write. One without limits reports 0 in all.
fn seems_full(folder: &Path) -> bool {
    let Ok(found) = rustix::fs::statvfs(folder) else {
        return true;
    };
    let needed = FILES * FILE_BYTES as u64;
    let is_read_only = found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY);
    is_read_only
        || found.f_blocks > 0 && found.f_bfree.saturating_mul(found.f_frsize) < needed
        || found.f_files > 0 && found.f_ffree < FILES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn room_is_held_until_it_is_dropped_or_swept() {
        let dir = tempfile::tempdir().unwrap();
        let folders = || vec![("state_dir", dir.path().to_owned())];
        let room = StateRoom::open(folders()).unwrap();
        let (first, second) = (room.hold().unwrap(), room.hold().unwrap());
        assert_eq!(left(dir.path()) as u64, 2 * FILES);
        drop(first);
        assert_eq!(left(dir.path()) as u64, FILES);
        std::mem::forget(second);
        StateRoom::open(folders()).unwrap();
        assert_eq!(left(dir.path()), 0);
    }

    #[test]
    fn a_folder_that_takes_nothing_is_named_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let folders = vec![("state_dir", dir.path().to_owned()), ("xenstore_dir", gone)];
        let room = StateRoom {
            folders,
            ..StateRoom::default()
        };
        let error = room.hold().unwrap_err();
        assert_eq!(error.code, Code::StateDir);
        assert!(error.message.starts_with("xenstore_dir: "), "{error}");
        assert_eq!(left(dir.path()), 0);
    }

    #[test]
    fn a_fault_is_looked_after_until_it_has_gone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        let folders = vec![("state_dir", folder.clone())];
        let room = StateRoom {
            folders,
            ..StateRoom::default()
        };
        let mut looks = Looks::default();
        for _ in 0..2 {
            let fault = looks.next(&room).unwrap().unwrap();
            assert!(fault.starts_with("state_dir: No such file"), "{fault}");
        }
        fs::create_dir(&folder).unwrap();
        assert_eq!(looks.next(&room), Some(None));
        assert_eq!(looks.next(&room), None);
    }
}
