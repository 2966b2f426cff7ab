// SPDX-License-Identifier: Apache-2.0
//! A port whose far end is files of packets: it plays one and writes another.
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use ring::LONGEST;
use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use vale_proto::{Counters, Pcap};

use crate::clock::Nanoseconds;
use crate::device::capture::{Capture, CaptureDir};
use crate::device::{BURST, Buffers, Burst, Device};
use crate::frame::headers::ETHERNET;
use crate::frame::rx_frame::RxFrame;
use crate::frame::tx_frame::{TxFrame, append};

/// Largest file that a port plays, in bytes of frames.
const MAX_BYTES: usize = 64 << 20;
/// Most frames of such a file.
const MAX_FRAMES: usize = 1 << 20;
const SECOND: Nanoseconds = 1_000_000_000;

pub struct PcapPort {
    player: Option<Player>,
    capture: Option<Capture>,
    /// One frame on its way to the file.
    frame: Vec<u8>,
}

impl PcapPort {
    /// # Errors
    /// A file cannot be read or made; the text names it.
    pub fn open(of: &Pcap, directory: &CaptureDir) -> io::Result<Self> {
        let player = of.read.as_ref().map(|name| {
            let path = directory.file(name);
            let played = read(&path).and_then(|frames| Player::new(frames, of));
            played.map_err(|e| named("read", &path, &e))
        });
        let player = player.transpose()?;
        let capture = of.write.as_ref().map(|name| {
            let created = directory.create(name);
            created.map_err(|e| named("write", &directory.file(name), &e))
        });
        Ok(Self {
            player,
            capture: capture.transpose()?,
            frame: Vec::new(),
        })
    }
}

fn named(field: &str, path: &Path, error: &io::Error) -> io::Error {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    io::Error::new(error.kind(), format!("{field}: {file}: {error}"))
}

fn refused(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

/// The frames of a file with their times, from the first one on.
fn read(path: &Path) -> io::Result<Vec<(Nanoseconds, Vec<u8>)>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused("is not a file".to_owned()));
    }
    let wrong = |number: usize, what: &dyn std::fmt::Display| {
        refused(format!("frame {}: {what}", number + 1))
    };
    let reader = PcapReader::new(BufReader::new(File::open(path)?));
    let mut reader = reader.map_err(|e| refused(e.to_string()))?;
    if reader.header().datalink != DataLink::ETHERNET {
        return Err(refused("its frames are not Ethernet".to_owned()));
    }
    let (mut frames, mut bytes, mut start) = (Vec::new(), 0, None);
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|e| wrong(frames.len(), &e))?;
        let len = packet.data.len();
        if !(ETHERNET..=LONGEST).contains(&len) {
            let text = format!("{len} bytes are outside {ETHERNET}..={LONGEST}");
            return Err(wrong(frames.len(), &text));
        }
        bytes += len;
        if bytes > MAX_BYTES || frames.len() == MAX_FRAMES {
            let text = format!("more than {MAX_BYTES} bytes or {MAX_FRAMES} frames in all");
            return Err(wrong(frames.len(), &text));
        }
        let time = packet
            .timestamp
            .saturating_sub(*start.get_or_insert(packet.timestamp));
        let time = Nanoseconds::try_from(time.as_nanos()).unwrap_or(Nanoseconds::MAX / 2);
        frames.push((time, packet.data.into_owned()));
    }
    match frames.is_empty() {
        true => Err(refused("holds no frames".to_owned())),
        false => Ok(frames),
    }
}

/// Sends the frames of a file at their times.
struct Player {
    frames: Vec<(Nanoseconds, Vec<u8>)>,
    /// Nanoseconds of one play.
    period: Nanoseconds,
    repeat: bool,
    /// The time of the first frame of this play; None before the first round.
    start: Option<Nanoseconds>,
    /// The next frame.
    next: usize,
    /// The first frame of the burst.
    first: usize,
    now: Nanoseconds,
    timer: OwnedFd,
}

impl Player {
    fn new(mut frames: Vec<(Nanoseconds, Vec<u8>)>, of: &Pcap) -> io::Result<Self> {
        if let Some(rate) = of.packets_per_s {
            let times = frames.iter_mut().zip(0..);
            times.for_each(|(frame, n): (_, u64)| frame.0 = n * SECOND / rate);
        }
        let mut last = 0;
        for (time, _) in &mut frames {
            last = last.max(*time);
            *time = last;
        }
        let gap = (last / frames.len().saturating_sub(1).max(1) as u64).max(1000);
        let gap = of.packets_per_s.map_or(gap, |rate| SECOND / rate);
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            period: last + gap,
            frames,
            repeat: of.repeat,
            start: None,
            next: 0,
            first: 0,
            now: 0,
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
        })
    }

    /// The time of the next frame; None after the last one.
    fn due(&self) -> Option<Nanoseconds> {
        let (time, _) = self.frames.get(self.next)?;
        Some(self.start.unwrap_or(self.now).saturating_add(*time))
    }

    /// The number of frames that are due. A burst ends with the file.
    fn advance(&mut self, now: Nanoseconds) -> usize {
        self.now = now;
        let start = *self.start.get_or_insert(now);
        if self.repeat && self.next == self.frames.len() {
            (self.next, self.start) = (0, Some(start.saturating_add(self.period)));
        }
        self.first = self.next;
        while self.next - self.first < BURST && self.due().is_some_and(|due| due <= now) {
            self.next += 1;
        }
        self.next - self.first
    }

    /// Sets the timer for the next frame. True if it is due.
    fn wait(&mut self) -> bool {
        if self.repeat && self.next == self.frames.len() {
            return true;
        }
        let Some(wait) = self.due().map(|due| due.saturating_sub(self.now)) else {
            return false;
        };
        let it_value = Timespec {
            tv_sec: (wait / SECOND) as i64,
            tv_nsec: (wait % SECOND) as i64,
        };
        let it_interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let time = Itimerspec {
            it_interval,
            it_value,
        };
        // Without a timer the switch polls.
        wait == 0 || timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time).is_err()
    }
}

impl Device for PcapPort {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.player.as_ref().map(|player| player.timer.as_fd())
    }

    /// Edge-triggered: the next setting of the timer forgets this event.
    fn take_event(&mut self) {}

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        let player = self.player.as_mut();
        player.map_or(0, |player| player.advance(burst.now))
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        let player = self.player.as_ref()?;
        let (_, frame) = player.frames.get(player.first + n)?;
        let bytes = &mut burst.whole[..frame.len()];
        bytes.copy_from_slice(frame);
        Some(RxFrame {
            bytes,
            rest: None,
            offload: Default::default(),
        })
    }

    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters) {
        let Some(capture) = &self.capture else {
            return counters.dropped_link_down += 1;
        };
        out.finish(&mut buffers.segment, |head, rest| {
            self.frame.clear();
            append(&mut self.frame, head, rest);
            match capture.write(&self.frame) {
                true => {
                    counters.tx_packets += 1;
                    counters.tx_bytes += self.frame.len() as u64;
                }
                false => counters.dropped_full += 1,
            }
        });
    }

    fn flush(&mut self, _: &mut Counters) {}

    fn sleep_prepare(&mut self) -> bool {
        self.player.as_mut().is_some_and(Player::wait)
    }
}

#[cfg(test)]
#[path = "pcap_props.rs"]
mod props;
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pcap_file::pcap::{PcapPacket, PcapWriter};
    use serde_json::{Value, json};

    use super::*;

    fn captures(dir: &tempfile::TempDir) -> CaptureDir {
        CaptureDir::new(dir.path(), 1 << 20)
    }

    fn file_in(dir: &tempfile::TempDir, name: &str) -> std::path::PathBuf {
        captures(dir).file(name)
    }

    /// A directory with the file `in`, which has frames of 60 bytes at these milliseconds.
    fn directory(times: &[u64]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(file_in(&dir, "in")).unwrap();
        let mut writer = PcapWriter::new(file).unwrap();
        for (n, time) in times.iter().enumerate() {
            let frame = [n as u8; 60];
            let packet = PcapPacket::new(Duration::from_millis(*time), 60, &frame);
            writer.write_packet(&packet).unwrap();
        }
        dir
    }

    fn open(dir: &tempfile::TempDir, args: Value) -> io::Result<PcapPort> {
        PcapPort::open(&serde_json::from_value(args).unwrap(), &captures(dir))
    }

    /// The numbers of the frames that are due at a time in microseconds.
    fn due(port: &mut PcapPort, now: u64) -> Vec<u8> {
        let mut burst = Burst {
            now: now * 1000,
            ..Burst::default()
        };
        let count = port.fetch(&mut burst);
        let mut number = |n| port.taken(&mut burst, n).unwrap().bytes[0];
        (0..count).map(&mut number).collect()
    }

    #[test]
    fn a_file_is_played_once_at_its_times() {
        let dir = directory(&[500, 501, 501, 503]);
        let mut port = open(&dir, json!({"read": "in"})).unwrap();
        assert_eq!(due(&mut port, 7000), [0]);
        assert!(due(&mut port, 7999).is_empty());
        assert!(!port.sleep_prepare(), "the timer is set");
        assert_eq!(due(&mut port, 8000), [1, 2]);
        assert_eq!(due(&mut port, 9_000_000), [3]);
        assert!(due(&mut port, 9_900_000).is_empty());
        assert!(!port.sleep_prepare());
    }

    #[test]
    fn a_rate_replaces_the_times_and_bursts_keep_the_order() {
        let dir = directory(&[9; 200]);
        let args = json!({"read": "in", "packets_per_s": 1000, "repeat": true});
        let mut port = open(&dir, args).unwrap();
        let mut played = Vec::new();
        for millisecond in 0..600 {
            played.extend(due(&mut port, millisecond * 1000));
        }
        let wanted = (0..600).map(|n| (n % 200) as u8);
        assert_eq!(played, wanted.collect::<Vec<_>>());
        let late = due(&mut port, 1_000_000);
        assert_eq!((late.len(), late[63]), (64, 63));
        assert!(port.sleep_prepare(), "more frames are due");
    }

    #[test]
    fn unusable_files_are_refused_by_name() {
        let dir = directory(&[]);
        for (name, text) in [("in", "holds no frames"), ("none", "No such file")] {
            let error = open(&dir, json!({"read": name})).err().unwrap().to_string();
            assert!(error.starts_with(&format!("read: {name}.pcap")), "{error}");
            assert!(error.contains(text), "{error}");
        }
        let error = open(&dir, json!({"write": "in"})).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        std::fs::write(file_in(&dir, "text"), "text").unwrap();
        assert!(open(&dir, json!({"read": "text"})).is_err());
        std::fs::create_dir(file_in(&dir, "dir")).unwrap();
        assert!(open(&dir, json!({"read": "dir"})).is_err());
        let (path, mut bytes) = (file_in(&dir, "cut"), Vec::new());
        let whole = directory(&[1, 2]);
        bytes.extend(std::fs::read(file_in(&whole, "in")).unwrap());
        std::fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
        let error = open(&dir, json!({"read": "cut"})).err().unwrap();
        assert!(error.to_string().contains("frame 2"), "{error}");
    }
}
