// SPDX-License-Identifier: Apache-2.0
//! Copies a domain's console, which xenconsoled keeps in a terminal, into the guest's log.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use log::warn;
use rustix::event::{PollFd, PollFlags, poll};

use crate::base::error::{Error, Result};
use crate::host::console::MAX_LOG;

/// A thread that copies until the domain or the pump is gone.
pub struct Pump {
    thread: Option<JoinHandle<()>>,
    /// Closing it ends the thread.
    alive: Option<OwnedFd>,
}

impl Pump {
    pub fn start(domid: u16, console: OwnedFd, log: File) -> Result<Self> {
        let place = |e: io::Error| Error::internal(format!("console of domain {domid}"), e);
        let (ended, alive) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|e| place(e.into()))?;
        let thread = std::thread::Builder::new().name(format!("console {domid}"));
        let thread = control_socket::spawn(thread, move || {
            copy(File::from(console), &ended, log)
                .unwrap_or_else(|e| warn!("console of domain {domid}: {e}; not kept on"));
        })
        .map_err(place)?;
        Ok(Self {
            thread: Some(thread),
            alive: Some(alive),
        })
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // It only copies; a panic in it was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Ends without an error when the domain is gone (the terminal hangs up) or `ended` closes.
fn copy(mut console: File, ended: &OwnedFd, mut log: File) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let mut is_full = false;
    loop {
        let mut fds = [
            PollFd::new(&console, PollFlags::IN),
            PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
        ];
        poll(&mut fds, None)?;
        let (console_ready, over) = (fds[0].revents(), fds[1].revents());
        if console_ready.contains(PollFlags::IN) {
            match console.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => note_full(&mut is_full, keep(&mut log, &buffer[..n])),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // A terminal gives this error after its other side closed.
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        } else if !over.is_empty() || console_ready.contains(PollFlags::HUP) {
            return Ok(());
        }
    }
}

/// Tells once that a disk takes no more of the log. The rest is read all the same.
fn note_full(is_full: &mut bool, kept: io::Result<()>) {
    if let Err(e) = &kept {
        if !*is_full {
            warn!("a console loses what it says: {e}");
        }
    }
    *is_full = kept.is_err();
}

/// Appends as long as the log may grow; the rest is read and dropped, or the guest would wait.
fn keep(log: &mut File, bytes: &[u8]) -> io::Result<()> {
    let left = MAX_LOG.saturating_sub(log.metadata()?.len());
    let room = usize::try_from(left).unwrap_or(usize::MAX);
    log.write_all(&bytes[..bytes.len().min(room)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    #[test]
    fn a_log_is_bounded() {
        let mut log = tempfile::tempfile().unwrap();
        log.set_len(MAX_LOG - 2).unwrap();
        log.seek(io::SeekFrom::End(0)).unwrap();
        keep(&mut log, b"abc").unwrap();
        keep(&mut log, b"abc").unwrap();
        assert_eq!(log.metadata().unwrap().len(), MAX_LOG);
    }

    #[test]
    fn bytes_are_copied_until_the_pump_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        File::from(writer).write_all(b"boot\n").unwrap();
        let pump = Pump::start(5, reader, File::create(&path).unwrap()).unwrap();
        drop(pump);
        assert_eq!(std::fs::read(&path).unwrap(), b"boot\n");
    }
}
