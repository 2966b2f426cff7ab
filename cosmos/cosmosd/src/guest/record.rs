// SPDX-License-Identifier: Apache-2.0
//! One state file per guest: what a restarted cosmosd has to know.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::host::{Instance, Rings};
use crate::preconnected::Preconnected;
use crate::spec::{Kernel, Nic, Uuid, Vif};
use crate::state::files::StateFiles;
use crate::state::room::StateRoom;

/// Bytes held for what a guest's record gets later: the reason of its end, its links.
const LATER: usize = 2048;

/// How far a guest has come; what is found at the start of cosmosd decides
/// between adopting it and undoing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Create or destroy is under way: found at a start, it is undone.
    Partial,
    /// Complete.
    Complete,
    /// Booted and paused in the pool.
    Pooled,
    /// Its memory is being written to a file; found at a start, it continues without that.
    Saving,
    /// Its memory lies in a file; found at a start, everything else is undone.
    Saved,
    /// It died; what it used is released, or will be.
    Crashed,
}

/// The contents of a state file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub uuid: Uuid,
    /// The handle of the hypervisor's domain, if it differs from the UUID.
    #[serde(default)]
    pub handle: Option<Uuid>,
    pub name: String,
    pub domid: u16,
    pub memory_mib: u32,
    #[serde(default = "one")]
    pub vcpus: u8,
    pub created_s: u64,
    pub config_name: String,
    #[serde(default)]
    pub image_sha256: String,
    pub vifs: Vec<Vif>,
    /// Descriptors of rings by devid; an earlier cosmosd had them in the order of `vifs`.
    #[serde(default)]
    pub rings: BTreeMap<u32, Rings>,
    #[serde(default)]
    pub nics: Vec<Nic>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
    /// The vifs that were preconnected in the pool. The file has their name before 1.0, so that a cosmosd
    /// of before can read it; the next release may write the other one.
    #[serde(default, rename = "silent", alias = "preconnected")]
    pub preconnected: Preconnected,
    pub phase: Phase,
    /// Reason of a crash, or the remains after a failed undo.
    pub reason: String,
    /// The running domain, once there is one.
    pub instance: Option<Instance>,
    /// Routers that a move to another host has halted; found at a start, they run again.
    #[serde(default)]
    pub halted: Vec<u8>,
}

/// A guest of an earlier cosmosd.
fn one() -> u8 {
    1
}

/// The directory of state files.
#[derive(Debug)]
pub struct Records {
    files: StateFiles,
    /// Locked as long as this daemon lives.
    _lock: File,
}

impl Records {
    /// Opens (makes) the directory, readable by the daemon only, and for one daemon only.
    pub fn open(state_dir: &Path, room: &Arc<StateRoom>) -> Result<Self> {
        let files = StateFiles::open(state_dir, "guests", true, room)?;
        let lock = lock(files.dir())?;
        Ok(Self { files, _lock: lock })
    }

    /// Writes a record so that a crash leaves the old file or the new one.
    ///
    /// # Errors
    /// `state-dir`: the old one is there.
    pub fn save(&self, record: &Record) -> Result<()> {
        self.files.save(record.uuid.as_str(), &text(record), LATER)
    }

    /// Takes the room for a record like this one.
    ///
    /// # Errors
    /// `state-dir`
    pub fn hold(&self, record: &Record) -> Result<()> {
        let bytes = text(record).len() + 2 * LATER;
        self.files.hold(record.uuid.as_str(), bytes)
    }

    /// Removes a record; one that is not there is no error.
    pub fn remove(&self, uuid: &Uuid) -> Result<()> {
        self.files.remove(uuid.as_str())
    }

    /// All records. A file that cannot be understood is an error that names
    /// it: continuing without it would leave its guest running unseen.
    pub fn load_all(&self) -> Result<Vec<Record>> {
        let stems = self.files.sweep()?;
        stems.iter().map(|stem| load(&self.files, stem)).collect()
    }
}

fn text(record: &Record) -> Vec<u8> {
    serde_json::to_vec_pretty(record).expect("a record holds only plain data")
}

fn lock(dir: &Path) -> Result<File> {
    let place = |e| Error::internal(dir.display(), e);
    let file = File::open(dir).map_err(place)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::internal(
            dir.display(),
            "another cosmosd uses this directory",
        )),
        Err(e) => Err(place(e.into())),
    }
}

fn load(files: &StateFiles, stem: &str) -> Result<Record> {
    let path = files.path(stem);
    let place = |e: &dyn std::fmt::Display| {
        Error::internal(
            path.display(),
            format!("{e} (repair it, or remove it with its guest)"),
        )
    };
    let text = files.load(stem).map_err(|e| place(&e))?;
    let text = text.ok_or_else(|| place(&"it is gone"))?;
    let record: Record = serde_json::from_slice(&text).map_err(|e| place(&e))?;
    if stem != record.uuid.as_str() {
        return Err(place(&"the uuid in it is not that of its name"));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use std::fs;

    fn open(dir: &Path) -> Result<Records> {
        Records::open(dir, &Arc::default())
    }

    #[test]
    fn saved_records_are_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let records = open(dir.path()).unwrap();
        let mut one = record(1);
        records.save(&one).unwrap();
        one.phase = Phase::Crashed;
        one.reason = "killed by signal 9".into();
        records.save(&one).unwrap();
        assert_eq!(records.load_all().unwrap(), [one.clone()]);
        records.remove(&one.uuid).unwrap();
        records.remove(&one.uuid).unwrap();
        assert!(records.load_all().unwrap().is_empty());
    }

    #[test]
    fn a_record_of_an_earlier_cosmosd_is_that_of_a_guest_of_one_vcpu() {
        let mut several = record(1);
        several.vcpus = 4;
        let mut value = serde_json::to_value(&several).unwrap();
        let again: Record = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(again.vcpus, 4);
        value.as_object_mut().unwrap().remove("vcpus");
        let earlier: Record = serde_json::from_value(value).unwrap();
        assert_eq!(earlier.vcpus, 1);
    }

    #[test]
    fn preconnected_vifs_have_the_key_that_an_earlier_cosmosd_reads() {
        let mut pooled = record(1);
        pooled.preconnected.vifs = 2;
        let mut kept = serde_json::to_value(&pooled).unwrap();
        assert_eq!(kept["silent"]["vifs"], 2);
        kept["preconnected"] = kept["silent"].take();
        kept.as_object_mut().unwrap().remove("silent");
        assert_eq!(serde_json::from_value::<Record>(kept).unwrap(), pooled);
    }

    #[test]
    fn a_file_cut_short_is_named_and_a_half_written_one_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let records = open(dir.path()).unwrap();
        let path = records.files.path(record(1).uuid.as_str());
        fs::write(path.with_extension("new"), "{").unwrap();
        assert!(records.load_all().unwrap().is_empty());
        assert!(!path.with_extension("new").exists());
        fs::write(&path, "{").unwrap();
        let error = records.load_all().unwrap_err();
        assert!(error.message.contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn a_directory_belongs_to_one_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path()).unwrap();
        let error = open(dir.path()).unwrap_err();
        assert!(error.message.contains("another cosmosd"), "{error}");
        drop(first);
        open(dir.path()).unwrap();
    }

    #[test]
    fn a_file_under_another_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let records = open(dir.path()).unwrap();
        records.save(&record(1)).unwrap();
        let path = records.files.path(record(1).uuid.as_str());
        fs::rename(&path, records.files.path(record(2).uuid.as_str())).unwrap();
        assert!(
            records
                .load_all()
                .unwrap_err()
                .message
                .contains("not that of its name")
        );
    }
}
