// SPDX-License-Identifier: Apache-2.0
//! The place where the cases of the corpus keep their files: the guest's memory.
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use click_conformance::CaseHost;
use click_core::{Host, ReadFile, WriteFile};
use clickos_control::files::{Quota, RamFiles};

/// The cases expect the words of a machine with folders.
const MISSING: &str = "No such file or directory (os error 2)";
/// More than any case writes.
const BYTES_MAX: usize = 1 << 20;

/// Files in memory, in a folder without a name.
pub struct RamPlace(RamFiles);

impl RamPlace {
    /// A place without files.
    pub fn empty() -> Rc<dyn CaseHost> {
        Rc::new(Self(RamFiles::new(Quota::new(BYTES_MAX))))
    }
}

impl CaseHost for RamPlace {
    fn folder(&self) -> String {
        String::new()
    }
}

impl Host for RamPlace {
    fn print(&self, text: &str) -> bool {
        self.0.print(text)
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        let missing = |_| format!("{path}: {MISSING}");
        self.0.open_file(path).map_err(missing)
    }

    fn create_file(&self, path: &str, append: bool) -> Result<Box<dyn WriteFile>, String> {
        let missing = |_| format!("{path}: {MISSING}");
        self.0.create_file(path, append).map_err(missing)
    }
}
