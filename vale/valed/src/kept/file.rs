// SPDX-License-Identifier: Apache-2.0
//! The file of kept requests. It is replaced as a whole, and read like the line of an unknown peer.
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use control_socket::typed_at;
use rustix::fs::{Mode, OFlags};
use vale_proto::{KEPT_VERSION, Keep, KeptFile};

/// Largest file, in bytes.
pub const MAX_FILE: u64 = 4 << 20;
const NAME: &str = "kept.json";
const NEW: &str = "kept.json.new";
/// The last file that could not be used.
const UNUSABLE: &str = "kept.json.unusable";

#[derive(Debug)]
pub struct StateFile {
    folder: PathBuf,
}

impl StateFile {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The requests of the file; none if there is no file.
    pub fn read(&self) -> Result<Vec<Keep>, String> {
        let path = self.path(NAME);
        let named = |e: String| format!("{}: {e}", path.display());
        match read(&path) {
            Ok(bytes) => parse(&bytes).map_err(named),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(named(e.to_string())),
        }
    }

    /// Puts a file that cannot be used out of the way; the operator repairs or removes it.
    pub fn set_aside(&self) -> io::Result<()> {
        fs::rename(self.path(NAME), self.path(UNUSABLE))
    }

    /// The fault while a file lies aside.
    pub fn fault(&self) -> Option<String> {
        let path = self.path(UNUSABLE);
        let lies = fs::symlink_metadata(&path).is_ok();
        lies.then(|| {
            format!(
                "{}: could not be used; repeat its requests and remove it",
                path.display()
            )
        })
    }

    /// Writes the next file next to the present one, so that a full disk shows before anything changes.
    pub fn prepare(&self, kept: Vec<Keep>) -> Result<NextFile, String> {
        let path = self.path(NEW);
        let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let version = KEPT_VERSION;
        let mut text = serde_json::to_vec(&KeptFile { version, kept }).map_err(|e| named(&e))?;
        text.push(b'\n');
        if text.len() as u64 > MAX_FILE {
            let bytes = text.len();
            return Err(named(&format!("{bytes} bytes are more than {MAX_FILE}")));
        }
        let next = NextFile {
            new: path.clone(),
            path: self.path(NAME),
        };
        write(&path, &text).map_err(|e| named(&e))?;
        Ok(next)
    }
}

/// A written file that is not in force yet; it is removed if it never is.
#[derive(Debug)]
pub struct NextFile {
    new: PathBuf,
    path: PathBuf,
}

impl NextFile {
    /// Replaces the last file.
    pub fn commit(self) -> Result<(), String> {
        let done = fs::rename(&self.new, &self.path).and_then(|()| {
            let folder = self.path.parent();
            File::open(folder.unwrap_or(Path::new("/")))?.sync_all()
        });
        done.map_err(|e| format!("{}: {e}", self.path.display()))
    }
}

impl Drop for NextFile {
    fn drop(&mut self) {
        let _gone_after_commit = fs::remove_file(&self.new);
    }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let written = create(path).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => (),
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Reads a regular file of at most [`MAX_FILE`] bytes that only root and this user can write.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::CLOEXEC | flags,
        Mode::empty(),
    )?;
    let file = File::from(file);
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let own = rustix::process::geteuid().as_raw();
    if ![0, own].contains(&about.uid()) || about.mode() & 0o022 != 0 {
        let (uid, mode) = (about.uid(), about.mode() & 0o7777);
        let text = format!("uid {uid} and mode {mode:o} let others write it");
        return Err(io::Error::other(text));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_FILE {
        true => Err(io::Error::other(format!("more than {MAX_FILE} bytes"))),
        false => Ok(bytes),
    }
}

fn parse(bytes: &[u8]) -> Result<Vec<Keep>, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
    // The words of the parser quote the file.
    let file: KeptFile = typed_at("", text).map_err(|words| words.escape_debug().to_string())?;
    match file.version {
        KEPT_VERSION => Ok(file.kept),
        other => Err(format!("version: {other} is not {KEPT_VERSION}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn request(port: &str) -> Keep {
        let args = serde_json::json!({"switch": "vale0", "port": port, "kind": "tap",
            "ifname": "t0", "segment": 1, "port_security": false});
        Keep::PortAdd(serde_json::from_value(args).unwrap())
    }

    #[test]
    fn what_was_committed_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(folder.path().to_owned());
        assert_eq!(file.read(), Ok(Vec::new()));
        let next = file.prepare(vec![request("a")]).unwrap();
        assert_eq!(file.read(), Ok(Vec::new()), "not in force yet");
        next.commit().unwrap();
        assert_eq!(file.read(), Ok(vec![request("a")]));
        drop(file.prepare(vec![request("b")]).unwrap());
        assert_eq!(file.read(), Ok(vec![request("a")]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // A new file of a killed valed, or of another user, is no obstacle.
        symlink("/dev/full", folder.path().join(NEW)).unwrap();
        file.prepare(vec![request("b")]).unwrap().commit().unwrap();
        assert_eq!(file.read(), Ok(vec![request("b")]));
    }

    #[test]
    fn a_hostile_file_is_refused_with_its_fault() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(folder.path().to_owned());
        let path = folder.path().join(NAME);
        let big = vec![b' '; MAX_FILE as usize + 1];
        for (bytes, words) in [
            (&b""[..], "EOF"),
            (b"{\"version\":1,\"kept\":[", "EOF"),
            (b"\x00\xff\x1b[2J", "utf-8"),
            (b"{\"version\":2,\"kept\":[]}", "version: 2 is not 1"),
            (b"{\"version\":1,\"kept\":[],\"x\":1}", "unknown field"),
            (
                b"{\"version\":1,\"kept\":[{\"verb\":\"hello\",\"args\":{}}]}",
                "hello",
            ),
            (&big, "more than 4194304 bytes"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = file.read().unwrap_err();
            assert!(error.contains(words) && error.contains(NAME), "{error}");
            assert!(!error.contains('\x1b'), "{error:?}");
        }
        fs::write(&path, b"{\"version\":1,\"kept\":[]}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(file.read().unwrap_err().contains("mode 666"));
        fs::remove_file(&path).unwrap();
        symlink("/etc/hostname", &path).unwrap();
        assert!(file.read().unwrap_err().contains("symbolic links"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(file.read().unwrap_err().contains("not a regular file"));
    }

    #[test]
    fn an_unusable_file_is_kept_aside_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(folder.path().to_owned());
        assert_eq!(file.fault(), None);
        fs::write(folder.path().join(NAME), "x").unwrap();
        file.set_aside().unwrap();
        assert_eq!(file.read(), Ok(Vec::new()));
        assert!(file.fault().unwrap().contains(UNUSABLE));
        assert_eq!(fs::read(folder.path().join(UNUSABLE)).unwrap(), b"x");
    }
}
