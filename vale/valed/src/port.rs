// SPDX-License-Identifier: Apache-2.0
//! A port of a switch: its device, its guard and its counters.
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use ring::layout::Layout;
use vale_proto::{
    Counters, Direction, GuestVif, InPlace, Kind, Mac, PortAdd, PortInfo, PortName, SwitchName,
    Uplink,
};

use crate::device::{Absent, Buffers, Device};
use crate::filter::{Filter, Seen};
use crate::guard::Guard;
use crate::headers::Ethernet;
use crate::held::Held;
use crate::host::HostPort;
use crate::limit::{Nanoseconds, PortLimits};
use crate::links::Links;
use crate::outgoing::Outgoing;
use crate::pcap::PcapPort;
use crate::refusal::Refusal;
use crate::ring_port::RingPort;

pub struct Port {
    pub name: PortName,
    kind: Kind,
    guest: Option<GuestVif>,
    uplink: Option<Uplink>,
    pub segment: u32,
    pub mac: Option<Mac>,
    /// The switch learns the stations behind the port.
    pub learns: bool,
    /// Stations may be behind the port: it gets frames to unknown addresses of its segment.
    pub is_open: bool,
    mtu: usize,
    pub link_up: bool,
    pub guard: Guard,
    pub counters: Counters,
    pub device: Box<dyn Device>,
    pub filter: Option<Box<Filter>>,
    pub limits: Option<Box<PortLimits>>,
    /// The port has moved frames since the last flush.
    pub dirty: bool,
    /// Frames from the port wait for a full receiver.
    holds: bool,
    pub held: Held,
    /// The time of its next turn, in bytes.
    pub turn: u64,
}

impl Port {
    pub fn new(add: &PortAdd, device: Box<dyn Device>) -> Self {
        Self {
            name: add.port.clone(),
            kind: add.kind,
            guest: add.guest,
            uplink: Uplink::of(add),
            segment: add.segment,
            mac: add.mac,
            learns: (add.vlan.is_some() || matches!(add.kind, Kind::Vxlan | Kind::Pipe))
                && add.mac.is_none(),
            is_open: add.mac.is_none() || !add.port_security,
            mtu: add.mtu.into(),
            link_up: add.link_up,
            guard: Guard::new(add),
            counters: Counters::default(),
            device,
            filter: add.filtered.then(|| Box::new(Filter::new(&[]))),
            limits: None,
            dirty: false,
            holds: add.hold,
            held: Held::default(),
            turn: 0,
        }
    }

    /// True for a port that leads to the other hosts of a chain's path.
    pub fn is_path(&self) -> bool {
        self.kind == Kind::Path
    }

    /// True if frames can leave by the port.
    pub fn is_live(&self) -> bool {
        self.link_up && self.device.is_present()
    }

    /// Judges a frame from the far end, which a hop of a chain may have `relayed` for another
    /// station. Returns the number of bytes at its start on which the verdict rests.
    pub fn judge(
        &self,
        ethernet: &Ethernet,
        bytes: &[u8],
        relayed: bool,
    ) -> Result<usize, Counter> {
        if !self.link_up {
            return Err(|c| &mut c.dropped_link_down);
        }
        if ethernet.is_link_control() {
            return Err(|c| &mut c.dropped_link_control);
        }
        let judged = match relayed {
            true => self.guard.judge_relayed(ethernet, bytes),
            false => self.guard.judge(ethernet, bytes),
        };
        judged.map_err(counter_of)
    }

    /// The stages of a judged frame that comes from the port: filter, then rates.
    pub fn enters(&mut self, seen: &Seen, bytes: usize, now: Nanoseconds) -> Result<(), Counter> {
        if !self.filter_admits(seen, Direction::Egress, now) {
            return Err(|c| &mut c.dropped_filter);
        }
        if self
            .limits
            .as_mut()
            .is_some_and(|l| !l.rx.admits(bytes, now))
        {
            return Err(|c| &mut c.dropped_rate);
        }
        Ok(())
    }

    fn filter_admits(&mut self, seen: &Seen, direction: Direction, now: Nanoseconds) -> bool {
        let filter = self.filter.as_mut();
        filter.is_none_or(|filter| filter.admits(*seen, direction, now))
    }

    /// Queues a frame for the far end, or counts the drop. [`Self::flush`] publishes the queue. True
    /// for a frame that the far end's queue got.
    pub fn deliver(&mut self, out: &mut Outgoing<'_>, buffers: &mut Buffers) -> bool {
        let admitted = self
            .takes(out.longest - out.payload)
            .and_then(|()| self.leaves(out));
        self.push(admitted, out, buffers)
    }

    /// Queues a copy of a mirror. The port's filter and rates concern its own traffic only.
    pub fn deliver_copy(&mut self, copy: &mut Outgoing<'_>, buffers: &mut Buffers) -> bool {
        self.push(self.takes(copy.longest - copy.payload), copy, buffers)
    }

    /// True if a frame to the port has to wait until its queue has room.
    pub fn is_full_for(&mut self, out: &Outgoing<'_>) -> bool {
        self.link_up && !self.device.has_room(out.count())
    }

    /// True if frames from the port wait for full receivers.
    pub fn holds(&self) -> bool {
        self.holds
    }

    fn push(
        &mut self,
        admitted: Result<(), Counter>,
        out: &mut Outgoing<'_>,
        buffers: &mut Buffers,
    ) -> bool {
        match admitted {
            Ok(()) => self.device.push(out, buffers, &mut self.counters),
            Err(dropped) => *dropped(&mut self.counters) += 1,
        }
        admitted.is_ok()
    }

    /// The link and the MTU. The length of the IP packet is in bytes.
    pub fn takes(&self, packet: usize) -> Result<(), Counter> {
        if !self.link_up {
            return Err(|c| &mut c.dropped_link_down);
        }
        if packet > self.mtu {
            return Err(|c| &mut c.dropped_too_long);
        }
        Ok(())
    }

    /// The stages of a frame to the port: filter, then rates.
    fn leaves(&mut self, out: &Outgoing<'_>) -> Result<(), Counter> {
        if !self.filter_admits(out.seen, Direction::Ingress, out.now) {
            return Err(|c| &mut c.dropped_filter);
        }
        let (len, now) = (out.len(), out.now);
        if self.limits.as_mut().is_some_and(|l| !l.tx.admits(len, now)) {
            return Err(|c| &mut c.dropped_rate);
        }
        Ok(())
    }

    /// Returns the taken buffers of a dirty port.
    pub fn release(&mut self) {
        self.device.release();
    }

    /// Publishes the delivered frames and returns the taken buffers, with at most one notification.
    pub fn flush(&mut self) {
        self.dirty = false;
        self.device.flush(&mut self.counters);
    }

    /// Takes the device out while the switch forwards its frames.
    pub fn take_device(&mut self) -> Box<dyn Device> {
        std::mem::replace(&mut self.device, Box::new(Absent))
    }

    /// Gives the port other rings, or none, and keeps the counts of the old ones.
    pub fn replace(&mut self, device: Box<dyn Device>) -> Box<dyn Device> {
        self.counters.dropped_malformed += self.device.malformed();
        std::mem::replace(&mut self.device, device)
    }

    /// Gives the port the addresses of a guard, which gets the port's.
    pub fn set_guard(&mut self, guard: &mut Guard) {
        if self.guard.exchange(guard) {
            self.is_open = self.mac.is_none() || !self.guard.is_secure();
        }
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
            port: self.name.clone(),
            kind: self.kind,
            guest: self.guest,
            segment: self.segment,
            mac: self.mac,
            link_up: self.link_up,
            uplink: self.uplink.clone(),
            limits: self.limits.as_ref().map(|limits| limits.set),
            filter: self.filter.as_ref().map(|filter| filter.info()),
            mirrors: Vec::new(),
            hold: self.holds,
            counters,
        }
    }
}

/// The counter of a drop.
pub type Counter = fn(&mut Counters) -> &mut u64;
pub const MALFORMED: Counter = |c| &mut c.dropped_malformed;

fn counter_of(refusal: Refusal) -> Counter {
    match refusal {
        Refusal::Malformed => MALFORMED,
        Refusal::Type => |c| &mut c.dropped_type,
        Refusal::Spoof => |c| &mut c.dropped_spoof,
        Refusal::Role => |c| &mut c.dropped_role,
        Refusal::Hidden => |c| &mut c.dropped_hidden,
    }
}

/// Opens the device that `add` names. Returns the descriptors for the caller, if there are any.
pub fn open(add: &PortAdd, links: &Links) -> io::Result<(Port, Vec<OwnedFd>)> {
    if add.kind == Kind::Process {
        let in_place = add.in_place.filter(|_| !links.guests.copying);
        let version = if in_place.is_some() { 2 } else { 1 };
        let layout = Layout::of(version, add.slots).map_err(io::Error::other)?;
        let region = in_place.map_or(0, |in_place| in_place.region);
        let (mut rings, fds) = RingPort::create(layout, region).map_err(io::Error::other)?;
        join(&mut rings, add, links);
        return Ok((Port::new(add, Box::new(rings)), fds.into()));
    }
    Ok((Port::new(add, device(add, links)?), Vec::new()))
}

/// Makes a process port that goes on with the rings of an earlier one.
pub fn resume(add: &PortAdd, fds: Vec<OwnedFd>, links: &Links) -> io::Result<Port> {
    let expected = |fds: Vec<_>| format!("expected 3 descriptors, not {}", fds.len());
    let fds = fds
        .try_into()
        .map_err(|fds| io::Error::other(expected(fds)))?;
    let mut rings = RingPort::resume(add.slots, fds)?;
    join(&mut rings, add, links);
    Ok(Port::new(add, Box::new(rings)))
}

/// Lets the ports of a guest send what lies in each other's regions.
fn join(rings: &mut RingPort, add: &PortAdd, links: &Links) {
    if let Some(InPlace { domain, region }) = add.in_place {
        rings.join(&links.guests.regions(add.kind, domain), region);
    }
}

fn device(add: &PortAdd, links: &Links) -> io::Result<Box<dyn Device>> {
    if let Some(vxlan) = &add.vxlan {
        return Ok(Box::new(links.tunnels.open(vxlan)?));
    }
    if let Some(pipe) = &add.pipe {
        let place = (add.switch.clone(), add.segment);
        return Ok(Box::new(links.pipes.open(pipe, place)?));
    }
    if let Some(pcap) = &add.pcap {
        let directory = links.capture_dir.as_deref();
        let directory = directory.ok_or_else(|| io::Error::other(NO_DIRECTORY))?;
        return Ok(Box::new(PcapPort::open(pcap, directory)?));
    }
    if add.kind == Kind::Xen {
        return Ok(Box::new(Absent));
    }
    let ifname = add.ifname.as_deref().unwrap_or_default();
    Ok(Box::new(HostPort::open(add.kind, ifname, add.vlan)?))
}

/// The failure of a port or a mirror that names a file.
pub const NO_DIRECTORY: &str = "valed has no capture_dir in its configuration";

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;
