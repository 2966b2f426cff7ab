// SPDX-License-Identifier: Apache-2.0
//! A pcap file that a thread of its own fills: a slow disk costs copies, never forwarding.
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};

/// Copies that wait for the disk.
const QUEUE: usize = 512;
/// Bytes of a frame that a file gets.
const SNAP: usize = 2048;
/// Largest file, in bytes of frames and their headers.
const MAX_BYTES: usize = 256 << 20;
const RECORD_HEADER: usize = 16;
/// A file looks for room in its directory whenever it has grown by as much.
const STEP: usize = 1 << 20;

/// The directory for files of mirrors and ports, and what they may have together.
#[derive(Clone, Debug)]
pub struct CaptureDir {
    path: PathBuf,
    max_bytes: u64,
}

impl CaptureDir {
    /// A directory whose files may have this number of bytes.
    pub fn new(path: impl Into<PathBuf>, max_bytes: u64) -> Self {
        let path = path.into();
        Self { path, max_bytes }
    }

    /// The file of this name.
    pub fn file(&self, name: impl std::fmt::Display) -> PathBuf {
        self.path.join(format!("{name}.pcap"))
    }

    /// Makes the file of this name. One that exists stays as it is.
    ///
    /// # Errors
    /// The file exists or cannot be made, the directory is full, or there is no further thread.
    pub fn create(&self, name: impl std::fmt::Display) -> io::Result<Capture> {
        self.check_room()?;
        Capture::create(&self.file(name), self.clone())
    }

    /// # Errors
    /// The files of the directory have as many bytes as they may.
    fn check_room(&self) -> io::Result<()> {
        let sizes = std::fs::read_dir(&self.path)?.map(|entry| Ok(entry?.metadata()?.len()));
        let bytes: u64 = sizes.sum::<io::Result<u64>>()?;
        let max_bytes = self.max_bytes;
        match bytes < max_bytes {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the files of capture_dir have {bytes} bytes, the limit is {max_bytes}; \
                 remove some"
            ))),
        }
    }
}

/// The first bytes of a frame, and its length.
type Copied = (Vec<u8>, usize);

/// The way into a file. The thread ends with the last copy of this.
#[derive(Clone)]
pub struct Capture(SyncSender<Copied>);

impl Capture {
    fn create(path: &Path, directory: CaptureDir) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let header = PcapHeader {
            snaplen: SNAP as u32,
            datalink: DataLink::ETHERNET,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(file, header);
        let writer = writer.map_err(|e| {
            // On a full disk: without a header the file would only be in the way of the next one.
            let _ = std::fs::remove_file(path);
            io::Error::other(e)
        })?;
        let (sender, frames) = sync_channel(QUEUE);
        let name = path.display().to_string();
        let write = move || {
            if let Err(error) = fill(writer, &frames, &directory) {
                log::warn!("{name}: {error}; the mirror drops its further copies");
            }
        };
        let thread = std::thread::Builder::new().name("capture".to_owned());
        control_socket::spawn(thread, write)?;
        Ok(Self(sender))
    }

    /// Queues a frame. False if the queue or the file is full.
    pub fn write(&self, frame: &[u8]) -> bool {
        let copied = (frame[..frame.len().min(SNAP)].to_vec(), frame.len());
        self.0.try_send(copied).is_ok()
    }
}

/// Writes frames until the mirror is gone, or the file or its directory is full.
fn fill(
    mut writer: PcapWriter<File>,
    frames: &Receiver<Copied>,
    directory: &CaptureDir,
) -> io::Result<()> {
    let (mut room, mut checked_at) = (MAX_BYTES, MAX_BYTES);
    for (bytes, orig_len) in frames {
        room = room.saturating_sub(bytes.len() + RECORD_HEADER);
        if room == 0 {
            return Err(io::Error::other(format!("has {MAX_BYTES} bytes")));
        }
        if checked_at - room >= STEP {
            directory.check_room()?;
            checked_at = room;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let packet = PcapPacket {
            timestamp: time.unwrap_or_default(),
            orig_len: orig_len as u32,
            data: Cow::Owned(bytes),
        };
        writer.write_packet(&packet).map_err(io::Error::other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; SNAP] = [0; SNAP];

    fn bytes(captures: &CaptureDir, name: &str) -> u64 {
        std::fs::metadata(captures.file(name)).unwrap().len()
    }

    #[test]
    fn files_of_a_directory_share_its_room() {
        let folder = tempfile::tempdir().unwrap();
        let captures = CaptureDir::new(folder.path(), 3 << 20);
        let (first, second) = (captures.create("a").unwrap(), captures.create("b").unwrap());
        // Each of them alone would get 4 MiB.
        let send = |capture: Capture| {
            for _ in 0..2048 {
                // The thread ends when the directory is full.
                if capture.0.send((FRAME.to_vec(), SNAP)).is_err() {
                    return true;
                }
            }
            false
        };
        let ended = std::thread::spawn(move || send(first));
        assert!(send(second) && ended.join().unwrap());
        let both = bytes(&captures, "a") + bytes(&captures, "b");
        // Each of them may go on by a step until it looks.
        assert!((3 << 20..=5 << 20).contains(&both), "{both}");
        let error = captures.create("c").err().unwrap().to_string();
        assert!(error.contains("the limit is 3145728"), "{error}");
        assert!(!captures.file("c").exists());
        std::fs::remove_file(captures.file("a")).unwrap();
        std::fs::remove_file(captures.file("b")).unwrap();
        assert!(captures.create("c").is_ok());
    }

    #[test]
    fn a_directory_that_is_gone_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let captures = CaptureDir::new(folder.path().join("gone"), 1 << 20);
        assert!(captures.create("a").is_err());
    }
}
