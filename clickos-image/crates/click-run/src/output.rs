// SPDX-License-Identifier: Apache-2.0
//! Standard output. Elements, handlers and the program write to one buffer, which keeps the order
//! of their writes.
use std::io::{self, Write, stdout};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use click_core::WriteFile;

/// The file name that means standard output.
pub const STANDARD: &str = "-";

/// Octets that are held back at most.
const ROOM: usize = 1 << 14;

static WAITING: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn write(data: &[u8]) -> io::Result<()> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.extend_from_slice(data);
    if waiting.len() > ROOM {
        return empty(&mut waiting);
    }
    Ok(())
}

fn empty(waiting: &mut Vec<u8>) -> io::Result<()> {
    let mut out = stdout();
    let written = out.write_all(waiting).and_then(|()| out.flush());
    waiting.clear();
    written
}

/// Writes what waits.
///
/// # Errors
/// It cannot be written, and is lost.
pub fn flush() -> Result<(), String> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    empty(&mut waiting).map_err(|e| format!("standard output: {e}"))
}

/// Standard output as a file.
pub struct Output;

impl WriteFile for Output {
    fn write(&mut self, data: &[u8]) -> Result<(), String> {
        write(data).map_err(|e| format!("standard output: {e}"))
    }

    fn is_memory(&self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<(), String> {
        flush()
    }
}

/// Overwrites a file, or writes to standard output.
///
/// # Errors
/// Why it cannot be written.
pub fn write_to(path: &Path, text: &str) -> Result<(), String> {
    if path == Path::new(STANDARD) {
        return Output.write(text.as_bytes());
    }
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
