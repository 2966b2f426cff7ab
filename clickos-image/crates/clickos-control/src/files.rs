// SPDX-License-Identifier: Apache-2.0
//! Files in the guest's memory: each router has its own, all in one folder.
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_core::{Host, ReadFile, WriteFile, memory};
use core::cell::{Cell, RefCell};

/// Files of one router.
const FILES_MAX: usize = 64;
/// Bytes of a file's name.
const NAME_MAX: usize = 255;
/// Bytes of a file that are read at a time.
const PIECE: usize = 64 << 10;
const MISSING: &str = "is not a member of the configuration's archive; a guest has no other files";
const STANDARD: &str = "is standard input or output, which a guest does not have";
const FOLDER: &str = "has a folder; a guest keeps files without one, in its memory";

/// The bytes that all files of a guest may take.
#[derive(Debug)]
pub struct Quota {
    max: usize,
    used: Cell<usize>,
}

impl Quota {
    /// A quota of `max` bytes.
    pub fn new(max: usize) -> Rc<Self> {
        let used = Cell::new(0);
        Rc::new(Self { max, used })
    }

    fn take(&self, bytes: usize) -> Result<(), String> {
        let used = self.used.get().saturating_add(bytes);
        if used > self.max {
            let max = self.max;
            return Err(format!("the limit of all files is {max} bytes"));
        }
        self.used.set(used);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.used.set(self.used.get() - bytes);
    }
}

/// A file's bytes; an open file keeps its bytes when another takes its name.
#[derive(Debug)]
struct File {
    bytes: RefCell<Vec<u8>>,
    quota: Rc<Quota>,
}

impl File {
    fn append(&self, data: &[u8]) -> Result<(), String> {
        let mut bytes = self.bytes.borrow_mut();
        let grown = 2 * (bytes.len() + data.len());
        if !memory::has_room(grown + memory::RESERVE) {
            let reserve = memory::RESERVE >> 10;
            return Err(format!("less than {reserve} KiB of memory would be left"));
        }
        self.quota.take(data.len())?;
        bytes.extend_from_slice(data);
        Ok(())
    }

    /// The piece from a place on; nothing after the end.
    fn piece(&self, at: usize) -> Vec<u8> {
        let bytes = self.bytes.borrow();
        let rest = bytes.get(at..).unwrap_or_default();
        rest[..PIECE.min(rest.len())].to_vec()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.quota.give_back(self.bytes.borrow().len());
    }
}

/// Files by name.
type Table = BTreeMap<String, Rc<File>>;

/// The files of a router, as the host that it runs on.
#[derive(Debug)]
pub struct RamFiles {
    table: RefCell<Table>,
    quota: Rc<Quota>,
}

/// The files as they were; a new router that does not start leaves them so.
pub(crate) struct Before(Table);

impl RamFiles {
    /// No files yet.
    pub fn new(quota: Rc<Quota>) -> Self {
        let table = RefCell::default();
        Self { table, quota }
    }

    pub(crate) fn keep(&self) -> Before {
        Before(self.table.borrow().clone())
    }

    pub(crate) fn restore(&self, before: Before) {
        self.table.replace(before.0);
    }

    /// Copies of all files.
    ///
    /// # Errors
    /// The memory lacks them.
    #[cfg(feature = "threads")]
    pub(crate) fn copies(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let table = self.table.borrow();
        let bytes = table.values().map(|file| file.bytes.borrow().len());
        let bytes: usize = bytes.sum();
        if bytes > 0 && !memory::has_room(bytes + memory::RESERVE) {
            return Err(format!(
                "no memory is left for copies of {bytes} bytes of files"
            ));
        }
        let copy = |(name, file): (&String, &Rc<File>)| (name.clone(), file.bytes.borrow().clone());
        Ok(table.iter().map(copy).collect())
    }

    /// A line for each file: its size, a space, its name.
    pub(crate) fn list(&self) -> String {
        let table = self.table.borrow();
        let line = |(name, file): (&String, &Rc<File>)| {
            let size = file.bytes.borrow().len();
            format!("{size} {name}\n")
        };
        table.iter().map(line).collect()
    }

    /// The bytes of a piece of a file, named by `OFFSET NAME`.
    pub(crate) fn piece(&self, asked: &str) -> Result<Vec<u8>, String> {
        let (offset, path) = asked.split_once(' ').ok_or("expected OFFSET NAME")?;
        let offset = offset.parse();
        let offset = offset.map_err(|_| "OFFSET: expected a count of bytes".to_string())?;
        Ok(self.find(path)?.piece(offset))
    }

    /// Puts files there, in place of those of the same name.
    pub(crate) fn fill<'a>(
        &self,
        mut files: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), String> {
        files.try_for_each(|(name, data)| self.write_file(name, false, data))
    }

    fn find(&self, path: &str) -> Result<Rc<File>, String> {
        let found = match path {
            "-" => return Err(format!("\"-\" {STANDARD}")),
            _ => self.table.borrow().get(plain(path)).cloned(),
        };
        found.ok_or_else(|| format!("\"{path}\" {MISSING}"))
    }

    /// A new file; one that was there before stays with those who have it open.
    fn make(&self, path: &str) -> Result<Rc<File>, String> {
        let name = name_of(path)?;
        let mut table = self.table.borrow_mut();
        if !table.contains_key(name) && table.len() == FILES_MAX {
            return Err(format!("{path}: the limit is {FILES_MAX} files"));
        }
        let file = Rc::new(File {
            bytes: RefCell::default(),
            quota: Rc::clone(&self.quota),
        });
        table.insert(name.to_string(), Rc::clone(&file));
        Ok(file)
    }
}

impl Host for RamFiles {
    fn print(&self, _text: &str) -> bool {
        false
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        let file = self.find(path)?;
        Ok(Box::new(Reader { file, at: 0 }))
    }

    fn create_file(&self, path: &str, append: bool) -> Result<Box<dyn WriteFile>, String> {
        let old = self.find(path).ok().filter(|_| append);
        let file = old.map_or_else(|| self.make(path), Ok)?;
        let path = path.to_string();
        Ok(Box::new(Writer { file, path }))
    }
}

/// A path without what stands for the one folder that all files are in.
fn plain(path: &str) -> &str {
    path.trim_start_matches("./").trim_start_matches('/')
}

/// The name of a file that is written.
fn name_of(path: &str) -> Result<&str, String> {
    let name = plain(path);
    if path == "-" {
        return Err(format!("\"-\" {STANDARD}"));
    }
    if name.is_empty() || name.contains('/') {
        return Err(format!("\"{path}\" {FOLDER}"));
    }
    if name.len() > NAME_MAX || name.contains(char::is_control) {
        return Err(format!(
            "a file's name has at most {NAME_MAX} visible bytes"
        ));
    }
    Ok(name)
}

struct Reader {
    file: Rc<File>,
    at: usize,
}

impl ReadFile for Reader {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, String> {
        let bytes = self.file.bytes.borrow();
        let rest = bytes.get(self.at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }

    fn size(&self) -> Option<u64> {
        Some(self.file.bytes.borrow().len() as u64)
    }
}

struct Writer {
    file: Rc<File>,
    path: String,
}

impl WriteFile for Writer {
    fn write(&mut self, data: &[u8]) -> Result<(), String> {
        let written = self.file.append(data);
        written.map_err(|error| format!("{}: {error}", self.path))
    }

    fn is_memory(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(max: usize) -> RamFiles {
        RamFiles::new(Quota::new(max))
    }

    #[test]
    fn what_is_written_is_read() {
        let files = files(100);
        files.write_file("a", false, b"one").unwrap();
        files.write_file("./a", true, b"two").unwrap();
        assert_eq!(files.read_file("/a").unwrap(), b"onetwo");
        assert_eq!(files.list(), "6 a\n");
        assert_eq!(files.piece("2 a").unwrap(), b"etwo");
        assert_eq!(files.piece("7 a").unwrap(), b"");
        for bad in ["a", "", "x a", "-1 a", "0 b"] {
            assert!(files.piece(bad).is_err(), "{bad}");
        }
        assert_eq!(files.open_file("a").unwrap().size(), Some(6));
    }

    #[test]
    fn large_files_come_in_pieces() {
        let files = files(PIECE + 10);
        files.write_file("a", false, &[7; PIECE + 10]).unwrap();
        assert_eq!(files.piece("0 a").unwrap().len(), PIECE);
        assert_eq!(files.piece(&format!("{PIECE} a")).unwrap(), [7; 10]);
    }

    #[test]
    fn bad_names_are_refused() {
        let files = files(100);
        let long = "x".repeat(256);
        for bad in ["", "-", "/", "a/b", "../a", "a\nb", &long] {
            assert!(files.write_file(bad, false, b"").is_err(), "{bad}");
        }
        let error = files.read_file("/etc/passwd").unwrap_err();
        assert_eq!(error, format!("\"/etc/passwd\" {MISSING}"));
        let error = files.write_file("/tmp/a", false, b"").unwrap_err();
        assert_eq!(error, format!("\"/tmp/a\" {FOLDER}"));
    }

    #[test]
    fn the_limits_hold_and_what_is_gone_is_given_back() {
        let files = files(10);
        files.write_file("a", false, b"12345678").unwrap();
        let error = files.write_file("b", false, b"123").unwrap_err();
        assert_eq!(error, "b: the limit of all files is 10 bytes");
        files.write_file("a", false, b"").unwrap();
        files.write_file("b", false, b"1234567890").unwrap();
        for n in 2..FILES_MAX {
            files.write_file(&format!("{n}"), false, b"").unwrap();
        }
        let error = files.write_file("c", false, b"").unwrap_err();
        assert_eq!(error, "c: the limit is 64 files");
    }

    #[test]
    fn an_open_file_stays_when_its_name_gets_another() {
        let files = files(10);
        let mut old = files.create_file("a", false).unwrap();
        old.write(b"old").unwrap();
        let before = files.keep();
        files.write_file("a", false, b"newer").unwrap();
        old.write(b"er").unwrap();
        assert_eq!(files.read_file("a").unwrap(), b"newer");
        files.restore(before);
        assert_eq!(files.read_file("a").unwrap(), b"older");
        old.write(b"12345").unwrap(); // The other one's bytes were given back.
    }
}
