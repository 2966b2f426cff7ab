// SPDX-License-Identifier: Apache-2.0
//! The checksum of the installed engine, computed again only when the file has changed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::base::error::{Error, Result};
use crate::base::text::hex;

/// Numbers that differ between versions of a file, known without reading it.
type Stamp = (u64, u64, u64, i64, i64, i64, i64);

/// The engine binary.
pub struct Engine {
    path: PathBuf,
    known: Mutex<Option<(Stamp, String)>>,
}

impl Engine {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::new(None),
        }
    }

    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The file's SHA-256 in lower-case hexadecimal.
    pub fn sha256(&self) -> Result<String> {
        self.digest()
            .map_err(|e| Error::internal(format!("process.engine {}", self.path.display()), e))
    }

    fn digest(&self) -> io::Result<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = File::open(&self.path)?;
        let stamp = stamp(&file)?;
        if let Some((_, digest)) = known.as_ref().filter(|(at, _)| *at == stamp) {
            return Ok(digest.clone());
        }
        let digest = hash(&mut file)?;
        *known = Some((stamp, digest.clone()));
        Ok(digest)
    }
}

fn stamp(file: &File) -> io::Result<Stamp> {
    let meta = file.metadata()?;
    let (mtime, ctime) = (
        (meta.mtime(), meta.mtime_nsec()),
        (meta.ctime(), meta.ctime_nsec()),
    );
    Ok((
        meta.dev(),
        meta.ino(),
        meta.size(),
        mtime.0,
        mtime.1,
        ctime.0,
        ctime.1,
    ))
}

fn hash(file: &mut File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_hashed_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("engine");
        std::fs::write(&path, "abc").unwrap();
        let engine = Engine::new(path.clone());
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(engine.sha256().unwrap(), abc);
        std::fs::write(dir.path().join("new"), "abd").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_ne!(engine.sha256().unwrap(), abc);
        std::fs::remove_file(&path).unwrap();
        assert!(engine.sha256().unwrap_err().message.contains("engine"));
    }
}
