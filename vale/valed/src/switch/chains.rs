// SPDX-License-Identifier: Apache-2.0
//! The switch's side of chains: their definitions, their paths and the steps of packets.
use std::net::IpAddr;
use std::time::Instant;

use vale_proto::{ChainInfo, ChainName, ChainSet, PortName};

use super::{Switch, Target};
use crate::chain::{Definition, Next, ReceivedState, SetError, Steering};
use crate::clock::Nanoseconds;
use crate::device::Buffers;
use crate::frame::headers::Ethernet;
use crate::frame::tx_frame::TxFrame;
use crate::policy::guard::Guard;
use crate::port::{Counter, Port};

impl Switch {
    /// Makes a chain, or replaces it. A new path has a link, whose port the switch has already.
    pub fn set_chain(&mut self, definition: Definition) -> Result<(), SetError> {
        let done = self.chains.set(definition, &self.ports);
        self.set_path_peers();
        done
    }

    /// Judges what a chain claims by the guards of its ports.
    pub fn check_claims(&self, set: &ChainSet) -> Result<(), SetError> {
        self.chains.check_claims(set, &self.ports)
    }

    /// Exchanges the guard of a port for another. A chain learns again what it translates by the new one.
    /// False if there is no such port.
    pub fn set_guard(&mut self, name: &PortName, guard: &mut Guard) -> bool {
        let Some((index, port)) = self.find(name) else {
            return false;
        };
        if port.face.set_guard(guard) {
            self.chains.forget_translated(index);
        }
        true
    }

    /// The numbers and local addresses of a chain's paths.
    pub fn paths_of(&self, name: &ChainName) -> Vec<(u32, IpAddr)> {
        self.chains.paths_of(name)
    }

    /// The states received since from the other hosts of chains.
    pub fn received_states(&self) -> Vec<ReceivedState> {
        self.chains.received_states()
    }

    /// Announces this host's states to the other hosts of chains.
    pub fn announce_chains(&self) {
        self.chains.announce();
    }

    /// Takes the states of the other hosts.
    pub fn receive_states(&mut self, received: &[ReceivedState], now: Instant) {
        self.chains.receive_states(received, &self.ports, now);
    }

    /// Changes chains as the states say. Returns the ports that no path has any more.
    pub fn tick_chains(&mut self, now: Instant) -> Vec<PortName> {
        if self.chains.tick(&self.ports, now) {
            self.set_path_peers();
        }
        let used: Vec<_> = self.chains.path_ports().collect();
        let paths = self.ports().filter(|p| p.face.is_path());
        let unused = paths.filter(|p| !used.contains(&p.face.name));
        unused.map(|p| p.face.name.clone()).collect()
    }

    /// Tells the ports of paths which hosts may send.
    fn set_path_peers(&mut self) {
        for port in self.ports.iter_mut().flatten() {
            if port.face.is_path() {
                port.device.set_peers(&self.chains.peers(&port.face.name));
            }
        }
    }

    pub fn remove_chain(&mut self, name: &ChainName) {
        self.chains.remove(name, &self.ports);
    }

    pub fn chains(&self) -> impl Iterator<Item = ChainInfo> {
        self.chains.infos()
    }

    pub(super) fn take_step(
        &mut self,
        step: Steering,
        source: usize,
        ethernet: &Ethernet,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) -> Result<(), Counter> {
        self.chains.count(step, out.len(), out.count());
        self.chains.note(step, ethernet.source);
        match step.next {
            Next::Hop {
                port, addressed, ..
            } => {
                let mac = self.ports[port].as_ref().and_then(|p| p.face.mac);
                if let (true, Some(mac)) = (addressed, mac) {
                    out.head[..mac.0.len()].copy_from_slice(&mac.0);
                }
                self.deliver_or_block(port, out, buffers);
            }
            Next::Exit => {
                let to = Target::of(self.chains.segment(step), ethernet);
                return self.send(source, to, Some(step), out, buffers);
            }
            Next::Remote { port, host, label } => {
                out.label = Some((host, label));
                self.deliver_or_block(port, out, buffers);
            }
            Next::Blocked { .. } => (),
        }
        Ok(())
    }

    /// True for a packet of a hop that would leave by the uplink behind which its source station is, or may
    /// be. The hosts there would learn the station at this host.
    pub(super) fn goes_back(
        &self,
        step: Steering,
        source: usize,
        ethernet: &Ethernet,
        now: Nanoseconds,
    ) -> bool {
        let port = self.ports[source].as_deref();
        let is_own = || port.is_some_and(|port| port.face.guard.has_mac(ethernet.source));
        let segment = self.chains.segment(step);
        let is_here = |mac| self.lookup.find(segment, mac);
        if step.enters || is_here(ethernet.source).is_some() || is_own() {
            return false;
        }
        let uplink = self.station(segment, ethernet.source, now);
        let to = is_here(ethernet.destination)
            .or_else(|| self.station(segment, ethernet.destination, now));
        let learns = |port: &Port| port.face.segment == segment && port.face.learns;
        match (uplink, to) {
            // A packet to an unknown station would go to all uplinks.
            (_, None) => uplink.is_some() || self.ports().any(learns),
            (Some(uplink), Some(to)) => uplink == to,
            // The source is silent for long, or has never sent: it may be behind any uplink.
            (None, Some(to)) => self.ports[to].as_deref().is_some_and(learns),
        }
    }
}
