// SPDX-License-Identifier: Apache-2.0
//! Files that are read ahead and written behind, wherever the router keeps files.
use alloc::rc::Rc;

use click_core::{Host, ReadFile, WriteFile};

use crate::prelude::*;

/// Octets read or written at a time.
const BUFFER: usize = 1 << 14;

/// The error in a guest without files.
const NO_FILES: &str = "there are no files here";

/// Something that is read from its beginning to its end.
pub struct Source {
    file: Option<Box<dyn ReadFile>>,
    buffer: Vec<u8>,
    /// The used part of the buffer.
    used: usize,
    /// The read part of the buffer.
    filled: usize,
    at: u64,
    size: Option<u64>,
    failure: Option<String>,
}

impl Source {
    /// Opens a file.
    pub fn open(host: Option<&Rc<dyn Host>>, path: &str) -> Result<Self, String> {
        let host = host.ok_or_else(|| format!("{path}: {NO_FILES}"))?;
        let file = host.open_file(path)?;
        Ok(Self {
            size: file.size(),
            file: Some(file),
            ..Self::of(vec![0; BUFFER], 0)
        })
    }

    /// Reads what is there already.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        let filled = bytes.len();
        Self::of(bytes, filled)
    }

    fn of(buffer: Vec<u8>, filled: usize) -> Self {
        Self {
            file: None,
            size: Some(filled as u64),
            buffer,
            used: 0,
            filled,
            at: 0,
            failure: None,
        }
    }

    /// Octets used so far.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Octets of the whole, if that is known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Why reading ended before the end; said once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// The unused bytes of the buffer; none at the end.
    fn ahead(&mut self) -> &[u8] {
        if self.used == self.filled {
            (self.used, self.filled) = (0, 0);
            if let Some(file) = &mut self.file {
                match file.read(&mut self.buffer) {
                    Ok(read) => self.filled = read,
                    Err(message) => self.failure = Some(message),
                }
            }
            if self.filled == 0 {
                self.file = None;
            }
        }
        &self.buffer[self.used..self.filled]
    }

    fn take(&mut self, octets: usize) {
        self.used += octets;
        self.at += octets as u64;
    }

    /// Fills `into`; false if the file ends before.
    pub fn read_exact(&mut self, into: &mut [u8]) -> bool {
        let mut done = 0;
        while done < into.len() {
            let ahead = self.ahead();
            let some = ahead.len().min(into.len() - done);
            if some == 0 {
                return false;
            }
            into[done..done + some].copy_from_slice(&ahead[..some]);
            self.take(some);
            done += some;
        }
        true
    }

    /// Skips `n` octets, or all that remain.
    pub fn skip(&mut self, mut octets: u64) {
        while octets > 0 {
            let there = self.ahead().len();
            let some = usize::try_from(octets).map_or(there, |n| n.min(there));
            if some == 0 {
                return;
            }
            self.take(some);
            octets -= some as u64;
        }
    }

    /// A line with its end; what is longer than `most` is cut into several. None at the end.
    pub fn line(&mut self, most: usize) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        while line.len() < most && line.last() != Some(&b'\n') {
            let ahead = self.ahead();
            let ahead = &ahead[..ahead.len().min(most - line.len())];
            let some = ahead.iter().position(|b| *b == b'\n');
            let some = some.map_or(ahead.len(), |at| at + 1);
            if some == 0 {
                break;
            }
            line.extend_from_slice(&ahead[..some]);
            self.take(some);
        }
        (!line.is_empty()).then_some(line)
    }
}

/// A file that is overwritten.
pub struct Sink {
    file: Box<dyn WriteFile>,
    buffer: Vec<u8>,
    /// The most bytes that the writer holds back.
    room: usize,
}

impl Sink {
    /// Makes a file.
    pub fn create(host: Option<&Rc<dyn Host>>, path: &str) -> Result<Self, String> {
        let host = host.ok_or_else(|| format!("{path}: {NO_FILES}"))?;
        let file = host.create_file(path, false)?;
        let room = if file.is_memory() { 0 } else { BUFFER };
        Ok(Self {
            file,
            buffer: Vec::with_capacity(room),
            room,
        })
    }

    /// Writes, now or later.
    #[inline]
    pub fn write(&mut self, data: &[u8]) -> Result<(), String> {
        if self.buffer.len() + data.len() > self.room {
            self.empty()?;
        }
        if data.len() > self.room {
            return self.file.write(data);
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// Gives what waits here to the file.
    fn empty(&mut self) -> Result<(), String> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write(&self.buffer);
        self.buffer.clear();
        written
    }

    /// Writes what waits.
    pub fn flush(&mut self) -> Result<(), String> {
        self.empty()?;
        self.file.flush()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // the element is gone: there is no place for an error
        let _ = self.empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::RefCell;

    /// A file that comes and goes in pieces, and breaks when it is at its end.
    struct Pieces {
        rest: Vec<u8>,
        piece: usize,
        breaks: bool,
    }

    impl ReadFile for Pieces {
        fn read(&mut self, into: &mut [u8]) -> Result<usize, String> {
            let some = self.piece.min(self.rest.len()).min(into.len());
            if some == 0 && self.breaks {
                return Err("f: broken".to_string());
            }
            into[..some].copy_from_slice(&self.rest[..some]);
            self.rest.drain(..some);
            Ok(some)
        }
    }

    #[derive(Default)]
    struct Memory(Rc<RefCell<Vec<u8>>>, bool);

    impl WriteFile for Memory {
        fn write(&mut self, data: &[u8]) -> Result<(), String> {
            self.0.borrow_mut().extend_from_slice(data);
            Ok(())
        }
    }

    impl Host for Memory {
        fn print(&self, _: &str) -> bool {
            true
        }
        fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
            Ok(Box::new(Pieces {
                rest: path.as_bytes().to_vec(),
                piece: 3,
                breaks: self.1,
            }))
        }
        fn create_file(&self, _: &str, _: bool) -> Result<Box<dyn WriteFile>, String> {
            Ok(Box::new(Self(Rc::clone(&self.0), false)))
        }
    }

    fn open(content: &str, breaks: bool) -> Source {
        let host: Rc<dyn Host> = Rc::new(Memory(Rc::default(), breaks));
        Source::open(Some(&host), content).unwrap()
    }

    #[test]
    fn pieces_of_a_file_make_no_difference() {
        let mut source = open("0123456789ab\ncd\nefghij", false);
        let mut four = [0; 4];
        assert!(source.read_exact(&mut four));
        assert_eq!((&four, source.at()), (b"0123", 4));
        source.skip(5);
        assert_eq!(source.line(100).unwrap(), b"9ab\n");
        assert_eq!(source.line(2).unwrap(), b"cd");
        assert_eq!(source.line(100).unwrap(), b"\n");
        assert_eq!(source.line(4).unwrap(), b"efgh");
        assert!(!source.read_exact(&mut four));
        source.skip(1);
        assert_eq!((source.at(), source.line(9)), (22, None));
        assert_eq!(source.take_failure(), None);
    }

    #[test]
    fn a_file_that_breaks_ends_with_a_message() {
        let mut source = open("ab", true);
        assert_eq!(source.line(9).unwrap(), b"ab");
        assert_eq!(source.line(9), None);
        assert_eq!(source.take_failure().as_deref(), Some("f: broken"));
        assert_eq!((source.line(9), source.take_failure()), (None, None));
    }

    #[test]
    fn everything_is_written_in_order_and_at_the_end() {
        let memory = Memory::default();
        let written = Rc::clone(&memory.0);
        let host: Rc<dyn Host> = Rc::new(memory);
        let mut sink = Sink::create(Some(&host), "f").unwrap();
        let long = vec![7; BUFFER + 1];
        sink.write(b"ab").unwrap();
        assert!(written.borrow().is_empty());
        sink.write(&long).unwrap();
        sink.write(b"cd").unwrap();
        drop(sink);
        assert_eq!(*written.borrow(), [b"ab", &long[..], b"cd"].concat());
        assert!(Sink::create(None, "f").is_err() && Source::open(None, "f").is_err());
    }
}
