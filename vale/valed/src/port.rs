// SPDX-License-Identifier: Apache-2.0
//! A port of a switch, and the stages of frames at its own worker.
pub mod blocked;
mod face;
mod open;

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use vale_proto::{Counters, Direction, PortAdd, PortInfo, SwitchName, Uplink};

use crate::clock::Nanoseconds;
use crate::device::{Absent, BURST, Buffers, Device};
use crate::frame::dscp;
use crate::frame::key::FilterKey;
use crate::frame::tx_frame::TxFrame;
use crate::mesh::GenIndex;
use crate::policy::filter::Filter;
use crate::policy::offload_rules::{OffloadTables, OffloadVerdict, RedirectTarget};
use crate::policy::token_bucket::PortLimits;
use blocked::BlockedFrames;
pub use face::{Counter, Face, MALFORMED, Relayed};
pub use open::{open, resume};

/// A port at one worker.
pub struct Port {
    pub face: Face,
    /// The worker that has the far end, the filter and the rates; None for this worker.
    pub remote_worker: Option<usize>,
    uplink: Option<Uplink>,
    pub counters: Counters,
    pub device: Box<dyn Device>,
    pub filter: Option<Box<Filter>>,
    /// The offload rules of the guest's packets.
    pub offload_tables: Option<Box<OffloadTables>>,
    pub limits: Option<Box<PortLimits>>,
    /// The port has moved frames since the last flush.
    pub dirty: bool,
    /// `dropped_full` at the last flush.
    full_before: u64,
    pub blocked: BlockedFrames,
    /// The port missed its last turn, since too many of its frames are at other workers.
    pub throttled_by_remote: bool,
}

impl Port {
    pub fn new(add: &PortAdd, device: Box<dyn Device>) -> Self {
        Self {
            uplink: Uplink::of(add),
            filter: add.filtered.then(|| Box::new(Filter::new(&[]))),
            ..Self::of(Face::new(add, &*device), device)
        }
    }

    /// A port without filter and rates, whose far end is at this worker.
    fn of(face: Face, device: Box<dyn Device>) -> Self {
        Self {
            face,
            remote_worker: None,
            uplink: None,
            counters: Counters::default(),
            device,
            filter: None,
            offload_tables: None,
            limits: None,
            dirty: false,
            full_before: 0,
            blocked: BlockedFrames::default(),
            throttled_by_remote: false,
        }
    }

    /// The port as the other workers see it: its addresses, without far end, filter and rates.
    pub fn proxy(&self, worker: usize) -> Self {
        Self {
            remote_worker: Some(worker),
            ..Self::of(self.face.clone(), Box::new(Absent))
        }
    }

    pub fn at(&self, index: usize) -> GenIndex {
        GenIndex {
            index,
            id: self.face.id,
        }
    }

    /// True if the port has to wait for its frames at other workers.
    pub fn throttled_by_remote(&mut self) -> bool {
        self.throttled_by_remote = self.face.has_backpressure
            && self.face.remote_in_flight.load(Ordering::Relaxed) >= BURST;
        self.throttled_by_remote
    }

    /// The stages of a judged frame that comes from the port: filter, rates, mark.
    pub fn enters(&mut self, out: &mut TxFrame<'_>) -> Result<(), Counter> {
        if !self.filter_admits(out.seen, Direction::Egress, out.now) {
            return Err(|c| &mut c.dropped_filter);
        }
        let Some(limits) = &self.limits else {
            return Ok(());
        };
        if !limits.rx.admits(out.count(), out.len(), out.now) {
            return Err(|c| &mut c.dropped_rate);
        }
        if let Some(dscp) = limits.set.dscp {
            dscp::mark(out.head, out.payload, dscp);
        }
        Ok(())
    }

    fn filter_admits(&mut self, seen: &FilterKey, direction: Direction, now: Nanoseconds) -> bool {
        let filter = self.filter.as_mut();
        filter.is_none_or(|filter| filter.admits(seen, direction, now))
    }

    /// Queues a frame for the far end, or counts the drop. [`Self::flush`] publishes the queue.
    pub fn deliver(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers) -> Delivery {
        let admitted = self
            .face
            .takes(out.longest - out.payload)
            .and_then(|()| self.face.takes_tags(out.payload))
            .and_then(|()| self.leaves(out));
        if let (Ok(()), Some(tables)) = (admitted, &mut self.offload_tables) {
            match tables.decide(out) {
                OffloadVerdict::Redirect(found) if !out.redirected => {
                    return Delivery::Redirect(found);
                }
                OffloadVerdict::Drop => {
                    self.counters.dropped_offload += out.count() as u64;
                    return Delivery::Ended;
                }
                OffloadVerdict::Guest | OffloadVerdict::Redirect(_) => (),
            }
        }
        self.push(admitted, out, buffers)
    }

    /// Queues a frame that all stages of [`Self::deliver`] admitted.
    pub fn deliver_admitted(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers) -> Delivery {
        self.push(Ok(()), out, buffers)
    }

    /// Queues a copy of a mirror. The port's filter and rates concern its own traffic only.
    /// True for a copy that the far end's queue got.
    pub fn deliver_copy(&mut self, copy: &mut TxFrame<'_>, buffers: &mut Buffers) -> bool {
        let admitted = self
            .face
            .takes(copy.longest - copy.payload)
            .and_then(|()| self.face.takes_tags(copy.payload));
        let delivery = self.push(admitted, copy, buffers);
        matches!(delivery, Delivery::Queued)
    }

    /// True if a frame to the port has to wait until its queue has room.
    pub fn is_full_for(&mut self, out: &TxFrame<'_>) -> bool {
        self.face.link_up && !self.device.has_room(out)
    }

    /// The mark of packets from the port.
    pub fn dscp(&self) -> Option<u8> {
        self.limits.as_ref()?.set.dscp
    }

    fn push(
        &mut self,
        admitted: Result<(), Counter>,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) -> Delivery {
        match admitted {
            Ok(()) => {
                self.device.push(out, buffers, &mut self.counters);
                Delivery::Queued
            }
            Err(dropped) => {
                *dropped(&mut self.counters) += 1;
                Delivery::Ended
            }
        }
    }

    /// The stages of a frame to the port: filter, then rates.
    fn leaves(&mut self, out: &TxFrame<'_>) -> Result<(), Counter> {
        if !self.filter_admits(out.seen, Direction::Ingress, out.now) {
            return Err(|c| &mut c.dropped_filter);
        }
        self.within_rates(out)
    }

    fn within_rates(&self, out: &TxFrame<'_>) -> Result<(), Counter> {
        let limits = self.limits.as_ref();
        match limits.is_none_or(|l| l.tx.admits(out.count(), out.len(), out.now)) {
            true => Ok(()),
            false => Err(|c| &mut c.dropped_rate),
        }
    }

    /// Returns the taken buffers of a dirty port.
    pub fn release(&mut self) {
        self.device.release();
    }

    /// Publishes the delivered frames and returns the taken buffers, with at most one notification.
    /// True if frames found the far end full meanwhile.
    pub fn flush(&mut self) -> bool {
        self.dirty = false;
        self.device.flush(&mut self.counters);
        let full = self.counters.dropped_full;
        std::mem::replace(&mut self.full_before, full) != full
    }

    /// Takes the device out while the switch forwards its frames.
    pub fn take_device(&mut self) -> Box<dyn Device> {
        std::mem::replace(&mut self.device, Box::new(Absent))
    }

    /// Gives the port other rings, or none, and keeps the counts of the old ones.
    pub fn replace(&mut self, device: Box<dyn Device>) -> Box<dyn Device> {
        self.counters.dropped_malformed += self.device.malformed();
        self.face.note_far_end(device.far_end());
        std::mem::replace(&mut self.device, device)
    }

    /// Replaces the peers of a VXLAN network. False for another far end.
    pub fn set_peers(&mut self, peers: &[IpAddr]) -> bool {
        match self.uplink.as_mut().and_then(|u| u.vxlan.as_mut()) {
            Some(vxlan) => vxlan.peers = peers.to_vec(),
            None => return false,
        }
        self.device.set_peers(peers);
        true
    }

    /// The port as `port-list` shows it.
    pub fn info(&self, switch: &SwitchName) -> PortInfo {
        let mut counters = self.counters;
        counters.dropped_malformed += self.device.malformed();
        PortInfo {
            switch: switch.clone(),
            port: self.face.name.clone(),
            kind: self.face.kind,
            guest: self.face.guest,
            segment: self.face.segment,
            mac: self.face.mac,
            link_up: self.face.link_up,
            uplink: self.uplink.clone(),
            limits: self.limits.as_ref().map(|limits| limits.set),
            filter: self.filter.as_ref().map(|filter| filter.info()),
            mirrors: Vec::new(),
            backpressure: self.face.has_backpressure,
            hold: self.face.has_backpressure,
            mode: self.device.mode().map(str::to_owned),
            owner: self.face.owner,
            far_end: self.face.far_end,
            counters: counters.with_earlier_names(),
        }
    }
}

/// The result of a delivery.
pub enum Delivery {
    /// The far end's queue got the frame.
    Queued,
    /// The port dropped it.
    Ended,
    /// A rule sends it to another station.
    Redirect(RedirectTarget),
}

#[cfg(test)]
mod tests;
