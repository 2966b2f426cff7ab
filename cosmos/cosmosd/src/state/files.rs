// SPDX-License-Identifier: Apache-2.0
//! Files that are written again on a full disk (docs/adr/0105).
//!
//! Each file has a spare with blocks of its own. A save overwrites the spare and exchanges the two
//! names in one step: that needs no block, no inode and no entry. Spaces fill the blocks, so a
//! reader of JSON sees no difference.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::base::error::{Error, Result};
use crate::base::files::{make_private_dir, remove_file};
use crate::state::room::{PART, StateRoom, unwritable};

/// Files grow by this many bytes, a block of usual file systems.
const BLOCK: usize = 4096;

/// Largest file, in bytes. A broken file system may report any length.
const MAX_FILE: usize = 16 << 20;

/// A directory of such files, `<stem>.json` each.
#[derive(Debug)]
pub struct StateFiles {
    dir: PathBuf,
    /// The directory's name in error messages.
    name: &'static str,
    /// A file outlives a loss of power.
    is_durable: bool,
    room: Arc<StateRoom>,
}

impl StateFiles {
    /// Opens (makes) a directory, readable by the daemon only.
    pub fn open(
        state_dir: &Path,
        name: &'static str,
        is_durable: bool,
        room: &Arc<StateRoom>,
    ) -> Result<Self> {
        let dir = state_dir.join(name);
        make_private_dir(&dir)?;
        Ok(Self {
            dir,
            name,
            is_durable,
            room: Arc::clone(room),
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, stem: &str) -> PathBuf {
        self.dir.join(format!("{stem}.json"))
    }

    /// Writes a file so that a crash leaves the old contents or the new ones, and holds `more`
    /// bytes for later ones.
    ///
    /// # Errors
    /// `state-dir`: the contents are the old ones.
    pub fn save(&self, stem: &str, contents: &[u8], more: usize) -> Result<()> {
        let [next, _] = self.pair(stem);
        let write = || -> io::Result<()> {
            self.grow(stem, contents.len() + more)?;
            self.overwrite(&next, contents)?;
            put(&next, &self.path(stem))?;
            self.sync()
        };
        self.named(stem, write())
    }

    /// Takes the blocks for contents of this many bytes; a save of them then needs no more.
    ///
    /// # Errors
    /// `state-dir`
    pub fn hold(&self, stem: &str, bytes: usize) -> Result<()> {
        self.named(stem, self.grow(stem, bytes))
    }

    /// Removes a file; one that is not there is no error.
    pub fn remove(&self, stem: &str) -> Result<()> {
        let path = self.path(stem);
        let all = [path.clone(), self.spare(stem), self.first(stem)];
        all.iter()
            .try_for_each(|path| remove_file(path))
            .and_then(|()| self.sync())
            .map_err(|e| Error::internal(path.display(), e))
    }

    /// The contents of a file, if there is one.
    pub fn load(&self, stem: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.path(stem);
        if len(&path) > MAX_FILE {
            return Err(too_long(len(&path)));
        }
        match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// The stems of all files. This removes others, and gives each file a spare as far as the disk
    /// has room.
    pub fn sweep(&self) -> Result<Vec<String>> {
        let place = |e| Error::internal(self.dir.display(), e);
        let (mut stems, mut others) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.dir).map_err(place)? {
            let path = entry.map_err(place)?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            match path.extension().and_then(|e| e.to_str()) {
                Some("json") => stems.push(stem.into_owned()),
                Some("new" | "spare") => others.push((stem.into_owned(), path)),
                _ => {}
            }
        }
        for (stem, path) in others {
            let is_new = path.extension().is_some_and(|e| e == "new");
            if is_new || !stems.contains(&stem) || len(&path) > MAX_FILE {
                remove_file(&path).map_err(place)?;
            }
        }
        for stem in &stems {
            // The disk may be full; the fault of the host says so.
            let _ = self.hold(stem, 0);
        }
        Ok(stems)
    }

    fn spare(&self, stem: &str) -> PathBuf {
        self.dir.join(format!("{stem}.spare"))
    }

    /// The file before its first save: no reader may take an empty one for a whole one.
    fn first(&self, stem: &str) -> PathBuf {
        self.dir.join(format!("{stem}.new"))
    }

    /// The one that the next save writes, and the other one.
    fn pair(&self, stem: &str) -> [PathBuf; 2] {
        let path = self.path(stem);
        match path.exists() {
            true => [self.spare(stem), path],
            false => [self.first(stem), self.spare(stem)],
        }
    }

    /// Gives both files this many bytes, or as many as the larger one has.
    fn grow(&self, stem: &str, bytes: usize) -> io::Result<()> {
        let pair = self.pair(stem);
        let lens = pair.iter().map(|path| len(path));
        let most = lens.fold(bytes, usize::max);
        if most > MAX_FILE {
            return Err(too_long(most));
        }
        let most = most.next_multiple_of(BLOCK);
        pair.iter().try_for_each(|path| self.grow_one(path, most))
    }

    /// Appends spaces, which a reader of JSON skips.
    fn grow_one(&self, path: &Path, bytes: usize) -> io::Result<()> {
        let missing = bytes.saturating_sub(len(path)); // Another save may have enlarged it.
        if missing == 0 {
            return Ok(());
        }
        let mut file = options().append(true).create(true).open(path)?;
        file.write_all(&vec![b' '; missing])?;
        self.sync_file(&file)
    }

    /// Replaces the contents in the blocks that the file has.
    fn overwrite(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let mut padded = contents.to_vec();
        padded.resize(len(path).max(contents.len()), b' ');
        let mut file = options().write(true).open(path)?;
        file.write_all(&padded)?;
        self.sync_file(&file)
    }

    fn named<T>(&self, stem: &str, result: io::Result<T>) -> Result<T> {
        result.map_err(|e| {
            self.room.note_failure();
            unwritable(format!("{PART}: {}/{stem}.json", self.name), &e)
        })
    }

    fn sync_file(&self, file: &File) -> io::Result<()> {
        match self.is_durable {
            true => file.sync_data(),
            false => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self.is_durable {
            true => File::open(&self.dir)?.sync_all(),
            false => Ok(()),
        }
    }
}

/// Puts a file where another is, whose blocks become those of the spare.
fn put(next: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, next, CWD, path, RenameFlags::EXCHANGE) {
        // A first save, or a file system that cannot exchange names: the next save makes a spare.
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => fs::rename(next, path),
        exchanged => exchanged.map_err(io::Error::from),
    }
}

fn too_long(bytes: usize) -> io::Error {
    let text = format!("{bytes} bytes, the limit is {MAX_FILE}");
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The bytes of a file, 0 if there is none.
fn len(path: &Path) -> usize {
    let found = path.metadata().ok().filter(|found| found.is_file());
    usize::try_from(found.map_or(0, |found| found.len())).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn files(dir: &Path) -> StateFiles {
        StateFiles::open(dir, "guests", true, &Arc::default()).unwrap()
    }

    fn names(files: &StateFiles) -> Vec<String> {
        let entries = fs::read_dir(files.dir()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().display().to_string())
            .collect();
        names.sort();
        names
    }

    fn text(files: &StateFiles, stem: &str) -> String {
        let contents = files.load(stem).unwrap().unwrap();
        String::from_utf8(contents).unwrap().trim_end().to_owned()
    }

    #[test]
    fn a_file_is_written_again_in_the_blocks_of_its_spare() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        files.save("a", b"[1]", 0).unwrap();
        let inodes = || {
            let all = [files.path("a"), files.spare("a")].map(|path| path.metadata().unwrap());
            all.map(|found| (found.ino(), found.len()))
        };
        let first = inodes();
        files.save("a", &[b'2'; BLOCK], 0).unwrap();
        let [now, spare] = inodes();
        assert_eq!([spare, now], first, "the two exchange their places");
        files.save("a", b"[3]", 0).unwrap();
        assert_eq!(inodes(), first);
        assert_eq!(text(&files, "a"), "[3]");
        files.remove("a").unwrap();
        assert_eq!(names(&files), Vec::<String>::new());
    }

    #[test]
    fn what_is_held_is_no_file_yet_and_what_a_crash_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        files.hold("a", 1).unwrap();
        assert_eq!(files.load("a").unwrap(), None);
        files.save("b", b"[]", BLOCK).unwrap();
        assert_eq!(len(&files.spare("b")), 2 * BLOCK);
        fs::remove_file(files.spare("b")).unwrap();
        assert_eq!(files.sweep().unwrap(), ["b"]);
        assert_eq!(names(&files), ["b.json", "b.spare"]);
        assert_eq!(len(&files.spare("b")), 2 * BLOCK);
    }

    #[test]
    fn a_file_of_an_earlier_version_gets_its_room() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        fs::write(files.path("a"), "[1]").unwrap();
        files.sweep().unwrap();
        assert_eq!(text(&files, "a"), "[1]");
        assert_eq!([len(&files.path("a")), len(&files.spare("a"))], [BLOCK; 2]);
    }

    #[test]
    fn a_file_of_any_length_is_refused_and_never_copied() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        files.save("a", b"[1]", 0).unwrap();
        let set_len = |path: &Path, bytes| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(bytes).unwrap();
        };
        set_len(&files.path("a"), 1 << 42);
        assert_eq!(files.sweep().unwrap(), ["a"]);
        files.load("a").unwrap_err();
        files.save("a", b"[2]", 0).unwrap_err();
        set_len(&files.path("a"), BLOCK as u64);
        assert_eq!(text(&files, "a"), "[1]");
        // A spare has nothing to lose.
        set_len(&files.spare("a"), 1 << 42);
        files.save("a", b"[2]", 0).unwrap_err();
        assert_eq!(files.sweep().unwrap(), ["a"]);
        files.save("a", b"[2]", 0).unwrap();
    }

    #[test]
    fn a_file_that_another_save_has_enlarged_is_large_enough() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        files.save("a", b"[1]", BLOCK).unwrap();
        files.grow_one(&files.path("a"), BLOCK).unwrap();
        assert_eq!(text(&files, "a"), "[1]");
    }

    #[test]
    fn a_failed_save_names_the_file_and_leaves_the_old_contents() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        files.save("a", b"[1]", 0).unwrap();
        fs::remove_file(files.spare("a")).unwrap();
        fs::create_dir(files.spare("a")).unwrap();
        assert!(files.hold("a", 1).is_err());
        let error = files.save("a", b"[2]", 0).unwrap_err();
        assert_eq!(error.code, crate::base::error::Code::StateDir);
        let words = "state_dir: guests/a.json: Is a directory";
        assert!(error.message.starts_with(words), "{error}");
        assert_eq!(text(&files, "a"), "[1]");
    }
}
