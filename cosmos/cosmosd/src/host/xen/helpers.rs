// SPDX-License-Identifier: Apache-2.0
//! The lock of libcosmos's helper processes: one cosmosd at a time has them work on domains.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::base::error::{Error, Result};

/// How long those of an earlier cosmosd may take to end; they are killed when it ends.
const ENDED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Waits until no helper of an earlier cosmosd works on a domain any more.
pub fn lock_helpers(state_dir: &Path) -> Result<File> {
    let path = state_dir.join("helpers.lock");
    let place = |e: std::io::Error| Error::internal(path.display(), e);
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    let file = options.open(&path).map_err(place)?;
    let deadline = Instant::now() + ENDED;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(LOOK),
            Err(Errno::WOULDBLOCK) => {
                let message = format!(
                    "locked for {ENDED:?}: helper processes (cosmos-xl) of another cosmosd live; \
                     end that cosmosd, or them"
                );
                return Err(Error::internal(path.display(), message));
            }
            Err(e) => return Err(place(e.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_waits_for_every_copy() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock_helpers(dir.path()).unwrap();
        let copy = first.try_clone().unwrap();
        drop(first);
        let waits = std::thread::spawn({
            let dir = dir.path().to_owned();
            move || lock_helpers(&dir).map(drop)
        });
        assert!(flock(&copy, FlockOperation::NonBlockingLockExclusive).is_ok());
        drop(copy);
        waits.join().unwrap().unwrap();
    }
}
