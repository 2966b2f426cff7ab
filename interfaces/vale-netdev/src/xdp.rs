// SPDX-License-Identifier: Apache-2.0
//! AF_XDP sockets: frames of one interface in shared memory, without a system call for each.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::batch::RecvBatch;
use crate::bpf::{Attachment, attach};
use crate::xdp_sys::{Memory, Ring, Rings, bind, keep_tags, open_socket, queues, wake};

/// Bytes of a chunk: a page, of which the kernel keeps the first 256 bytes.
pub(crate) const CHUNK: usize = 4096;
/// Chunks for frames of each direction, and descriptors of each ring.
pub(crate) const FRAMES: u32 = 1024;

/// A socket that takes all frames of an interface with one receive queue.
pub struct XdpSocket {
    fd: OwnedFd,
    fill: Ring<u64>,
    completion: Ring<u64>,
    rx: Ring<Descriptor>,
    tx: Ring<Descriptor>,
    memory: Memory,
    /// Chunks for frames to send.
    free: Vec<u64>,
    is_zero_copy: bool,
    attachment: Attachment,
}

/// A frame in the shared memory, as the kernel describes it (`xdp_desc`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Descriptor {
    pub address: u64,
    pub len: u32,
    pub options: u32,
}

impl XdpSocket {
    /// Opens a socket and leads the interface's frames to it. The driver's own mode is tried before
    /// the generic one, and zero copy before copies.
    ///
    /// # Errors
    /// The kernel refuses, or the interface has several receive queues.
    pub fn open(interface: &str) -> io::Result<Self> {
        match queues(interface) {
            1 => (),
            n => return Err(io::Error::other(format!("has {n} receive queues, not 1"))),
        }
        keep_tags(interface)?;
        let fd = open_socket()?;
        let memory = Memory::new(&fd, 2 * FRAMES as usize * CHUNK)?;
        let Rings {
            mut fill,
            completion,
            rx,
            tx,
        } = Rings::map(&fd)?;
        for n in 0..FRAMES {
            fill.push(u64::from(n) * CHUNK as u64);
        }
        fill.publish();
        let is_zero_copy = bind(&fd, interface)?;
        let attachment = attach(interface, &fd)?;
        let chunks = (FRAMES..2 * FRAMES).map(|n| u64::from(n) * CHUNK as u64);
        Ok(Self {
            fd,
            fill,
            completion,
            rx,
            tx,
            memory,
            free: chunks.collect(),
            is_zero_copy,
            attachment,
        })
    }

    /// The modes for a log: of the program, and of the memory.
    pub fn modes(&self) -> (&'static str, &'static str) {
        let program = match self.attachment.is_native {
            true => "driver",
            false => "generic",
        };
        let memory = match self.is_zero_copy {
            true => "zero copy",
            false => "copy",
        };
        (program, memory)
    }

    /// Copies the waiting frames into a batch; fewer than [`RecvBatch::MAX`] were all.
    pub fn receive(&mut self, batch: &mut RecvBatch) -> usize {
        let mut count = 0;
        while count < RecvBatch::MAX {
            let Some(descriptor) = self.rx.pop() else {
                break;
            };
            let (at, len) = (descriptor.address as usize, descriptor.len as usize);
            self.memory.read(at, len, |bytes| batch.put(count, bytes));
            self.fill
                .push(descriptor.address / CHUNK as u64 * CHUNK as u64);
            count += 1;
        }
        self.rx.release();
        self.fill.publish();
        if count > 0 && self.fill.needs_wake() {
            let _ = wake(&self.fd, false);
        }
        count
    }

    /// Takes a frame to send. False without room.
    pub(crate) fn push(&mut self, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            self.complete();
        }
        if frame.len() > CHUNK || self.tx.is_full() {
            return false;
        }
        let Some(chunk) = self.free.pop() else {
            return false;
        };
        self.memory.write(chunk as usize, frame);
        self.tx.push(Descriptor {
            address: chunk,
            len: frame.len() as u32,
            options: 0,
        });
        true
    }

    /// Sends the frames taken so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.tx.publish();
        let sent = match self.tx.needs_wake() {
            true => wake(&self.fd, true),
            false => Ok(()),
        };
        self.complete();
        sent
    }

    /// Takes back the chunks of frames that are sent.
    fn complete(&mut self) {
        while let Some(chunk) = self.completion.pop() {
            self.free.push(chunk);
        }
        self.completion.release();
    }

    /// True if frames wait.
    pub fn has_frames(&mut self) -> bool {
        !self.rx.is_empty()
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
