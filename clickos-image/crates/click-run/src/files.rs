// SPDX-License-Identifier: Apache-2.0
//! Files of this machine, for elements.
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write, stdin};

use click_core::{ReadFile, WriteFile};

use crate::output::{Output, STANDARD};

/// Something that is open, and what errors call it.
struct Open<T> {
    io: T,
    path: String,
    size: Option<u64>,
}

impl<T: Read> ReadFile for Open<T> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, String> {
        loop {
            match self.io.read(into) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                read => return read.map_err(|e| format!("{}: {e}", self.path)),
            }
        }
    }

    fn size(&self) -> Option<u64> {
        self.size
    }
}

impl<T: Write> WriteFile for Open<T> {
    fn write(&mut self, data: &[u8]) -> Result<(), String> {
        let written = self.io.write_all(data).and_then(|()| self.io.flush());
        written.map_err(|e| format!("{}: {e}", self.path))
    }
}

/// Opens a file, or standard input.
///
/// # Errors
/// Why it cannot be read.
pub fn open(path: &str) -> Result<Box<dyn ReadFile>, String> {
    if path == STANDARD {
        return Ok(Box::new(Open {
            io: stdin(),
            path: "standard input".to_string(),
            size: None,
        }));
    }
    let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
    let data = file.metadata().ok().filter(std::fs::Metadata::is_file);
    Ok(Box::new(Open {
        io: file,
        path: path.to_string(),
        size: data.map(|d| d.len()),
    }))
}

/// Creates or overwrites a file, opens one to append to it, or takes standard output.
///
/// # Errors
/// Why it cannot be written.
pub fn create(path: &str, append: bool) -> Result<Box<dyn WriteFile>, String> {
    if path == STANDARD {
        return Ok(Box::new(Output));
    }
    let mut options = OpenOptions::new();
    let options = options.create(true).write(true).append(append);
    let file = options.truncate(!append).open(path);
    Ok(Box::new(Open {
        io: file.map_err(|e| format!("{path}: {e}"))?,
        path: path.to_string(),
        size: None,
    }))
}
