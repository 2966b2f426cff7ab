// SPDX-License-Identifier: Apache-2.0
//! Files in the guest's memory.
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_conformance::Place;
use click_core::{Host, ReadFile, WriteFile};
use core::cell::RefCell;

/// The one folder there is.
const FOLDER: &str = "/ram";
/// In the words of a host, which cases expect.
const MISSING: &str = "No such file or directory (os error 2)";

/// What a file holds.
type Content = Rc<RefCell<Vec<u8>>>;

/// Files by path.
#[derive(Debug, Default)]
pub struct RamFiles {
    files: RefCell<BTreeMap<String, Content>>,
}

/// A file that is read.
struct Reader {
    content: Content,
    at: usize,
}

impl ReadFile for Reader {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, String> {
        let content = self.content.borrow();
        let rest = content.get(self.at..).unwrap_or_default();
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.at += read;
        Ok(read)
    }

    fn size(&self) -> Option<u64> {
        Some(self.content.borrow().len() as u64)
    }
}

/// A file that is written.
struct Writer(Content);

impl WriteFile for Writer {
    fn write(&mut self, data: &[u8]) -> Result<(), String> {
        self.0.borrow_mut().extend_from_slice(data);
        Ok(())
    }
}

impl Place for RamFiles {
    fn folder(&self) -> String {
        FOLDER.to_string()
    }
}

impl Host for RamFiles {
    /// There is nobody who reads it.
    fn print(&self, _text: &str) {}

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        let content = self.files.borrow().get(path).cloned();
        let content = content.ok_or_else(|| format!("{path}: {MISSING}"))?;
        Ok(Box::new(Reader { content, at: 0 }))
    }

    fn create_file(&self, path: &str, append: bool) -> Result<Box<dyn WriteFile>, String> {
        if !path.starts_with(FOLDER) {
            return Err(format!("{path}: {MISSING}"));
        }
        let mut files = self.files.borrow_mut();
        let content = files.entry(path.to_string()).or_default();
        if !append {
            content.borrow_mut().clear();
        }
        Ok(Box::new(Writer(Rc::clone(content))))
    }
}
