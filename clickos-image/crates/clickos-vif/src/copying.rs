// SPDX-License-Identifier: Apache-2.0
//! Rings of version 1: each frame is copied.
use click_core::{Batch, PacketPool};
use ring::{BUFFER_SIZE, GuestPort, Memory, PushError};

/// Received frames.
pub trait Source {
    /// Bytes of a buffer for the next frame.
    fn room(&mut self) -> usize {
        BUFFER_SIZE
    }

    /// Copies the next frame to the start of `into`, and returns its length.
    fn pop(&mut self, into: &mut [u8]) -> Option<usize>;
}

impl<M: Memory> Source for GuestPort<M> {
    fn room(&mut self) -> usize {
        self.next_room()
    }

    fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
        GuestPort::pop(self, into)
    }
}

/// Appends up to `max` frames to `out`, each copied to a packet; returns how many. Calls `done` with the
/// length of each.
#[inline]
pub fn receive(
    max: usize,
    pool: &mut PacketPool,
    out: &mut Batch,
    source: &mut impl Source,
    mut done: impl FnMut(usize),
) -> usize {
    for received in 0..max {
        let room = source.room();
        let Some(mut packet) = pool.alloc(room) else {
            return received;
        };
        let Some(len) = source.pop(packet.data_mut()) else {
            return received;
        };
        packet.take(room - len);
        done(len);
        out.push_back(packet);
    }
    max
}

/// Has `push` copy packets from the front of `batch`, leaves what does not fit; returns how many
/// were sent.
#[inline]
pub fn transmit(batch: &mut Batch, mut push: impl FnMut(&[u8]) -> Result<(), PushError>) -> usize {
    let mut sent = 0;
    while let Some(packet) = batch.front() {
        match push(packet.data()) {
            Ok(()) => sent += 1,
            Err(PushError::Full) => break,
            Err(PushError::BadBuffer) => continue, // It passed over the slot: the next one.
            Err(PushError::BadLength(_)) => {}     // No ring takes it: dropped.
        }
        batch.pop_front();
    }
    sent
}
