// SPDX-License-Identifier: Apache-2.0
//! A port of a switch: its device, its guard and its counters.
pub mod blocked;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vale_proto::{
    Counters, Direction, FarEnd, GuestVif, Kind, Mac, PortAdd, PortInfo, PortName, SwitchName,
    Uplink,
};

use crate::clock::Nanoseconds;
use crate::device::host::HostPort;
use crate::device::host_resources::HostResources;
use crate::device::pcap::PcapPort;
use crate::device::ring_port::RingPort;
use crate::device::xdp_port::by_xdp;
use crate::device::{Absent, BURST, Buffers, Device};
use crate::frame::drop_reason::DropReason;
use crate::frame::dscp;
use crate::frame::headers::{ETHERNET, Ethernet};
use crate::frame::key::FilterKey;
use crate::frame::tx_frame::TxFrame;
use crate::mesh::GenIndex;
use crate::policy::filter::Filter;
use crate::policy::guard::Guard;
use crate::policy::offload_rules::{OffloadTables, OffloadVerdict, RedirectTarget};
use crate::policy::token_bucket::PortLimits;
use crate::port::blocked::BlockedFrames;

/// A packet that a hop of a chain sends.
#[derive(Clone, Copy)]
pub struct Relayed {
    /// Its source MAC address is that of the station whose packets the chain gave to the hop.
    pub is_station: bool,
}

/// What every worker knows of a port.
#[derive(Clone)]
pub struct Face {
    pub name: PortName,
    /// Tells the port from later ones of its name or place.
    pub id: u64,
    /// The far end is on its way to another worker: frames to the port wait at their source.
    pub is_moving: bool,
    /// The name of its interface, and the VLAN of a port that has only one of them.
    pub interface: Option<(String, Option<u16>)>,
    kind: Kind,
    guest: Option<GuestVif>,
    pub segment: u32,
    pub mac: Option<Mac>,
    /// The switch learns the stations behind the port.
    pub learns: bool,
    /// An uplink of untagged frames: a tag would lead to another network.
    is_untagged: bool,
    /// Stations may be behind the port: it gets frames to unknown addresses of its segment.
    pub is_open: bool,
    mtu: usize,
    pub link_up: bool,
    far_end: FarEnd,
    /// The far end is gone: frames to the port are dropped.
    is_gone: bool,
    pub guard: Guard,
    /// The worker of the port has a filter for it.
    pub is_filtered: bool,
    /// Frames from the port wait for a full receiver.
    has_backpressure: bool,
    /// Frames of a port with backpressure, at other workers.
    pub remote_in_flight: Arc<AtomicUsize>,
    /// The number of the port's owner.
    pub owner: Option<u64>,
}

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

impl Face {
    fn new(add: &PortAdd, device: &dyn Device) -> Self {
        Self {
            name: add.port.clone(),
            id: 0,
            is_moving: false,
            interface: device
                .interface()
                .map(|(name, vlan)| (name.to_owned(), vlan)),
            kind: add.kind,
            guest: add.guest,
            segment: add.segment,
            mac: add.mac,
            learns: matches!(add.kind, Kind::Veth | Kind::Tap | Kind::Vxlan | Kind::Pipe)
                && add.mac.is_none(),
            is_untagged: Uplink::of(add).is_some() && !add.vlan_tags,
            is_open: add.mac.is_none() || !add.port_security,
            mtu: add.mtu.into(),
            link_up: add.link_up,
            far_end: device.far_end(),
            is_gone: false,
            guard: Guard::new(add),
            is_filtered: add.filtered,
            has_backpressure: add.backpressure,
            remote_in_flight: Arc::default(),
            owner: add.owner,
        }
    }
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

    /// True for a port that leads to the other hosts of a chain's path.
    pub fn is_path(&self) -> bool {
        self.face.kind == Kind::Path
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

    /// True if frames can leave by the port.
    pub fn is_live(&self) -> bool {
        self.face.link_up && self.face.far_end == FarEnd::Up
    }

    pub fn far_end(&self) -> FarEnd {
        self.face.far_end
    }

    /// Notes the state of the far end. False if it is known.
    pub fn note_far_end(&mut self, state: FarEnd) -> bool {
        let differs = self.face.far_end != state;
        (self.face.far_end, self.face.is_gone) = (state, state == FarEnd::Gone);
        differs
    }

    /// Judges a frame from the far end, which a hop of a chain may have `relayed`. Returns the number of
    /// bytes at its start on which the verdict rests.
    pub fn judge(
        &self,
        ethernet: &Ethernet,
        bytes: &[u8],
        relayed: Option<Relayed>,
    ) -> Result<usize, Counter> {
        if !self.face.link_up {
            return Err(|c| &mut c.dropped_link_down);
        }
        if ethernet.is_link_control() {
            return Err(|c| &mut c.dropped_link_control);
        }
        self.takes_tags(ethernet.payload)?;
        let judged = match relayed {
            Some(Relayed { is_station }) => {
                self.face.guard.judge_relayed(ethernet, bytes, is_station)
            }
            None => self.face.guard.judge(ethernet, bytes),
        };
        judged.map_err(counter_of)
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
            .takes(out.longest - out.payload)
            .and_then(|()| self.takes_tags(out.payload))
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

    /// As [`Self::deliver`], for a frame of the flow that the filter has just admitted, at a port without
    /// offload rules.
    pub fn deliver_repeated(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers) -> Delivery {
        let admitted = self
            .takes(out.longest - out.payload)
            .and_then(|()| self.takes_tags(out.payload))
            .and_then(|()| self.within_rates(out));
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
            .takes(copy.longest - copy.payload)
            .and_then(|()| self.takes_tags(copy.payload));
        let delivery = self.push(admitted, copy, buffers);
        matches!(delivery, Delivery::Queued)
    }

    /// True if a frame to the port has to wait until its queue has room.
    pub fn is_full_for(&mut self, out: &TxFrame<'_>) -> bool {
        self.face.link_up && !self.device.has_room(out)
    }

    /// True if frames from the port wait for full receivers.
    pub fn has_backpressure(&self) -> bool {
        self.face.has_backpressure
    }

    /// The mark of packets from the port.
    pub fn dscp(&self) -> Option<u8> {
        self.limits.as_ref()?.set.dscp
    }

    /// True if frames to the port need no stage but [`Self::deliver_plain`].
    pub fn takes_all(&self) -> bool {
        let is_open = self.face.link_up && !self.face.is_gone && !self.face.is_untagged;
        is_open && self.filter.is_none() && self.limits.is_none() && self.offload_tables.is_none()
    }

    /// As [`Self::deliver`], for a port that [`Self::takes_all`].
    #[inline]
    pub fn deliver_plain(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers) {
        match out.longest - out.payload > self.face.mtu {
            true => self.counters.dropped_too_long += 1,
            false => self.device.push(out, buffers, &mut self.counters),
        }
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

    /// The link and the MTU. The length of the IP packet is in bytes.
    pub fn takes(&self, packet: usize) -> Result<(), Counter> {
        if !self.face.link_up | self.face.is_gone {
            return Err(|c| &mut c.dropped_link_down);
        }
        if packet > self.face.mtu {
            return Err(|c| &mut c.dropped_too_long);
        }
        Ok(())
    }

    /// The tags of a frame from or to the port, whose payload is at this offset.
    pub fn takes_tags(&self, payload: usize) -> Result<(), Counter> {
        match self.face.is_untagged && payload != ETHERNET {
            true => Err(|c| &mut c.dropped_type),
            false => Ok(()),
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
        self.note_far_end(device.far_end());
        std::mem::replace(&mut self.device, device)
    }

    /// True for the address of a virtual router that port security allows the guest next to its own. It is
    /// where it was seen last: it moves between the ports of the guests that may have it.
    pub fn has_virtual_router(&self, station: Mac) -> bool {
        station.is_virtual_router()
            && self.face.mac != Some(station)
            && self.face.guard.allows(station)
    }

    /// Gives the port the addresses of a guard, which gets the port's. False if both are the same.
    pub fn set_guard(&mut self, guard: &mut Guard) -> bool {
        let differs = self.face.guard.exchange(guard);
        if differs {
            self.face.is_open = self.face.mac.is_none() || !self.face.guard.is_secure();
        }
        differs
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
            counters,
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

/// The counter of a drop.
pub type Counter = fn(&mut Counters) -> &mut u64;
pub const MALFORMED: Counter = |c| &mut c.dropped_malformed;

fn counter_of(refusal: DropReason) -> Counter {
    match refusal {
        DropReason::Malformed => MALFORMED,
        DropReason::Type => |c| &mut c.dropped_type,
        DropReason::Spoof => |c| &mut c.dropped_spoof,
        DropReason::Rogue => |c| &mut c.dropped_role,
        DropReason::Hidden => |c| &mut c.dropped_hidden,
    }
}

/// Opens the device that `add` names. Returns the descriptors for the caller, if there are any.
pub fn open(add: &PortAdd, resources: &HostResources) -> io::Result<(Port, Vec<OwnedFd>)> {
    if add.kind == Kind::Process {
        let regions = resources.regions.regions_in_place(add);
        let made = match add.has_long_frames() {
            true => RingPort::create_long(add.slots),
            false => RingPort::create(add.slots, regions.as_ref()),
        };
        let (rings, fds) = made.map_err(io::Error::other)?;
        return Ok((Port::new(add, Box::new(rings)), fds.into()));
    }
    Ok((Port::new(add, device(add, resources)?), Vec::new()))
}

/// Makes a process port that continues with the rings of an earlier one.
pub fn resume(add: &PortAdd, fds: Vec<OwnedFd>, resources: &HostResources) -> io::Result<Port> {
    let expected = |fds: Vec<_>| format!("expected 3 descriptors, not {}", fds.len());
    let fds = fds
        .try_into()
        .map_err(|fds| io::Error::other(expected(fds)))?;
    let mut rings = RingPort::resume(add.slots, fds)?;
    if add.has_long_frames() {
        rings.set_long();
    }
    if let Some(domain) = add.in_place {
        rings.join(&resources.regions.regions(add.kind, domain));
    }
    Ok(Port::new(add, Box::new(rings)))
}

fn device(add: &PortAdd, resources: &HostResources) -> io::Result<Box<dyn Device>> {
    if let Some(vxlan) = &add.vxlan {
        return Ok(Box::new(resources.tunnels.open(vxlan)?));
    }
    if let Some(pipe) = &add.pipe {
        let place = (add.switch.clone(), add.segment);
        return Ok(Box::new(resources.pipes.open(pipe, place)?));
    }
    if let Some(pcap) = &add.pcap {
        let directory = resources.capture_dir.as_ref();
        let directory = directory.ok_or_else(|| io::Error::other(NO_DIRECTORY))?;
        return Ok(Box::new(PcapPort::open(pcap, directory)?));
    }
    if add.kind == Kind::Xen {
        return Ok(Box::new(Absent));
    }
    let ifname = add.ifname.as_deref().unwrap_or_default();
    if add.xdp {
        return by_xdp(ifname, add.vlan, add.mtu);
    }
    Ok(Box::new(HostPort::open(add.kind, ifname, add.vlan)?))
}

/// The failure of a port or a mirror that names a file.
pub const NO_DIRECTORY: &str = "valed has no capture_dir in its configuration";

#[cfg(test)]
mod tests;
