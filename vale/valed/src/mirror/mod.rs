// SPDX-License-Identifier: Apache-2.0
//! Mirrors: copies of the frames of a port or a segment, for another port or for a file.
//!
//! A mirror has a rate of its own and never changes the frame that it copies.
use std::sync::Arc;

use vale_proto::{
    MAX_MIRRORS, MIRROR_RATE, MirrorCounters, MirrorInfo, MirrorName, MirrorSet, PortName, Side,
};

use crate::chain::Ports;
use crate::device::capture::Capture;
use crate::frame::tx_frame::TxFrame;
use crate::policy::token_bucket::Budget;

/// The place of a frame when the mirrors look at it.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// [`Side::Rx`] or [`Side::Tx`] of `port`.
    pub side: Side,
    /// Index of the port that the frame enters or leaves by.
    pub port: usize,
    pub segment: u32,
    /// Index of the port that sent the frame.
    pub from: usize,
}

/// The place for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Port(usize),
    File,
}

struct Mirror {
    set: MirrorSet,
    /// Indexes of the ports that `set` names; `None` if there is no such port.
    source: Option<usize>,
    target: Option<usize>,
    capture: Option<Capture>,
    budget: Arc<Budget>,
    counters: MirrorCounters,
}

/// The mirrors of a switch.
#[derive(Default)]
pub struct Mirrors(Vec<Mirror>);

/// The rate of a mirror, which all workers share.
pub fn budget(set: &MirrorSet) -> Arc<Budget> {
    Arc::new(Budget::new(set.packets_per_s.or(Some(MIRROR_RATE))))
}

/// The switch has [`MAX_MIRRORS`] already.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyMirrors;

impl Mirrors {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes a mirror, or replaces it. Its counters begin at 0.
    pub fn set(
        &mut self,
        set: MirrorSet,
        capture: Option<Capture>,
        budget: Arc<Budget>,
        ports: &Ports,
    ) -> Result<(), TooManyMirrors> {
        let found = self.0.iter().position(|m| m.set.mirror == set.mirror);
        if found.is_none() && self.0.len() == MAX_MIRRORS {
            return Err(TooManyMirrors);
        }
        let mut mirror = Mirror {
            source: None,
            target: None,
            capture,
            budget,
            counters: MirrorCounters::default(),
            set,
        };
        mirror.resolve(ports);
        match found {
            Some(index) => self.0[index] = mirror,
            None => self.0.push(mirror),
        }
        Ok(())
    }

    pub fn remove(&mut self, name: &MirrorName) {
        self.0.retain(|m| m.set.mirror != *name);
    }

    /// Finds all ports again, after a port came or went.
    pub fn resolve(&mut self, ports: &Ports) {
        self.0.iter_mut().for_each(|m| m.resolve(ports));
    }

    pub fn infos(&self) -> impl Iterator<Item = MirrorInfo> {
        self.0.iter().map(|m| MirrorInfo {
            set: m.set.clone(),
            counters: m.counters,
        })
    }

    /// The mirrors that name a port.
    pub fn of(&self, port: &PortName) -> Vec<MirrorName> {
        let names = |m: &&Mirror| [&m.set.port, &m.set.to_port].contains(&&Some(port.clone()));
        let found = self.0.iter().filter(names);
        found.map(|m| m.set.mirror.clone()).collect()
    }

    /// True if a mirror may copy frames that enter or leave by a port.
    pub fn sees(&self, side: Side, port: usize, segment: u32) -> bool {
        let selects = |mirror: &Mirror| match mirror.set.segment {
            Some(wanted) => side == Side::Rx && segment == wanted,
            None => mirror.source == Some(port),
        };
        self.0.iter().any(selects)
    }

    /// The place for the copy of mirror `n`; `None` if the mirror takes none of this frame.
    pub fn target(&mut self, n: usize, at: Sighting, out: &TxFrame<'_>) -> Option<Target> {
        let mirror = &mut self.0[n];
        if !mirror.selects(at) {
            return None;
        }
        let Some(target) = mirror.place() else {
            mirror.counters.dropped += 1;
            return None;
        };
        // A file gets one record of a frame that becomes many.
        let admitted = match target {
            Target::File => mirror.budget.admits(1, out.now),
            Target::Port(_) => mirror.budget.admits(out.count(), out.now),
        };
        mirror.counters.over_rate += u64::from(!admitted);
        admitted.then_some(target)
    }

    /// Hands a copy to the file of mirror `n`. False if the file takes no more.
    pub fn write(&self, n: usize, frame: &[u8]) -> bool {
        let capture = self.0[n].capture.as_ref();
        capture.is_some_and(|capture| capture.write(frame))
    }

    /// Counts a copy of mirror `n` that the target took, or did not.
    pub fn count(&mut self, n: usize, bytes: usize, taken: bool) {
        let counters = &mut self.0[n].counters;
        match taken {
            true => {
                counters.packets += 1;
                counters.bytes += bytes as u64;
            }
            false => counters.dropped += 1,
        }
    }
}

impl Mirror {
    fn resolve(&mut self, ports: &Ports) {
        let find = |name: &Option<PortName>| {
            let name = name.as_ref()?;
            let is_it = |p: &Option<Box<crate::port::Port>>| {
                p.as_ref().is_some_and(|p| p.face.name == *name)
            };
            ports.iter().position(is_it)
        };
        self.source = find(&self.set.port);
        self.target = find(&self.set.to_port);
    }

    fn place(&self) -> Option<Target> {
        match self.capture {
            Some(_) => Some(Target::File),
            None => self.target.map(Target::Port),
        }
    }

    /// A segment's frame counts where it enters, so that the mirror copies it once. Frames from and
    /// to the target port have no copies, or a copy could make copies without end.
    fn selects(&self, at: Sighting) -> bool {
        let is_targets = |port: usize| self.target == Some(port);
        if is_targets(at.from) || is_targets(at.port) {
            return false;
        }
        match self.set.segment {
            Some(segment) => at.side == Side::Rx && at.segment == segment,
            None => {
                let side = self.set.side.unwrap_or_default();
                self.source == Some(at.port) && (side == Side::Both || side == at.side)
            }
        }
    }
}
