// SPDX-License-Identifier: Apache-2.0
//! Frames to and from the ports of other workers (docs/adr/0060-workers.md).
use std::sync::atomic::Ordering;

use super::{Scratch, Switch};
use crate::device::Buffers;
use crate::frame::key::FilterKey;
use crate::frame::rx_frame::PlainFrame;
use crate::frame::tx_frame::TxFrame;
use crate::mesh::{Envelope, GenIndex, HandoffTarget, List, ListHead, Message};
use crate::port::Port;

impl Port {
    /// Forgets the blocked frames for a port that is gone.
    pub(super) fn forget(&mut self, to: usize) {
        let before = self.blocked.len();
        self.blocked.forget(to);
        self.complete_remote(before - self.blocked.len());
    }

    /// Notes frames of the port that are at other workers.
    pub(super) fn begin_remote(&self, frames: usize) {
        if self.face.has_backpressure {
            let in_flight = &self.face.remote_in_flight;
            in_flight.fetch_add(frames, Ordering::Relaxed);
        }
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
        if handed && matches!(to, HandoffTarget::Port(_)) {
            source.begin_remote(1);
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

    /// Hands plain frames off to the worker of their receiver, as far as its ring has room. Returns their
    /// number.
    pub(super) fn handoff_list(
        &mut self,
        (from, to): (usize, usize),
        (payload, seen): (usize, &FilterKey),
        frames: &[PlainFrame<'_>],
        buffers: &mut Buffers,
    ) -> usize {
        let (source, receiver) = (self.ports[from].as_deref(), self.ports[to].as_deref());
        let Some((source, receiver)) = source.zip(receiver) else {
            return 0;
        };
        let Some(worker) = receiver.remote_worker else {
            return 0;
        };
        let head = ListHead {
            envelope: Envelope {
                switch: self.at,
                from: source.at(from),
                to: HandoffTarget::Port(receiver.at(to)),
            },
            payload,
            seen: receiver.face.is_filtered.then_some(seen),
        };
        let mut handed = 0;
        while handed < frames.len() {
            match buffers.peers.handoff_list(worker, head, &frames[handed..]) {
                0 => break,
                taken => handed += taken,
            }
        }
        handed
    }

    /// Delivers what another worker hands off, and returns the number of frames with each copy of a flooded
    /// one. Frames from or to a port that is gone are lost.
    pub fn receive_handoff(&mut self, message: &mut Message, scratch: &mut Scratch) -> usize {
        let (Envelope { from, to, .. }, frames) = (message.envelope(), message.frames());
        if !self.is_port(from) {
            return frames;
        }
        if let (HandoffTarget::Port(to), Some(list)) = (to, message.list()) {
            self.receive_list(from.index, to, list, scratch);
            return frames;
        }
        let buffers = &mut scratch.buffers;
        let out = &mut message.outgoing(scratch.now);
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
                let mut copies = 0;
                for index in (0..self.ports.len()).filter(|index| except != Some(*index)) {
                    if self.has(index) && self.floods(index, from.index, segment, group) {
                        self.deliver(index, out, buffers);
                        copies += 1;
                    }
                }
                return frames.max(copies);
            }
        }
        frames
    }

    fn receive_handoff_for(
        &mut self,
        from: usize,
        to: GenIndex,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) {
        let before = self.blocked(from);
        if self.is_port(to) {
            self.deliver_or_block(to.index, out, buffers);
        }
        self.complete(from, 1, before);
    }

    /// The same for the plain frames of a message.
    fn receive_list(
        &mut self,
        from: usize,
        to: GenIndex,
        mut list: List<'_>,
        scratch: &mut Scratch,
    ) {
        let (count, before) = (list.lens.len(), self.blocked(from));
        if self.is_port(to) && !self.write_list(from, to.index, &list, scratch) {
            list.each(from, scratch.now, |out| {
                self.deliver_or_block(to.index, out, &mut scratch.buffers);
            });
        }
        self.complete(from, count, before);
    }

    /// Frames from a port that wait here.
    fn blocked(&self, from: usize) -> usize {
        self.ports[from].as_ref().map_or(0, |p| p.blocked.len())
    }

    /// Ends the wait of a port's own worker for frames that wait no longer here: more than `before` do.
    fn complete(&mut self, from: usize, frames: usize, before: usize) {
        let waits = self.blocked(from) - before;
        if let Some(port) = &mut self.ports[from] {
            port.complete_remote(frames - waits);
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
