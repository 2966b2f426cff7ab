// SPDX-License-Identifier: Apache-2.0
//! The files and the standard output that scripts use.
use std::fs::{self, OpenOptions};
use std::io::{Read, Write, stdin, stdout};

use click_core::Host;

/// This machine.
pub struct Machine;

impl Host for Machine {
    fn print(&self, text: &str) {
        let mut out = stdout();
        // nobody is left to be told when standard output is closed
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "-" {
            let mut bytes = Vec::new();
            stdin()
                .read_to_end(&mut bytes)
                .map_err(|e| format!("standard input: {e}"))?;
            return Ok(bytes);
        }
        fs::read(path).map_err(|e| format!("{path}: {e}"))
    }

    fn write_file(&self, path: &str, append: bool, data: &[u8]) -> Result<(), String> {
        let mut options = OpenOptions::new();
        let opened = options
            .create(true)
            .write(true)
            .append(append)
            .truncate(!append)
            .open(path);
        opened
            .and_then(|mut file| file.write_all(data))
            .map_err(|e| format!("{path}: {e}"))
    }
}
