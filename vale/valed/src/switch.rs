// SPDX-License-Identifier: Apache-2.0
//! One named switch: takes frames from its ports, judges them, and delivers them.
use vale_netdev::{MAX_FRAME, Received, RecvBatch};
use vale_proto::{Mac, PortInfo, PortName, SwitchName};

use crate::lookup::{Lookup, StaticTable};
use crate::offload::Offload;
use crate::port::{Device, Outgoing, Port};

/// Most ports of a switch.
pub const MAX_PORTS: usize = 256;
/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 64;

/// Private memory frames are judged in, shared by all ports.
pub struct Scratch {
    frame: Box<[u8; ring::BUFFER_SIZE]>,
    host: RecvBatch,
    segment: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        let frame = Box::new([0; ring::BUFFER_SIZE]);
        Self {
            frame,
            host: RecvBatch::default(),
            segment: Vec::with_capacity(MAX_FRAME),
        }
    }
}

/// Why a port cannot be added.
#[derive(Debug, PartialEq, Eq)]
pub enum AddError {
    Full,
    NameTaken,
    MacTaken(Mac),
}

pub struct Switch {
    pub name: SwitchName,
    ports: Vec<Option<Box<Port>>>,
    lookup: Box<dyn Lookup>,
    /// Places of ports to be flushed.
    dirty: Vec<usize>,
}

impl Switch {
    pub fn new(name: SwitchName) -> Self {
        Self {
            name,
            ports: Vec::new(),
            lookup: Box::new(StaticTable::default()),
            dirty: Vec::new(),
        }
    }

    /// The place the port got.
    pub fn add(&mut self, offered: &mut Option<Box<Port>>) -> Result<usize, AddError> {
        let Some(port) = offered.as_deref() else {
            return Err(AddError::Full);
        };
        if self.ports().any(|p| p.name == port.name) {
            return Err(AddError::NameTaken);
        }
        let place = self
            .ports
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.ports.len());
        if place == MAX_PORTS {
            return Err(AddError::Full);
        }
        if let Some(mac) = port.mac {
            if !self.lookup.insert(port.segment, mac, place) {
                return Err(AddError::MacTaken(mac));
            }
        }
        self.ports
            .resize_with(self.ports.len().max(place + 1), || None);
        self.ports[place] = offered.take();
        Ok(place)
    }

    pub fn remove(&mut self, name: &PortName) -> Option<Box<Port>> {
        let is_it = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.name == *name);
        let port = self.ports.iter_mut().find(|p| is_it(p))?.take()?;
        if let Some(mac) = port.mac {
            self.lookup.remove(port.segment, mac);
        }
        Some(port)
    }

    /// Where a port is, and the port.
    pub fn find(&mut self, name: &PortName) -> Option<(usize, &mut Port)> {
        let mut ports = self.ports.iter_mut().enumerate();
        ports.find_map(|(place, port)| {
            Some((place, &mut **port.as_mut().filter(|p| p.name == *name)?))
        })
    }

    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter().flatten().map(|p| &**p)
    }

    pub fn port_mut(&mut self, name: &PortName) -> Option<&mut Port> {
        self.find(name).map(|(_, port)| port)
    }

    pub fn infos(&self) -> impl Iterator<Item = PortInfo> {
        self.ports().map(|p| p.info(&self.name))
    }

    /// An event came for the port at `place`.
    pub fn event(&mut self, place: usize) {
        match self.device(place) {
            Some(Device::Host(host)) => host.ready = true,
            Some(Device::Ring(port)) => port.take_event(),
            Some(Device::Absent) | None => (),
        }
    }

    fn device(&mut self, place: usize) -> Option<&mut Device> {
        self.ports.get_mut(place)?.as_mut().map(|p| &mut p.device)
    }

    /// Gives each port a turn, then notifies each that got something. True if any frame moved.
    pub fn round(&mut self, scratch: &mut Scratch) -> bool {
        let mut moved = false;
        for place in 0..self.ports.len() {
            moved |= match self.device(place) {
                None | Some(Device::Absent) => false,
                Some(Device::Ring(_)) => self.take_from_ring(place, scratch),
                Some(Device::Host(host)) => host.ready && self.take_from_host(place, scratch),
            };
        }
        for place in std::mem::take(&mut self.dirty) {
            if let Some(port) = &mut self.ports[place] {
                port.flush();
            }
        }
        moved
    }

    fn take_from_ring(&mut self, place: usize, scratch: &mut Scratch) -> bool {
        let Scratch { frame, segment, .. } = scratch;
        for n in 0..BUDGET {
            let Some(Device::Ring(port)) = self.device(place) else {
                return false;
            };
            let Some(length) = port.ring.pop(&mut frame[..]) else {
                // Passed over descriptors have to be given back too.
                self.mark(place);
                return n > 0;
            };
            self.forward(place, &mut frame[..length], Offload::default(), segment);
        }
        self.mark(place);
        true
    }

    fn take_from_host(&mut self, place: usize, scratch: &mut Scratch) -> bool {
        let Some(Device::Host(host)) = self.device(place) else {
            return false;
        };
        let count = host.receive(&mut scratch.host);
        for n in 0..count {
            let parsed = match scratch.host.frame(n) {
                Received::Frame(header, frame) => {
                    Offload::parse(&header, frame.len()).map(|o| (o, frame))
                }
                Received::Malformed => None,
            };
            match parsed {
                Some((offload, frame)) => self.forward(place, frame, offload, &mut scratch.segment),
                None => self.malformed(place),
            }
        }
        count > 0
    }

    fn malformed(&mut self, place: usize) {
        if let Some(port) = &mut self.ports[place] {
            port.counters.rx_packets += 1;
            port.counters.dropped_malformed += 1;
        }
    }

    /// Judges a frame, which is in private memory, and delivers it or counts why not.
    fn forward(
        &mut self,
        source: usize,
        bytes: &mut [u8],
        offload: Offload,
        segment: &mut Vec<u8>,
    ) {
        let Some(port) = &mut self.ports[source] else {
            return;
        };
        let Some((ethernet, mut out)) = port.judge(bytes, offload) else {
            return;
        };
        let (group, number) = (ethernet.destination.is_multicast(), port.segment);
        match self.lookup.find(number, ethernet.destination) {
            Some(place) if !group && place != source => self.deliver(place, &mut out, segment),
            found => {
                let known = found.is_some();
                let sent = !known && self.flood(source, number, group, &mut out, segment);
                if let (false, false, Some(port)) = (sent, group, &mut self.ports[source]) {
                    port.counters.dropped_unknown += 1;
                }
            }
        }
    }

    /// Delivers to the other ports of the segment. A frame to one address goes to the ports without
    /// a MAC address only: the destination may be behind them.
    fn flood(
        &mut self,
        source: usize,
        number: u16,
        group: bool,
        out: &mut Outgoing<'_>,
        segment: &mut Vec<u8>,
    ) -> bool {
        let mut sent = false;
        for place in 0..self.ports.len() {
            let wanted = |p: &Port| p.segment == number && (group || p.mac.is_none());
            if place != source && self.ports[place].as_deref().is_some_and(wanted) {
                self.deliver(place, out, segment);
                sent = true;
            }
        }
        sent
    }

    fn deliver(&mut self, place: usize, out: &mut Outgoing<'_>, segment: &mut Vec<u8>) {
        if let Some(port) = &mut self.ports[place] {
            port.deliver(out, segment);
        }
        self.mark(place);
    }

    /// Notes that the port has to be flushed.
    fn mark(&mut self, place: usize) {
        if let Some(port) = &mut self.ports[place] {
            if !port.dirty {
                port.dirty = true;
                self.dirty.push(place);
            }
        }
    }

    /// Asks all guests for a kick. True if one has sent something already.
    pub fn sleep_prepare(&mut self) -> bool {
        let mut busy = false;
        for port in self.ports.iter_mut().flatten() {
            busy |= match &mut port.device {
                Device::Ring(port) => port.ring.sleep_prepare(),
                Device::Host(port) => port.ready,
                Device::Absent => false,
            };
        }
        busy
    }

    /// Tells all guests that no kick is needed now.
    pub fn wake_done(&mut self) {
        for port in self.ports.iter_mut().flatten() {
            if let Device::Ring(port) = &mut port.device {
                port.ring.wake_done();
            }
        }
    }
}

#[cfg(test)]
#[path = "switch_tests.rs"]
mod tests;
