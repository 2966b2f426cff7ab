// SPDX-License-Identifier: Apache-2.0
//! Rings of version 1: each frame is copied.
use click_core::{Batch, PacketPool};
use ring::{BUFFER_SIZE, PushError};

/// Appends up to `max` frames, each of which `pop` copies to a packet; returns how many.
#[inline]
pub fn receive(
    max: usize,
    pool: &mut PacketPool,
    out: &mut Batch,
    mut pop: impl FnMut(&mut [u8]) -> Option<usize>,
) -> usize {
    for received in 0..max {
        let Some(mut packet) = pool.alloc(BUFFER_SIZE) else {
            return received;
        };
        let Some(len) = pop(packet.data_mut()) else {
            return received;
        };
        packet.take(BUFFER_SIZE - len);
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
