// SPDX-License-Identifier: Apache-2.0
//! A pcap file that a thread of its own fills: a slow disk costs copies, never forwarding.
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
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

/// The first bytes of a frame, and its length.
type Copied = (Vec<u8>, usize);

/// The way into a file. The thread ends with the last copy of this.
#[derive(Clone)]
pub struct Capture(SyncSender<Copied>);

impl Capture {
    /// Makes the file. One that exists stays as it is.
    ///
    /// # Errors
    /// The file exists or cannot be made, or there is no further thread.
    pub fn create(path: &Path) -> io::Result<Self> {
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
            if let Err(error) = fill(writer, &frames) {
                log::warn!("{name}: {error}; the mirror drops its further copies");
            }
        };
        std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(write)?;
        Ok(Self(sender))
    }

    /// Queues a frame. False if the queue or the file is full.
    pub fn write(&self, frame: &[u8]) -> bool {
        let copied = (frame[..frame.len().min(SNAP)].to_vec(), frame.len());
        self.0.try_send(copied).is_ok()
    }
}

/// Writes frames until the mirror is gone or the file is full.
fn fill(mut writer: PcapWriter<File>, frames: &Receiver<Copied>) -> io::Result<()> {
    let mut room = MAX_BYTES;
    for (bytes, orig_len) in frames {
        room = room.saturating_sub(bytes.len() + RECORD_HEADER);
        if room == 0 {
            return Err(io::Error::other(format!("has {MAX_BYTES} bytes")));
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
