// SPDX-License-Identifier: Apache-2.0
//! Frames that wait for a full receiver.
use super::{Scratch, Switch};
use crate::device::Buffers;
use crate::outgoing::Outgoing;

impl Switch {
    /// Delivers a frame to one port. With a full receiver the frame of a port that holds waits.
    pub(super) fn deliver_or_hold(
        &mut self,
        to: usize,
        out: &mut Outgoing<'_>,
        buffers: &mut Buffers,
    ) {
        match self.has_to_wait(to, out) {
            true => {
                if let Some(port) = &mut self.ports[out.from] {
                    port.held.add(to, out);
                }
            }
            false => self.deliver(to, out, buffers),
        }
    }

    fn has_to_wait(&mut self, to: usize, out: &Outgoing<'_>) -> bool {
        let source = self.ports[out.from].as_ref();
        let Some(source) = source.filter(|port| port.holds()) else {
            return false;
        };
        source.held.waits_for(to) || self.is_full(to, out)
    }

    fn is_full(&mut self, to: usize, out: &Outgoing<'_>) -> bool {
        let port = self.ports[to].as_mut();
        port.is_some_and(|port| port.is_full_for(out))
    }

    /// Delivers the held frames of a port that find room now. True if there are any.
    pub(super) fn release(&mut self, source: usize, scratch: &mut Scratch) -> bool {
        let Some(port) = &mut self.ports[source] else {
            return false;
        };
        let mut held = std::mem::take(&mut port.held);
        let moved = held.release(scratch.now, |to, out, may_wait| {
            let takes = !may_wait || !self.is_full(to, out);
            if takes {
                self.deliver(to, out, &mut scratch.buffers);
            }
            takes
        });
        if let Some(port) = &mut self.ports[source] {
            port.held = held;
        }
        moved
    }

    /// True if a frame waits for a full receiver.
    pub fn holds_frames(&self) -> bool {
        self.ports().any(|port| !port.held.is_empty())
    }
}
