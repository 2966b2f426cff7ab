// SPDX-License-Identifier: Apache-2.0
//! Changes and lists of one worker's switches. The handle of all workers runs them.
use std::sync::Arc;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use vale_proto::{
    ChainId, ChainInfo, Counters, FarEnd, MirrorId, MirrorInfo, MirrorSet, OffloadInfo, Owner,
    PortId, PortInfo, PortName, PortPeers, SegmentLimit, SwitchName,
};

use crate::chain::{Definition, ReceivedState, SetError};
use crate::device::capture::Capture;
use crate::device::{Absent, Device};
use crate::mirror::TooManyMirrors;
use crate::policy::filter::Filter;
use crate::policy::guard::Guard;
use crate::policy::offload_rules::OffloadTable;
use crate::policy::token_bucket::{Budget, PortLimits};
use crate::port::Port;
use crate::switch::trace::{PartialTrace, Remote};
use crate::switch::{AddError, FarEndFound, MAX_PORTS, Shared, Switch};

use super::{Forwarder, Load, MAX_SWITCHES};

impl Forwarder {
    pub fn switch_mut(&mut self, name: &SwitchName) -> Option<&mut Switch> {
        self.switches.iter_mut().flatten().find(|s| s.name == *name)
    }

    fn port_mut(&mut self, id: &PortId) -> Option<&mut Port> {
        self.switch_mut(&id.switch)?.port_mut(&id.port)
    }

    /// Adds a port, and its switch with the first one. A refused port stays with the caller, which
    /// closes it on a thread of its own: closing takes milliseconds.
    pub fn add(
        &mut self,
        name: &SwitchName,
        offered: &mut Option<Box<Port>>,
        shared: Shared,
    ) -> Result<(), AddFailure> {
        let Some(port) = offered.as_deref() else {
            return Err(AddFailure::Switch(AddError::Full));
        };
        if let Some((ifname, vlan)) = &port.face.interface {
            let of = |p: &Port| match &p.face.interface {
                Some((name, other)) => {
                    name == ifname && (vlan.is_none() || other.is_none() || vlan == other)
                }
                None => false,
            };
            if self.switches(None).flat_map(Switch::ports).any(of) {
                return Err(AddFailure::InterfaceTaken(ifname.clone()));
            }
        }
        let found = self
            .switches
            .iter()
            .position(|s| s.as_ref().is_some_and(|s| s.name == *name));
        let index = found
            .or_else(|| self.switches.iter().position(Option::is_none))
            .unwrap_or(self.switches.len());
        if index == MAX_SWITCHES {
            return Err(AddFailure::TooManySwitches);
        }
        self.switches
            .resize_with(self.switches.len().max(index + 1), || None);
        let switch =
            self.switches[index].get_or_insert_with(|| Switch::new(name.clone(), index, shared));
        let port_name = port.face.name.clone();
        let added = switch.add(offered).map(drop).map_err(AddFailure::Switch);
        let result = added.and_then(|()| self.watch(name, &port_name).map_err(AddFailure::Watch));
        if let Err(AddFailure::Watch(_)) = result {
            *offered = self.remove(name, &port_name);
        }
        self.drop_if_empty(name);
        result
    }

    /// Adds a port to the epoll set.
    fn watch(&mut self, name: &SwitchName, port: &PortName) -> Result<(), Errno> {
        let mut switches = self.switches.iter_mut().enumerate();
        let found = switches.find_map(|(index, switch)| {
            let switch = switch.as_mut().filter(|s| s.name == *name)?;
            switch.find(port).map(|found| (index, found))
        });
        let Some((switch, (index, port))) = found else {
            return Ok(());
        };
        let Some(fd) = port.device.event_fd() else {
            return Ok(());
        };
        let token = EventData::new_u64((switch * MAX_PORTS + index) as u64);
        epoll::add(&self.epoll, fd, token, EventFlags::IN | EventFlags::ET)
    }

    /// Gives a port another far end, or none. False if there is no such port, or epoll refuses the far
    /// end. The caller closes the unused device, which `rings` then holds, on a thread of its own.
    pub fn plug(&mut self, id: &PortId, rings: &mut Box<dyn Device>) -> bool {
        let Some(port) = self.port_mut(id) else {
            return false;
        };
        *rings = port.replace(std::mem::replace(rings, Box::new(Absent)));
        if let Some(fd) = rings.event_fd() {
            // The guest may hold a copy of its eventfd, so closing ours would not end the watch.
            let _ = epoll::delete(&self.epoll, fd);
        }
        self.resolve(&id.switch);
        self.watch(&id.switch, &id.port).is_ok()
    }

    /// The far ends of this worker's ports.
    pub fn far_ends(&self) -> Vec<FarEndFound> {
        let switches = self.switches.iter().flatten();
        switches.flat_map(Switch::far_ends).collect()
    }

    /// Notes the state of a port's far end.
    pub fn note_far_end(&mut self, id: &PortId, state: FarEnd) {
        let port = self.port_mut(id);
        if port.is_some_and(|port| port.face.note_far_end(state)) {
            self.resolve(&id.switch);
        }
    }

    /// The same, if it is the port with this number.
    pub fn set_far_end(&mut self, id: &PortId, number: u64, state: FarEnd) {
        if self.has_port(id, number) {
            self.note_far_end(id, state);
        }
    }

    /// True if the port has this number.
    pub fn has_port(&mut self, id: &PortId, number: u64) -> bool {
        self.port_mut(id).is_some_and(|port| port.face.id == number)
    }

    /// Lets the frames to a port wait at their sources, or ends that.
    pub fn set_moving(&mut self, id: &PortId, is_moving: bool) {
        if let Some(port) = self.port_mut(id) {
            port.face.is_moving = is_moving;
        }
    }

    /// True if frames of other workers wait here for the port, since it is full.
    pub fn has_blocked_for(&mut self, id: &PortId) -> bool {
        let Some(switch) = self.switch_mut(&id.switch) else {
            return false;
        };
        let index = switch.find(&id.port).map(|(index, _)| index);
        index.is_some_and(|index| switch.has_blocked_for(index))
    }

    /// True if frames from the port wait here.
    pub fn has_blocked_from(&mut self, id: &PortId) -> bool {
        self.port_mut(id)
            .is_some_and(|port| !port.blocked.is_empty())
    }

    /// Detaches a port, for another worker.
    pub fn detach_port(&mut self, id: &PortId, worker: usize) -> Option<Box<Port>> {
        let switch = self.switches.iter_mut().flatten();
        let switch = switch.into_iter().find(|s| s.name == id.switch)?;
        let (index, _) = switch.find(&id.port)?;
        let port = switch.detach_port(index, worker)?;
        if let Some(fd) = port.device.event_fd() {
            let _ = epoll::delete(&self.epoll, fd);
        }
        Some(port)
    }

    /// Attaches a port. Returns the proxy, which the caller drops.
    pub fn attach_port(&mut self, id: &PortId, port: Box<Port>) -> Option<Box<Port>> {
        let switch = self.switch_mut(&id.switch)?;
        let (index, _) = switch.find(&id.port)?;
        let proxy = switch.attach_port(index, port);
        if let Err(e) = self.watch(&id.switch, &id.port) {
            // The worker finds its frames only while it is awake.
            log::error!("{}:{}: epoll: {e}", id.switch, id.port);
        }
        proxy
    }

    /// Notes the worker of a port.
    pub fn note_worker(&mut self, id: &PortId, worker: usize) {
        if let Some(port) = self.port_mut(id) {
            port.remote_worker = Some(worker);
        }
    }

    /// Removes a port, and its switch with the last one. The caller closes the port on a thread of
    /// its own.
    #[must_use = "a port closed on the forwarding thread stops all traffic for milliseconds"]
    pub fn remove(&mut self, name: &SwitchName, port: &PortName) -> Option<Box<Port>> {
        let port = self.switch_mut(name)?.remove(port)?;
        self.drop_if_empty(name);
        Some(port)
    }

    fn drop_if_empty(&mut self, name: &SwitchName) {
        for slot in &mut self.switches {
            if slot
                .as_ref()
                .is_some_and(|s| s.name == *name && s.ports().next().is_none())
            {
                *slot = None;
            }
        }
    }

    /// False if there is no such port.
    pub fn set_link(&mut self, id: &PortId, up: bool) -> bool {
        let found = self.port_mut(id).map(|p| p.face.link_up = up).is_some();
        self.resolve(&id.switch);
        found
    }

    /// Exchanges the guard of a port for another, which the caller drops. False if there is no such
    /// port.
    pub fn set_guard(&mut self, port: &PortId, guard: &mut Guard) -> bool {
        let switch = self.switch_mut(&port.switch);
        switch.is_some_and(|switch| switch.set_guard(&port.port, guard))
    }

    /// False if there is no such port of kind `vxlan`.
    pub fn set_peers(&mut self, peers: &PortPeers) -> bool {
        let port = self.port_mut(&peers.id());
        port.is_some_and(|port| port.set_peers(&peers.peers))
    }

    /// False if there is no such port.
    pub fn set_limits(&mut self, id: &PortId, limits: PortLimits) -> bool {
        let switch = self.switch_mut(&id.switch);
        switch.is_some_and(|s| s.set_limits(&id.port, limits))
    }

    /// False if there is no such switch.
    pub fn set_segment_limits(&mut self, of: &SegmentLimit, limits: Arc<PortLimits>) -> bool {
        let switch = self.switch_mut(&of.switch);
        let set = switch.map(|switch| switch.set_segment_limits(of.segment, limits));
        set.is_some()
    }

    /// The limits of the segments of one switch, or of all.
    pub fn segment_limits(&self, name: Option<&SwitchName>) -> Vec<SegmentLimit> {
        self.switches(name)
            .flat_map(Switch::segment_limits)
            .collect()
    }

    /// Makes a mirror, or replaces it. None if there is no such switch.
    pub fn set_mirror(
        &mut self,
        set: MirrorSet,
        capture: Option<Capture>,
        budget: Arc<Budget>,
    ) -> Option<Result<(), TooManyMirrors>> {
        let switch = self.switch_mut(&set.switch)?;
        Some(switch.set_mirror(set, capture, budget))
    }

    pub fn remove_mirror(&mut self, id: &MirrorId) {
        if let Some(switch) = self.switch_mut(&id.switch) {
            switch.remove_mirror(&id.mirror);
        }
    }

    /// The mirrors of one switch, or of all, with the counts of this worker.
    pub fn mirrors(&self, name: Option<&SwitchName>) -> Vec<MirrorInfo> {
        self.switches(name).flat_map(Switch::mirrors).collect()
    }

    /// Gives a port the filter, and leaves its old one in `filter`, which the caller drops. False if
    /// there is no such port.
    pub fn set_filter(&mut self, port: &PortId, filter: &mut Option<Box<Filter>>) -> bool {
        let switch = self.switch_mut(&port.switch);
        switch.is_some_and(|s| s.set_filter(&port.port, filter))
    }

    /// Notes whether the worker of a port has a filter for it.
    pub fn note_filter(&mut self, port: &PortId, is_filtered: bool) {
        if let Some(switch) = self.switch_mut(&port.switch) {
            switch.note_filter(&port.port, is_filtered);
        }
    }

    /// Exchanges the table of an owner at a port for `new`, which gets the old one. False if there is no
    /// such port.
    pub fn swap_offload_table(
        &mut self,
        id: &PortId,
        owner: Owner,
        new: &mut Option<OffloadTable>,
    ) -> bool {
        let switch = self.switch_mut(&id.switch);
        switch.is_some_and(|s| s.swap_offload_table(&id.port, owner, new))
    }

    /// The epoch of the table of an owner at a port, or 0.
    pub fn epoch(&mut self, id: &PortId, owner: Owner) -> u64 {
        let port = self.port_mut(id);
        let tables = port.and_then(|port| port.offload_tables.as_deref_mut());
        tables.map_or(0, |tables| tables.epoch(owner))
    }

    /// Enables or disables a table. False if the owner has no table.
    pub fn enable_offload_table(&mut self, id: &PortId, owner: Owner, enabled: bool) -> bool {
        let switch = self.switch_mut(&id.switch);
        switch.is_some_and(|s| s.enable_offload_table(&id.port, owner, enabled))
    }

    /// The tables of one switch, or of all, at the ports of this worker.
    pub fn tables(&self, name: Option<&SwitchName>) -> Vec<OffloadInfo> {
        self.switches(name).flat_map(Switch::tables).collect()
    }

    /// The way of a frame that would come from a port. None if there is no such port.
    pub fn trace(&self, port: &PortId, frame: &[u8]) -> Option<PartialTrace> {
        let switch = self.switches(Some(&port.switch)).next();
        switch.and_then(|s| s.trace(&port.port, frame, self.now))
    }

    /// The stages of a traced frame at a port of this worker.
    pub fn trace_at(&self, switch: &SwitchName, remote: &Remote) -> PartialTrace {
        let switch = self.switches(Some(switch)).next();
        switch.map_or_else(PartialTrace::default, |s| {
            s.trace_at(remote.port, &remote.traced)
        })
    }

    fn resolve(&mut self, name: &SwitchName) {
        if let Some(switch) = self.switch_mut(name) {
            switch.resolve();
        }
    }

    /// Makes a chain, or replaces it. False if there is no such switch.
    pub fn set_chain(&mut self, mut definition: Definition) -> Result<bool, SetError> {
        definition.worker = self.worker;
        match self.switch_mut(&definition.set.switch) {
            Some(switch) => switch.set_chain(definition).map(|()| true),
            None => Ok(false),
        }
    }

    /// The states of chains that came since from other hosts.
    pub fn received_states(&self) -> Vec<ReceivedState> {
        self.switches(None)
            .flat_map(Switch::received_states)
            .collect()
    }

    /// Tells other hosts the states of chains.
    pub fn announce_chains(&self) {
        self.switches(None).for_each(Switch::announce_chains);
    }

    /// Takes the states of chains at other hosts.
    pub fn receive_states(&mut self, received: &[ReceivedState], now: Instant) {
        let switches = self.switches.iter_mut().flatten();
        switches.for_each(|switch| switch.receive_states(received, now));
    }

    /// Changes chains as the states say. Returns the ports that no path has any more.
    pub fn tick_chains(&mut self, now: Instant) -> Vec<PortId> {
        let mut unused = Vec::new();
        for switch in self.switches.iter_mut().flatten() {
            let ports = switch.tick_chains(now).into_iter();
            let name = &switch.name;
            unused.extend(ports.map(|port| PortId {
                switch: name.clone(),
                port,
            }));
        }
        unused
    }

    pub fn remove_chain(&mut self, id: &ChainId) {
        if let Some(switch) = self.switch_mut(&id.switch) {
            switch.remove_chain(&id.chain);
        }
    }

    /// The chains of one switch, or of all.
    pub fn chains(&self, name: Option<&SwitchName>) -> Vec<ChainInfo> {
        self.switches(name).flat_map(Switch::chains).collect()
    }

    /// The ports of this worker, each with its place.
    pub fn list(&self, name: Option<&SwitchName>) -> Vec<((usize, usize), PortInfo)> {
        let switches = self.switches.iter().enumerate();
        let switches = switches.filter_map(|(n, switch)| Some((n, switch.as_ref()?)));
        let wanted = switches.filter(|(_, s)| name.is_none_or(|name| s.name == *name));
        wanted
            .flat_map(|(n, s)| s.local_ports().map(move |(index, port)| ((n, index), port)))
            .collect()
    }

    /// The counts of this worker about ports of others.
    pub fn remote_counters(&self) -> Vec<(PortId, Counters)> {
        let counts = |s: &Switch| {
            let switch = s.name.clone();
            s.remote_counters()
                .map(|(port, counters)| {
                    let (switch, port) = (switch.clone(), port.clone());
                    (PortId { switch, port }, counters)
                })
                .collect::<Vec<_>>()
        };
        self.switches(None).flat_map(counts).collect()
    }

    /// One switch, or all.
    pub fn switches(&self, name: Option<&SwitchName>) -> impl Iterator<Item = &Switch> {
        let switches = self.switches.iter().flatten();
        switches.filter(move |s| name.is_none_or(|n| s.name == *n))
    }

    /// The work so far.
    pub fn load(&self) -> Load {
        let peers = &self.scratch.buffers.peers;
        Load {
            handoffs: peers.handoffs,
            lost: peers.lost,
            ..self.load
        }
    }
}

/// Why a port cannot be added.
#[derive(Debug)]
pub enum AddFailure {
    InterfaceTaken(String),
    TooManySwitches,
    Switch(AddError),
    Watch(Errno),
}
