// SPDX-License-Identifier: Apache-2.0
//! AF_XDP sockets: frames of one interface in shared memory, without a system call for each.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::batch::RecvBatch;
use crate::bpf::{Attachment, attach};
use crate::sys::promiscuous;
use crate::xdp_sys::{
    CHUNK, Descriptor, FRAMES, Memory, Ring, Rings, bind, keep_tags, open_socket, queues,
    take_error, wake,
};

/// The kernel sends 32 frames in a call when it copies them; more calls than this are for later.
const MAX_CALLS: usize = 4;

/// A socket that takes the frames of an interface with one receive queue.
pub struct XdpSocket {
    // The descriptor and the program end before the memory.
    fd: OwnedFd,
    attachment: Attachment,
    _promiscuous: OwnedFd,
    /// All frames belong to one VLAN, whose tag they lose.
    takes_tags: bool,
    fill: Ring<u64>,
    completion: Ring<u64>,
    rx: Ring<Descriptor>,
    tx: Ring<Descriptor>,
    memory: Memory,
    /// Chunks for frames to send.
    free: Vec<u64>,
    is_zero_copy: bool,
}

impl XdpSocket {
    /// Opens a socket and leads the interface's frames to it, or those of one VLAN. The driver's own
    /// mode is tried before the generic one, and zero copy before copies.
    ///
    /// # Errors
    /// The kernel refuses, or the interface has several receive queues.
    pub fn open(interface: &str, vlan: Option<u16>) -> io::Result<Self> {
        match queues(interface) {
            1 => (),
            n => return Err(io::Error::other(format!("{n} receive queues, not 1"))),
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
        let attachment = attach(interface, vlan, &fd)?;
        let chunks = (FRAMES..2 * FRAMES).map(|n| u64::from(n) * CHUNK as u64);
        Ok(Self {
            fd,
            attachment,
            _promiscuous: promiscuous(interface)?,
            takes_tags: vlan.is_some(),
            fill,
            completion,
            rx,
            tx,
            memory,
            free: chunks.collect(),
            is_zero_copy,
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
            let bytes = self.memory.chunk(descriptor.address, descriptor.len);
            batch.put(count, bytes.len(), self.takes_tags, |to| {
                to.copy_from_slice(bytes)
            });
            self.fill
                .push(descriptor.address / CHUNK as u64 * CHUNK as u64);
            count += 1;
        }
        if count > 0 {
            self.rx.release();
            self.fill.publish();
            if self.fill.needs_wake() {
                let _ = wake(&self.fd, false);
            }
        }
        count
    }

    /// Queues a frame to send, which the caller writes. False without room.
    pub fn push(&mut self, len: usize, write: impl FnOnce(&mut [u8])) -> bool {
        if self.free.is_empty() {
            self.complete();
        }
        if len > CHUNK || self.tx.is_full() {
            return false;
        }
        let Some(chunk) = self.free.pop() else {
            return false;
        };
        write(self.memory.chunk_mut(chunk, len as u32));
        self.tx.push(Descriptor {
            address: chunk,
            len: len as u32,
            options: 0,
        });
        true
    }

    /// Sends the queued frames.
    ///
    /// # Errors
    /// The kernel takes none: the interface is down or gone.
    pub fn flush(&mut self) -> io::Result<()> {
        self.tx.publish();
        for _ in 0..MAX_CALLS {
            if self.tx.is_taken() || !self.tx.needs_wake() {
                break;
            }
            wake(&self.fd, true)?;
        }
        self.complete();
        Ok(())
    }

    /// The error that the kernel keeps for the socket, if there is one: the interface has gone.
    pub fn take_error(&self) -> Option<io::Error> {
        take_error(&self.fd)
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
