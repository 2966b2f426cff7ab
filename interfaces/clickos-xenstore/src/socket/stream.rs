// SPDX-License-Identifier: Apache-2.0
//! The two ways to the store: xenstored's socket, and the device of Linux.
use super::{ANSWER_TIMEOUT, WINDOW};
use crate::request::Request;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(super) enum Stream {
    Socket(UnixStream),
    /// `/dev/xen/xenbus`.
    Device(File),
}

impl Stream {
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.metadata()?.file_type().is_char_device() {
            let device = OpenOptions::new().read(true).write(true).open(path)?;
            return Ok(Self::Device(device));
        }
        let socket = UnixStream::connect(path)?;
        socket.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self::Socket(socket))
    }

    /// Sends whole messages, at most [`Self::window`].
    pub fn send(&mut self, messages: &[Vec<u8>]) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.write_all(&messages.concat()),
            Self::Device(device) => messages.iter().try_for_each(|m| write_one(device, m)),
        }
    }

    /// How many requests may wait for their answers. Linux keeps one message for each open device
    /// (`xenbus_dev_frontend.c`), and sends it later: the next one would overwrite it.
    pub fn window(&self) -> usize {
        match self {
            Self::Socket(_) => WINDOW,
            Self::Device(_) => 1,
        }
    }

    /// True if a failure to send is the store's answer: so the device reports a refused watch.
    pub fn refuses(&self, requests: &[Request]) -> bool {
        matches!((self, requests), (Self::Device(_), [only]) if only.is_watch())
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.read(buffer),
            Self::Device(device) => device.read(buffer),
        }
    }
}

fn write_one(device: &mut impl Write, message: &[u8]) -> io::Result<()> {
    match device.write(message)? {
        n if n == message.len() => Ok(()),
        _ => Err(ErrorKind::WriteZero.into()),
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.as_fd(),
            Self::Device(device) => device.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a number of bytes in each call, and counts the calls.
    struct Writer {
        most: usize,
        calls: usize,
    }

    impl Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            Ok(bytes.len().min(self.most))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_of_the_device_is_one_call_or_an_error() {
        let mut whole = Writer {
            most: 4096,
            calls: 0,
        };
        assert!(write_one(&mut whole, &[1; 4096]).is_ok());
        assert_eq!(whole.calls, 1);
        let mut part = Writer { most: 9, calls: 0 };
        assert!(write_one(&mut part, &[1; 10]).is_err());
        assert_eq!(part.calls, 1);
    }
}
