// SPDX-License-Identifier: Apache-2.0
//! The guest's side of a switch port of version 2 (docs/rings.md): received frames are packets
//! where they lie, and are sent from there.
//!
//! Each slot of rx has a packet whose room it offers. A received frame is that packet, and a spare
//! one takes its place. A sent packet is kept until the switch has taken it.
//!
//! Frames of up to [`SHORT`] bytes are copied, in both directions: that is cheaper than a change of
//! buffers. So are all received frames when few buffers are spare, because packets wait in queues.
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

use click_core::{Batch, PacketPool};
use click_packet::{Packet, Region};
use ring::layout::{BEFORE_FRAME, CHUNK, Layout, PER_CHUNK, SHORT, STRIDE};
use ring::{BUFFER_SIZE, InPlacePort, Memory, PushError};

// Both crates place the same buffers.
const _: () = assert!(
    Region::CHUNK == CHUNK
        && Region::STRIDE == STRIDE
        && Region::PER_CHUNK == PER_CHUNK
        && Region::BEFORE_DATA == BEFORE_FRAME
        && Region::ROOM == BUFFER_SIZE
);

/// A port and the packets that its slots have.
pub struct InPlace<M: Memory> {
    port: InPlacePort<M>,
    region: Region,
    /// The packet whose room each slot of rx offers.
    offered: Vec<Packet>,
    /// The packets that the switch has not taken, with their slots of tx.
    sent: VecDeque<(u32, Packet)>,
    /// Received frames are copied while no more buffers than these are free. With half of the slots'
    /// number, a port that has no buffer left to send from also waits for the switch.
    reserve: usize,
}

impl<M: Memory> InPlace<M> {
    /// The port whose fresh buffers are those of `region`, in blocks of [`Region::BLOCK`] bytes and
    /// colored by [`Layout::color`]. `None` if there are fewer than slots.
    pub fn new(port: InPlacePort<M>, region: Region) -> Option<Self> {
        let layout = port.layout();
        let mut region = region.numbered(port.region(), layout.first_chunk());
        let slots = layout.slots() as usize;
        let offered = (0..slots).map(|slot| {
            let packet = region.take()?;
            let at = region.offset_of(&packet)?;
            (at.offset == layout.frame(slot)).then_some(packet)
        });
        let offered = offered.collect::<Option<Vec<_>>>()?;
        Some(Self {
            port,
            region,
            offered,
            sent: VecDeque::with_capacity(slots),
            reserve: slots / 2,
        })
    }

    /// Color of the first buffer of a block.
    pub fn color(block: usize) -> usize {
        Layout::color(block)
    }

    /// Appends up to `max` received packets to `out`; returns how many. Those that are copied come
    /// from the pool. Calls `done` with the length of each.
    pub fn receive(
        &mut self,
        max: usize,
        pool: &mut PacketPool,
        out: &mut Batch,
        mut done: impl FnMut(usize),
    ) -> usize {
        for received in 0..max {
            let Some(packet) = self.receive_one(pool) else {
                return received;
            };
            done(packet.len());
            out.push_back(packet);
        }
        max
    }

    #[inline]
    fn receive_one(&mut self, pool: &mut PacketPool) -> Option<Packet> {
        if self.region.free() <= self.reserve {
            return self.receive_copy(pool);
        }
        let (slot, len) = self.port.receive()?;
        if len <= SHORT {
            let offered = &self.offered[slot as usize];
            if let Some(copy) = pool.packet_from(&offered.data()[..len]) {
                return Some(copy);
            }
        }
        let fresh = self.region.take()?;
        let offset = self.region.offset_of(&fresh)?.offset;
        let mut packet = mem::replace(&mut self.offered[slot as usize], fresh);
        self.port.offer(slot, offset as u32);
        packet.take(BUFFER_SIZE - len);
        Some(packet)
    }

    #[cold]
    fn receive_copy(&mut self, pool: &mut PacketPool) -> Option<Packet> {
        let mut copy = pool.alloc(BUFFER_SIZE)?;
        let (slot, len) = self.port.receive()?;
        let offered = &self.offered[slot as usize];
        copy.data_mut()[..len].copy_from_slice(&offered.data()[..len]);
        copy.take(BUFFER_SIZE - len);
        Some(copy)
    }

    /// Sends from the front of `batch`, leaves what does not fit. Calls `done` for each packet that
    /// leaves the batch, with its length.
    pub fn transmit(
        &mut self,
        batch: &mut Batch,
        mut done: impl FnMut(usize, Result<(), PushError>),
    ) {
        self.reclaim();
        while let Some(packet) = batch.pop_front() {
            let len = packet.len();
            match self.send(packet) {
                Ok(()) => done(len, Ok(())),
                Err((PushError::Full, packet)) => {
                    batch.push_front(packet);
                    return done(len, Err(PushError::Full));
                }
                Err((error, _dropped)) => done(len, Err(error)),
            }
        }
    }

    #[inline]
    fn send(&mut self, packet: Packet) -> Result<(), (PushError, Packet)> {
        if packet.len() <= SHORT {
            let sent = self.port.send_copy(packet.data());
            return sent.map_err(|error| (error, packet));
        }
        let Some(at) = self.region.offset_of(&packet) else {
            return self.copy_and_send(packet);
        };
        let (number, offset) = (at.number, at.offset as u32);
        match self.port.send(number, offset, packet.len()) {
            Ok(slot) => {
                self.sent.push_back((slot, packet));
                Ok(())
            }
            Err(error) => Err((error, packet)),
        }
    }

    /// Copies a long packet of other memory to a buffer, and sends it from there.
    fn copy_and_send(&mut self, packet: Packet) -> Result<(), (PushError, Packet)> {
        if packet.len() > BUFFER_SIZE {
            return Err((PushError::BadLength(packet.len()), packet));
        }
        let Some(mut copy) = self.region.take() else {
            self.port.want_space();
            return Err((PushError::Full, packet));
        };
        copy.data_mut()[..packet.len()].copy_from_slice(packet.data());
        copy.take(BUFFER_SIZE - packet.len());
        self.send(copy).map_err(|(error, _copy)| (error, packet))
    }

    /// Takes back the packets that the switch has taken.
    pub fn reclaim(&mut self) {
        if self.sent.is_empty() {
            return;
        }
        self.port.refresh();
        while let Some((slot, _)) = self.sent.front() {
            if !self.port.is_taken(*slot) {
                break;
            }
            self.sent.pop_front();
        }
    }

    /// Shows the switch what was sent and gives back what was received. True if the switch has to
    /// be kicked.
    #[must_use = "the switch sleeps until it is kicked"]
    pub fn publish(&mut self) -> bool {
        self.reclaim();
        self.port.publish()
    }

    /// The port.
    pub fn port(&mut self) -> &mut InPlacePort<M> {
        &mut self.port
    }

    /// The shared words.
    pub fn memory(&self) -> &M {
        self.port.memory()
    }

    /// The shared words, when the port is not used any more. The packets' memory lives as long as
    /// they.
    pub fn into_memory(self) -> M {
        self.port.into_memory()
    }

    /// Descriptors and indices of the switch that made no sense so far.
    pub fn malformed(&self) -> u64 {
        self.port.malformed()
    }
}
