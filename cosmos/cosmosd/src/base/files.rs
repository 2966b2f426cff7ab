// SPDX-License-Identifier: Apache-2.0
//! Private directories, and files that may be gone.

use std::fs;
use std::io;
use std::path::Path;

use crate::base::error::{Error, Result};

/// Makes a directory and its parents with mode 0700.
pub fn make_private_dir(dir: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| Error::internal(dir.display(), e))
}

/// Removes a file; one that is not there is no error.
pub fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
