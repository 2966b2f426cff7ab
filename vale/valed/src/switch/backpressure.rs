// SPDX-License-Identifier: Apache-2.0
//! Backpressure: frames that wait for a full receiver.
use super::{Scratch, Switch};
use crate::device::Buffers;
use crate::frame::tx_frame::TxFrame;

impl Switch {
    /// Delivers a frame to one port. With a full receiver the frame of a port with backpressure waits.
    pub(super) fn deliver_or_block(
        &mut self,
        to: usize,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) {
        match self.has_to_wait(to, out, buffers) {
            true => {
                if let Some(port) = &mut self.ports[out.from] {
                    port.blocked.add(to, out);
                }
            }
            false => self.deliver(to, out, buffers),
        }
    }

    /// Frames of a port with backpressure wait for a full receiver, and those of any port for a receiver that
    /// moves to another worker.
    fn has_to_wait(&mut self, to: usize, out: &TxFrame<'_>, buffers: &mut Buffers) -> bool {
        let Some(source) = self.ports[out.from].as_ref() else {
            return false;
        };
        let (has_backpressure, waits) =
            (source.face.has_backpressure, source.blocked.waits_for(to));
        waits
            || self.meets_a_move(out.from, to)
            || (has_backpressure && self.is_full(to, out, buffers))
    }

    fn is_full(&mut self, to: usize, out: &TxFrame<'_>, buffers: &mut Buffers) -> bool {
        let Some(port) = &mut self.ports[to] else {
            return false;
        };
        match port.remote_worker {
            Some(worker) => port.face.is_moving || !buffers.peers.has_room(worker),
            None => port.is_full_for(out),
        }
    }

    /// True if a port of this worker sends to one that moves to another worker.
    fn meets_a_move(&self, source: usize, to: usize) -> bool {
        let moves = self.ports[to]
            .as_ref()
            .is_some_and(|port| port.face.is_moving);
        moves && self.has(source)
    }

    /// Delivers the blocked frames of a port that find room now. True if there are any.
    pub(super) fn release(&mut self, source: usize, scratch: &mut Scratch) -> bool {
        let Some(port) = &mut self.ports[source] else {
            return false;
        };
        let mut blocked = std::mem::take(&mut port.blocked);
        let before = blocked.len();
        let moved = blocked.release(scratch.now, scratch.patience, |to, out, may_wait| {
            let buffers = &mut scratch.buffers;
            // A move ends, so frames wait for it however long it takes.
            let takes =
                !self.meets_a_move(source, to) && (!may_wait || !self.is_full(to, out, buffers));
            if takes {
                self.deliver(to, out, &mut scratch.buffers);
            }
            takes
        });
        if let Some(port) = &mut self.ports[source] {
            port.complete_remote(before - blocked.len());
            port.blocked = blocked;
        }
        moved
    }

    /// True if frames of other workers wait here for the port.
    pub fn has_blocked_for(&self, to: usize) -> bool {
        let mut others = self.ports().filter(|port| port.remote_worker.is_some());
        others.any(|port| port.blocked.waits_for(to))
    }

    /// True if a frame waits for a full receiver, here or at another worker.
    pub fn has_blocked_frames(&self) -> bool {
        self.ports()
            .any(|port| !port.blocked.is_empty() || port.throttled_by_remote)
    }
}
