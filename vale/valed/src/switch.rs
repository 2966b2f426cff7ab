// SPDX-License-Identifier: Apache-2.0
//! One named switch: takes frames from its ports, judges them, and delivers them.
use vale_netdev::{MAX_FRAME, Received, RecvBatch};
use vale_proto::{ChainInfo, ChainName, ChainSet, Mac, PortInfo, PortName, SwitchName};

use crate::chain::{Chains, Next, Step, TooManyChains};
use crate::headers::Ethernet;
use crate::lookup::{Lookup, StaticTable};
use crate::offload::Offload;
use crate::port::{Device, Outgoing, Port};

/// Most ports of a switch.
pub const MAX_PORTS: usize = 256;
/// Frames taken from one port in a round.
const BUDGET: usize = 64;

/// Private memory in which the switch judges frames, shared by all ports.
pub struct Scratch {
    frame: Box<[u8; ring::BUFFER_SIZE]>,
    host: RecvBatch,
    /// One of the frames that the switch cuts from a longer one.
    gso_buffer: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        let frame = Box::new([0; ring::BUFFER_SIZE]);
        Self {
            frame,
            host: RecvBatch::default(),
            gso_buffer: Vec::with_capacity(MAX_FRAME),
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
    chains: Chains,
    /// Indexes of ports to be flushed.
    dirty: Vec<usize>,
}

impl Switch {
    pub fn new(name: SwitchName) -> Self {
        Self {
            name,
            ports: Vec::new(),
            lookup: Box::new(StaticTable::default()),
            chains: Chains::default(),
            dirty: Vec::new(),
        }
    }

    /// Returns the index of the port.
    pub fn add(&mut self, offered: &mut Option<Box<Port>>) -> Result<usize, AddError> {
        let Some(port) = offered.as_deref() else {
            return Err(AddError::Full);
        };
        if self.ports().any(|p| p.name == port.name) {
            return Err(AddError::NameTaken);
        }
        let index = self
            .ports
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.ports.len());
        if index == MAX_PORTS {
            return Err(AddError::Full);
        }
        if let Some(mac) = port.mac {
            if !self.lookup.insert(port.segment, mac, index) {
                return Err(AddError::MacTaken(mac));
            }
        }
        self.ports
            .resize_with(self.ports.len().max(index + 1), || None);
        self.ports[index] = offered.take();
        self.chains.resolve(&self.ports);
        Ok(index)
    }

    pub fn remove(&mut self, name: &PortName) -> Option<Box<Port>> {
        let is_it = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.name == *name);
        let port = self.ports.iter_mut().find(|p| is_it(p))?.take()?;
        if let Some(mac) = port.mac {
            self.lookup.remove(port.segment, mac);
        }
        self.chains.resolve(&self.ports);
        Some(port)
    }

    /// A port and its index.
    pub fn find(&mut self, name: &PortName) -> Option<(usize, &mut Port)> {
        let mut ports = self.ports.iter_mut().enumerate();
        ports.find_map(|(index, port)| {
            Some((index, &mut **port.as_mut().filter(|p| p.name == *name)?))
        })
    }

    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter().flatten().map(|p| &**p)
    }

    pub fn port_mut(&mut self, name: &PortName) -> Option<&mut Port> {
        self.find(name).map(|(_, port)| port)
    }

    /// Makes a chain, or replaces it.
    pub fn set_chain(&mut self, set: ChainSet) -> Result<(), TooManyChains> {
        self.chains.set(set, &self.ports)
    }

    pub fn remove_chain(&mut self, name: &ChainName) {
        self.chains.remove(name, &self.ports);
    }

    pub fn chains(&self) -> impl Iterator<Item = ChainInfo> {
        self.chains.infos()
    }

    /// Finds the live ports of all chains anew.
    pub fn resolve_chains(&mut self) {
        self.chains.resolve(&self.ports);
    }

    pub fn infos(&self) -> impl Iterator<Item = PortInfo> {
        self.ports().map(|p| p.info(&self.name))
    }

    /// Takes an event of the port at `index`.
    pub fn event(&mut self, index: usize) {
        match self.device(index) {
            Some(Device::Host(host)) => host.ready = true,
            Some(Device::Ring(port)) => port.take_event(),
            Some(Device::Absent) | None => (),
        }
    }

    fn device(&mut self, index: usize) -> Option<&mut Device> {
        self.ports.get_mut(index)?.as_mut().map(|p| &mut p.device)
    }

    /// Takes frames from each port, then notifies each that got some. True if any frame moved.
    pub fn round(&mut self, scratch: &mut Scratch) -> bool {
        let mut moved = false;
        for index in 0..self.ports.len() {
            moved |= match self.device(index) {
                None | Some(Device::Absent) => false,
                Some(Device::Ring(_)) => self.take_from_ring(index, scratch),
                Some(Device::Host(host)) => host.ready && self.take_from_host(index, scratch),
            };
        }
        for index in std::mem::take(&mut self.dirty) {
            if let Some(port) = &mut self.ports[index] {
                port.flush();
            }
        }
        moved
    }

    fn take_from_ring(&mut self, index: usize, scratch: &mut Scratch) -> bool {
        let Scratch {
            frame, gso_buffer, ..
        } = scratch;
        for n in 0..BUDGET {
            let Some(Device::Ring(port)) = self.device(index) else {
                return false;
            };
            let Some(length) = port.ring.pop(&mut frame[..]) else {
                // The flush also gives back the descriptors that the ring passed over.
                self.mark(index);
                return n > 0;
            };
            self.forward(index, &mut frame[..length], Offload::default(), gso_buffer);
        }
        self.mark(index);
        true
    }

    fn take_from_host(&mut self, index: usize, scratch: &mut Scratch) -> bool {
        let Some(Device::Host(host)) = self.device(index) else {
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
                Some((offload, frame)) => {
                    self.forward(index, frame, offload, &mut scratch.gso_buffer)
                }
                None => self.malformed(index),
            }
        }
        count > 0
    }

    fn malformed(&mut self, index: usize) {
        if let Some(port) = &mut self.ports[index] {
            port.counters.rx_packets += 1;
            port.counters.dropped_malformed += 1;
        }
    }

    /// Judges a frame in private memory, then delivers it or counts the drop.
    fn forward(
        &mut self,
        source: usize,
        bytes: &mut [u8],
        offload: Offload,
        gso_buffer: &mut Vec<u8>,
    ) {
        let step = match self.chains.is_empty() {
            true => None,
            false => self.chain_step(source, bytes),
        };
        let Some(port) = &mut self.ports[source] else {
            return;
        };
        let relayed = step.is_some_and(|step| !step.enters);
        let segment = port.segment;
        let Some((ethernet, mut out)) = port.judge(bytes, offload, relayed) else {
            return;
        };
        match step {
            Some(step) => self.take_step(step, source, &ethernet, &mut out, gso_buffer),
            None => self.send(source, segment, &ethernet, &mut out, gso_buffer),
        }
    }

    /// The step of a frame through its chain, if a chain selects it.
    fn chain_step(&self, source: usize, bytes: &[u8]) -> Option<Step> {
        let ethernet = Ethernet::parse(bytes)?;
        self.chains.step(&self.ports, source, &ethernet, bytes)
    }

    fn take_step(
        &mut self,
        step: Step,
        source: usize,
        ethernet: &Ethernet,
        out: &mut Outgoing<'_>,
        gso_buffer: &mut Vec<u8>,
    ) {
        self.chains.count(step, out.bytes.len());
        match step.next {
            Next::Hop {
                port, addressed, ..
            } => {
                let mac = self.ports[port].as_ref().and_then(|p| p.mac);
                if let (true, Some(mac)) = (addressed, mac) {
                    out.bytes[..mac.0.len()].copy_from_slice(&mac.0);
                }
                self.deliver(port, out, gso_buffer);
            }
            Next::Exit => {
                let segment = self.chains.segment(step);
                self.send(source, segment, ethernet, out, gso_buffer);
            }
            Next::Blocked { .. } => (),
        }
    }

    /// Sends a judged frame to its destination.
    fn send(
        &mut self,
        source: usize,
        segment: u16,
        ethernet: &Ethernet,
        out: &mut Outgoing<'_>,
        gso_buffer: &mut Vec<u8>,
    ) {
        let group = ethernet.destination.is_multicast();
        match self.lookup.find(segment, ethernet.destination) {
            Some(index) if !group && index != source => self.deliver(index, out, gso_buffer),
            found => {
                let known = found.is_some();
                let sent = !known && self.flood(source, segment, group, out, gso_buffer);
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
        segment: u16,
        group: bool,
        out: &mut Outgoing<'_>,
        gso_buffer: &mut Vec<u8>,
    ) -> bool {
        let mut sent = false;
        for index in 0..self.ports.len() {
            let wanted = |p: &Port| p.segment == segment && (group || p.mac.is_none());
            if index != source && self.ports[index].as_deref().is_some_and(wanted) {
                self.deliver(index, out, gso_buffer);
                sent = true;
            }
        }
        sent
    }

    fn deliver(&mut self, index: usize, out: &mut Outgoing<'_>, gso_buffer: &mut Vec<u8>) {
        if let Some(port) = &mut self.ports[index] {
            port.deliver(out, gso_buffer);
        }
        self.mark(index);
    }

    /// Notes that the port has to be flushed.
    fn mark(&mut self, index: usize) {
        if let Some(port) = &mut self.ports[index] {
            if !port.dirty {
                port.dirty = true;
                self.dirty.push(index);
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
