// SPDX-License-Identifier: Apache-2.0
//! The mirrors of a switch.
use std::sync::Arc;

use vale_proto::{MirrorInfo, MirrorName, MirrorSet, Side};

use super::Switch;
use crate::device::Buffers;
use crate::device::capture::Capture;
use crate::frame::tx_frame::TxFrame;
use crate::mesh::HandoffTarget;
use crate::mirror::{Sighting, Target, TooManyMirrors};
use crate::policy::token_bucket::Budget;

impl Switch {
    /// Makes a mirror, or replaces it.
    pub fn set_mirror(
        &mut self,
        set: MirrorSet,
        capture: Option<Capture>,
        budget: Arc<Budget>,
    ) -> Result<(), TooManyMirrors> {
        self.mirrors.set(set, capture, budget, &self.ports)
    }

    pub fn remove_mirror(&mut self, name: &MirrorName) {
        self.mirrors.remove(name);
    }

    pub fn mirrors(&self) -> impl Iterator<Item = MirrorInfo> {
        self.mirrors.infos()
    }

    /// Copies a frame that enters or leaves by a port for each mirror that selects it.
    #[cold]
    pub(super) fn mirror(
        &mut self,
        side: Side,
        port: usize,
        out: &TxFrame<'_>,
        buffers: &mut Buffers,
    ) {
        let Some(segment) = self.ports[port].as_ref().map(|p| p.face.segment) else {
            return;
        };
        let from = out.from;
        let at = Sighting {
            side,
            port,
            segment,
            from,
        };
        let mut bytes = std::mem::take(&mut buffers.copy);
        for n in 0..self.mirrors.len() {
            let Some(target) = self.mirrors.target(n, at, out) else {
                continue;
            };
            let mut copy = out.copied(&mut bytes);
            let taken = match target {
                Target::File => self.mirrors.write(n, copy.head),
                Target::Port(index) => self.copy_to(index, &mut copy, buffers),
            };
            self.mirrors.count(n, out.len(), taken);
        }
        buffers.copy = bytes;
    }

    /// Queues a copy at a port, or hands it to the port's worker.
    fn copy_to(&mut self, to: usize, copy: &mut TxFrame<'_>, buffers: &mut Buffers) -> bool {
        let Some(port) = &mut self.ports[to] else {
            return false;
        };
        if let Some(worker) = port.remote_worker {
            let at = port.at(to);
            return self.handoff_to(worker, HandoffTarget::Copy(at), copy, buffers);
        }
        let taken = port.deliver_copy(copy, buffers);
        self.mark(to);
        taken
    }
}
