// SPDX-License-Identifier: Apache-2.0
//! Files as elements see them; a machine's are on its disks, a guest's in its memory.
use alloc::string::String;

/// A file that is being read.
pub trait ReadFile {
    /// Reads what comes next into the front of `into`; returns how much that is, 0 at the end.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, String>;

    /// Octets of the file from its beginning to its end, if somebody knows.
    fn size(&self) -> Option<u64> {
        None
    }
}

/// A file that is being written.
pub trait WriteFile {
    /// Writes all of `data` behind what was written before.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn write(&mut self, data: &[u8]) -> Result<(), String>;

    /// True if a write costs little, so that the writer need not collect data.
    fn is_memory(&self) -> bool {
        false
    }

    /// Sends what was written on its way, if anything was held back.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }
}
