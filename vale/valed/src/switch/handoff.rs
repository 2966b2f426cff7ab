// SPDX-License-Identifier: Apache-2.0
//! Frames to and from the ports of other workers (docs/adr/0060-workers.md).
use std::sync::atomic::Ordering;

use super::Switch;
use crate::clock::Nanoseconds;
use crate::device::Buffers;
use crate::frame::tx_frame::TxFrame;
use crate::mesh::{Envelope, Frame, GenIndex, HandoffTarget};
use crate::port::Port;

impl Port {
    /// Forgets the blocked frames for a port that is gone.
    pub(super) fn forget(&mut self, to: usize) {
        let before = self.blocked.len();
        self.blocked.forget(to);
        self.complete_remote(before - self.blocked.len());
    }

    /// Ends the wait of the port's own worker for some frames.
    pub(super) fn complete_remote(&mut self, frames: usize) {
        if self.remote_worker.is_some() && self.face.has_backpressure {
            self.face
                .remote_in_flight
                .fetch_sub(frames, Ordering::Relaxed);
        }
    }
}

impl Switch {
    /// Hands a frame off to the worker of its receiver.
    #[cold]
    pub(super) fn handoff(
        &mut self,
        (to, worker): (usize, usize),
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) {
        let Some(at) = self.ports[to].as_ref().map(|port| port.at(to)) else {
            return;
        };
        if !self.handoff_to(worker, HandoffTarget::Port(at), out, buffers) {
            self.lose(to);
        }
    }

    /// Counts a frame that found the ring to the port's worker full.
    fn lose(&mut self, to: usize) {
        if let Some(port) = &mut self.ports[to] {
            port.counters.dropped_full += 1;
        }
    }

    /// True if the port is one of this worker.
    pub(super) fn has(&self, index: usize) -> bool {
        let port = self.ports.get(index).and_then(Option::as_ref);
        port.is_some_and(|port| port.remote_worker.is_none())
    }

    pub(super) fn handoff_to(
        &mut self,
        worker: usize,
        to: HandoffTarget,
        out: &TxFrame<'_>,
        buffers: &mut Buffers,
    ) -> bool {
        let Some(source) = self.ports.get(out.from).and_then(Option::as_ref) else {
            return false;
        };
        let envelope = Envelope {
            switch: self.at,
            from: source.at(out.from),
            to,
        };
        let is_seen = match to {
            HandoffTarget::Port(to) => {
                let port = self.ports.get(to.index).and_then(Option::as_ref);
                port.is_some_and(|port| port.face.is_filtered)
            }
            HandoffTarget::Copy(_) => false,
            HandoffTarget::Segment { .. } => self.filters,
        };
        let handed = buffers.peers.handoff_to(worker, envelope, out, is_seen);
        if handed && source.face.has_backpressure && matches!(to, HandoffTarget::Port(_)) {
            source.face.remote_in_flight.fetch_add(1, Ordering::Relaxed);
        }
        handed
    }

    /// Hands a flooded frame off to each of some workers, once.
    pub(super) fn flood_remote(
        &mut self,
        workers: u64,
        segment: u32,
        group: bool,
        out: &TxFrame<'_>,
        buffers: &mut Buffers,
    ) {
        let is_moving = |port: &Option<Box<Port>>| port.as_ref().is_some_and(|p| p.face.is_moving);
        let to = HandoffTarget::Segment {
            segment,
            group,
            except: self.ports.iter().position(is_moving),
        };
        for worker in (0..u64::BITS as usize).filter(|n| workers >> n & 1 == 1) {
            if !self.handoff_to(worker, to, out, buffers) {
                self.lose_flooded(worker, segment, group, out.from);
            }
        }
    }

    fn lose_flooded(&mut self, worker: usize, segment: u32, group: bool, source: usize) {
        for index in 0..self.ports.len() {
            let port = self.ports[index].as_ref();
            let is_there =
                port.is_some_and(|p| p.remote_worker == Some(worker) && !p.face.is_moving);
            if is_there && self.floods(index, source, segment, group) {
                self.lose(index);
            }
        }
    }

    /// True if the switch is the one of a frame from another worker.
    pub fn is_at(&self, at: GenIndex) -> bool {
        self.at == at
    }

    /// Delivers a frame that another worker hands off. A frame from or to a port that is gone is lost.
    pub fn receive_handoff(&mut self, frame: &mut Frame, now: Nanoseconds, buffers: &mut Buffers) {
        let Envelope { from, to, .. } = frame.envelope();
        if !self.is_port(from) {
            return;
        }
        let out = &mut frame.outgoing(now);
        match to {
            HandoffTarget::Port(to) => self.receive_handoff_for(from.index, to, out, buffers),
            HandoffTarget::Copy(to) if self.is_port(to) && self.has(to.index) => {
                if let Some(port) = &mut self.ports[to.index] {
                    port.deliver_copy(out, buffers);
                }
                self.mark(to.index);
            }
            HandoffTarget::Copy(_) => (),
            HandoffTarget::Segment {
                segment,
                group,
                except,
            } => {
                for index in (0..self.ports.len()).filter(|index| except != Some(*index)) {
                    if self.has(index) && self.floods(index, from.index, segment, group) {
                        self.deliver(index, out, buffers);
                    }
                }
            }
        }
    }

    fn receive_handoff_for(
        &mut self,
        from: usize,
        to: GenIndex,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) {
        let blocked = |this: &Self| {
            this.ports[from]
                .as_ref()
                .map_or(0, |port| port.blocked.len())
        };
        let before = blocked(self);
        if self.is_port(to) {
            self.deliver_or_block(to.index, out, buffers);
        }
        let waits = blocked(self) - before;
        if let Some(port) = &mut self.ports[from] {
            port.complete_remote(1 - waits);
        }
    }

    fn is_port(&self, at: GenIndex) -> bool {
        let port = self.ports.get(at.index).and_then(Option::as_ref);
        port.is_some_and(|port| port.face.id == at.id)
    }

    /// Detaches a port, for another worker. None if it is not here.
    pub fn detach_port(&mut self, index: usize, worker: usize) -> Option<Box<Port>> {
        let place = self.ports.get_mut(index)?;
        let port = place.as_ref().filter(|port| port.remote_worker.is_none())?;
        let proxy = Box::new(port.proxy(worker));
        place.replace(proxy)
    }

    /// Attaches a port instead of its proxy, which it returns. Frames of the port that wait here for
    /// receivers are older than those that come with it.
    pub fn attach_port(&mut self, index: usize, mut port: Box<Port>) -> Option<Box<Port>> {
        let mut proxy = self.ports.get_mut(index)?.take()?;
        let mut blocked = std::mem::take(&mut proxy.blocked);
        proxy.complete_remote(blocked.len());
        blocked.append(std::mem::take(&mut port.blocked));
        (port.blocked, port.dirty) = (blocked, false);
        port.throttled_by_remote = false;
        self.ports[index] = Some(port);
        Some(proxy)
    }
}
