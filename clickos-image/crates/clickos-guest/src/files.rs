// SPDX-License-Identifier: Apache-2.0
//! Files in the guest's memory.
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_conformance::Place;
use click_core::Host;
use core::cell::RefCell;

/// The one folder there is.
const FOLDER: &str = "/ram";
/// In the words of a host, which cases expect.
const MISSING: &str = "No such file or directory (os error 2)";

/// Files by path.
#[derive(Debug, Default)]
pub struct RamFiles {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Place for RamFiles {
    fn folder(&self) -> String {
        FOLDER.to_string()
    }
}

impl Host for RamFiles {
    /// There is nobody who reads it.
    fn print(&self, _text: &str) {}

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        let files = self.files.borrow();
        let file = files.get(path).cloned();
        file.ok_or_else(|| MISSING.to_string())
    }

    fn write_file(&self, path: &str, append: bool, data: &[u8]) -> Result<(), String> {
        if !path.starts_with(FOLDER) {
            return Err(MISSING.to_string());
        }
        let mut files = self.files.borrow_mut();
        let file = files.entry(path.to_string()).or_default();
        if !append {
            file.clear();
        }
        file.extend_from_slice(data);
        Ok(())
    }
}
