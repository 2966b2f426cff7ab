// SPDX-License-Identifier: Apache-2.0
//! Lines with descriptors over a stream socket.
//!
//! Linux ends a `recvmsg` with the message that carried descriptors, so descriptors belong to the
//! last line that begins in the bytes they arrived with.
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::{MAX_FDS, MAX_LINE, SMALL_LINE};

const CHUNK: usize = 64 << 10;

/// A line without its newline, and the descriptors that came with it.
pub(crate) type Line = (Vec<u8>, Vec<OwnedFd>);

/// Why no further line can be read.
#[derive(Debug)]
pub(crate) enum LineError {
    /// The peer closed, between two lines or inside one.
    Closed,
    TooLong,
    TooManyFds,
    TimedOut,
    /// The lines of the peer's uid hold all bytes they may.
    NoRoom,
    Io(io::Error),
}

/// Reads lines and the descriptors that came with them.
#[derive(Default)]
pub(crate) struct LineReader {
    buffer: Vec<u8>,
    /// Bytes of `buffer` known to hold no newline.
    searched: usize,
    /// Descriptors, with the place in `buffer` where their line begins.
    fds: VecDeque<(usize, OwnedFd)>,
}

impl LineReader {
    /// The next line, of at most `limit` bytes; after [`LineError::TooLong`] a call with a larger
    /// limit continues. Waits at most `idle` for its first byte and at most `line` from then on
    /// for its end.
    pub fn read(
        &mut self,
        socket: &UnixStream,
        limit: usize,
        idle: Duration,
        line: Duration,
    ) -> Result<Line, LineError> {
        if limit > SMALL_LINE {
            // At once, because growth by doubling holds up to three times as much.
            let room = limit + CHUNK;
            self.buffer
                .reserve_exact(room.saturating_sub(self.buffer.len()));
        }
        let mut deadline = Instant::now() + if self.buffer.is_empty() { idle } else { line };
        loop {
            if let Some(found) = self.take_line(limit)? {
                return Ok(found);
            }
            let was_empty = self.buffer.is_empty();
            wait(socket.as_fd(), PollFlags::IN, deadline)?;
            self.receive(socket)?;
            if was_empty && !self.buffer.is_empty() {
                deadline = Instant::now() + line;
            }
        }
    }

    fn take_line(&mut self, limit: usize) -> Result<Option<Line>, LineError> {
        let Some(at) = self.buffer[self.searched..]
            .iter()
            .position(|b| *b == b'\n')
        else {
            self.searched = self.buffer.len();
            return if self.buffer.len() > limit {
                Err(LineError::TooLong)
            } else {
                Ok(None)
            };
        };
        let end = self.searched + at;
        if end > limit {
            return Err(LineError::TooLong);
        }
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(end);
        self.searched = 0;
        let mut fds = Vec::new();
        while self.fds.front().is_some_and(|(begin, _)| *begin <= end) {
            fds.extend(self.fds.pop_front().map(|(_, fd)| fd));
        }
        for (begin, _) in &mut self.fds {
            *begin -= end + 1;
        }
        Ok(Some((line, fds)))
    }

    fn receive(&mut self, socket: &UnixStream) -> Result<(), LineError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let old = self.buffer.len();
        self.buffer.resize(old + CHUNK, 0);
        let received = loop {
            let mut parts = [IoSliceMut::new(&mut self.buffer[old..])];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            match recvmsg(socket, &mut parts, &mut control, flags) {
                Err(Errno::INTR) => (),
                Err(Errno::AGAIN) => {
                    self.buffer.truncate(old);
                    return Ok(());
                }
                other => break other,
            }
        };
        self.buffer
            .truncate(old + received.as_ref().map_or(0, |r| r.bytes));
        let received = received.map_err(|e| LineError::Io(e.into()))?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                let begin = self.last_line_begin();
                self.fds.extend(fds.map(|fd| (begin, fd)));
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) || self.fds.len() > MAX_FDS {
            return Err(LineError::TooManyFds);
        }
        if received.bytes == 0 {
            Err(LineError::Closed)
        } else {
            Ok(())
        }
    }

    /// Where the last line of `buffer` begins, complete or not.
    fn last_line_begin(&self) -> usize {
        let body = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        body.iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1)
    }
}

/// Sends `line`, a newline and `fds`; gives up after `timeout`.
pub(crate) fn send_line(
    socket: &UnixStream,
    mut line: Vec<u8>,
    fds: &[BorrowedFd<'_>],
    timeout: Duration,
) -> Result<(), LineError> {
    if fds.len() > MAX_FDS {
        return Err(LineError::TooManyFds);
    }
    if line.len() > MAX_LINE {
        return Err(LineError::TooLong);
    }
    line.push(b'\n');
    let deadline = Instant::now() + timeout;
    let (mut sent, mut fds) = (0, fds);
    while sent < line.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(socket, &[IoSlice::new(&line[sent..])], &mut control, flags) {
            Ok(n) => {
                sent += n;
                fds = &[];
            }
            Err(Errno::AGAIN) => wait(socket.as_fd(), PollFlags::OUT, deadline)?,
            Err(Errno::INTR) => (),
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(LineError::Closed),
            Err(e) => return Err(LineError::Io(e.into())),
        }
    }
    Ok(())
}

/// True when the peer closes its end within `timeout`.
pub(crate) fn hung_up(socket: &UnixStream, timeout: Duration) -> bool {
    wait(socket.as_fd(), PollFlags::RDHUP, Instant::now() + timeout).is_ok()
}

fn wait(socket: BorrowedFd<'_>, flags: PollFlags, deadline: Instant) -> Result<(), LineError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| LineError::TimedOut)?;
        match poll(&mut [PollFd::new(&socket, flags)], Some(&timeout)) {
            Ok(0) => return Err(LineError::TimedOut),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => (),
            Err(e) => return Err(LineError::Io(e.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn read(reader: &mut LineReader, socket: &UnixStream) -> Result<(Vec<u8>, usize), LineError> {
        reader
            .read(socket, MAX_LINE, MINUTE, MINUTE)
            .map(|(line, fds)| (line, fds.len()))
    }

    #[test]
    fn descriptors_stay_with_their_line() {
        let (a, b) = UnixStream::pair().unwrap();
        send_line(&a, b"one".to_vec(), &[], MINUTE).unwrap();
        send_line(&a, b"two".to_vec(), &[a.as_fd(), a.as_fd()], MINUTE).unwrap();
        send_line(&a, b"three".to_vec(), &[], MINUTE).unwrap();
        send_line(&a, b"four".to_vec(), &[a.as_fd()], MINUTE).unwrap();
        let mut reader = LineReader::default();
        for expected in [(&b"one"[..], 0), (b"two", 2), (b"three", 0), (b"four", 1)] {
            let (line, fds) = read(&mut reader, &b).unwrap();
            assert_eq!((&line[..], fds), expected);
        }
    }

    #[test]
    fn a_long_line_is_refused_and_the_longest_is_not() {
        for (length, fits) in [(MAX_LINE, true), (MAX_LINE + 1, false)] {
            let (mut a, b) = UnixStream::pair().unwrap();
            let writer = std::thread::spawn(move || {
                let mut line = vec![b'x'; length];
                line.push(b'\n');
                let _ = a.write_all(&line);
            });
            let result = LineReader::default().read(&b, MAX_LINE, MINUTE, MINUTE);
            drop(b);
            writer.join().unwrap();
            match result {
                Ok((line, _)) => assert!(fits && line.len() == length),
                Err(e) => assert!(!fits && matches!(e, LineError::TooLong), "{e:?}"),
            }
        }
    }

    #[test]
    fn more_than_eight_descriptors_are_refused() {
        let (a, b) = UnixStream::pair().unwrap();
        let fds = [a.as_fd(); 9];
        assert!(matches!(
            send_line(&a, b"x".to_vec(), &fds, MINUTE),
            Err(LineError::TooManyFds)
        ));
        send_line(&a, b"x".to_vec(), &fds[..8], MINUTE).unwrap();
        assert_eq!(read(&mut LineReader::default(), &b).unwrap().1, 8);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(9))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&a, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        let refused = read(&mut LineReader::default(), &b);
        assert!(matches!(refused, Err(LineError::TooManyFds)), "{refused:?}");
    }

    #[test]
    fn an_unfinished_line_times_out() {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"begin").unwrap();
        let short = Duration::from_millis(50);
        let result = LineReader::default().read(&b, MAX_LINE, MINUTE, short);
        assert!(matches!(result, Err(LineError::TimedOut)), "{result:?}");
    }
}
