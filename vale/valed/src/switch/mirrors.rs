// SPDX-License-Identifier: Apache-2.0
//! The mirrors of a switch.
use vale_proto::{MirrorInfo, MirrorName, MirrorSet, Side};

use super::Switch;
use crate::capture::Capture;
use crate::device::Buffers;
use crate::mirror::{Sighting, Target, TooManyMirrors};
use crate::outgoing::Outgoing;

impl Switch {
    /// Makes a mirror, or replaces it.
    pub fn set_mirror(
        &mut self,
        set: MirrorSet,
        capture: Option<Capture>,
    ) -> Result<(), TooManyMirrors> {
        self.mirrors.set(set, capture, &self.ports)
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
        out: &Outgoing<'_>,
        buffers: &mut Buffers,
    ) {
        let Some(segment) = self.ports[port].as_ref().map(|p| p.segment) else {
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
            let Some(target) = self.mirrors.target(n, at, out.now) else {
                continue;
            };
            let mut copy = out.copied(&mut bytes);
            let taken = match target {
                Target::File => self.mirrors.write(n, copy.head),
                Target::Port(index) => {
                    self.mark(index);
                    let port = self.ports[index].as_mut();
                    port.is_some_and(|port| port.deliver_copy(&mut copy, buffers))
                }
            };
            self.mirrors.count(n, out.len(), taken);
        }
        buffers.copy = bytes;
    }
}
