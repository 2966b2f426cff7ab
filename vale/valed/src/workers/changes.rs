// SPDX-License-Identifier: Apache-2.0
//! Changes of ports, chains, mirrors and limits at all workers. None as a result: valed stops.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use vale_proto::{
    ChainId, ChainSet, FarEnd, MirrorId, MirrorSet, OffloadChange, Owner, PortId, PortLimit,
    PortPeers, SegmentLimit, SwitchName, Trace,
};

use super::{Handle, PortMap};
use crate::chain::{Definition, SetError};
use crate::device::capture::Capture;
use crate::device::{Absent, Device};
use crate::forwarder::AddFailure;
use crate::frame::nsh::Link;
use crate::mirror::{TooManyMirrors, budget};
use crate::policy::filter::Filter;
use crate::policy::guard::Guard;
use crate::policy::offload_rules::OffloadTable;
use crate::policy::token_bucket::PortLimits;
use crate::port::Port;
use crate::switch::{FarEndFound, Shared};

/// Why a table of rules stays as it is.
#[derive(Debug)]
pub enum TableRefusal {
    NoSuchPort,
    /// It is not the one that was to be replaced: it has this epoch, or 0 without a table.
    Changed(u64),
}

impl Handle {
    /// Adds a port at the worker with the fewest ports. The others know it first, so they know the
    /// sender of its first frame.
    pub fn add(&self, switch: &SwitchName, port: Box<Port>) -> Option<Result<(), AddFailure>> {
        self.add_port(&mut self.lock(), switch, port)
    }

    fn add_port(
        &self,
        port_map: &mut PortMap,
        switch: &SwitchName,
        mut port: Box<Port>,
    ) -> Option<Result<(), AddFailure>> {
        port.face.id = port_map.next_id();
        let shared = Shared::new(port_map.next_id());
        let worker = port_map.idlest(self.workers());
        let id = PortId {
            switch: switch.clone(),
            port: port.face.name.clone(),
        };
        let others = (0..self.workers()).filter(|n| *n != worker);
        for n in others.clone() {
            let proxy = Box::new(port.proxy(worker));
            if let Err(failure) = self.add_at(n, switch, proxy, &shared)? {
                return Some(Err(failure));
            }
        }
        let added = self.add_at(worker, switch, port, &shared)?;
        match added {
            Ok(()) => port_map.set(&id, Some(worker)),
            Err(_) => others.for_each(|n| drop(self.remove_at(n, &id))),
        }
        Some(added)
    }

    fn add_at(
        &self,
        worker: usize,
        switch: &SwitchName,
        port: Box<Port>,
        shared: &Shared,
    ) -> Option<Result<(), AddFailure>> {
        let (switch, shared) = (switch.clone(), shared.clone());
        let (added, _refused) = self.at(worker, move |forwarder| {
            let mut offered = Some(port);
            (forwarder.add(&switch, &mut offered, shared), offered)
        })?;
        Some(added)
    }

    fn remove_at(&self, worker: usize, id: &PortId) -> Option<Option<Box<Port>>> {
        let id = id.clone();
        self.at(worker, move |f| f.remove(&id.switch, &id.port))
    }

    /// Removes a port, if there is one, and closes it on this thread.
    pub fn remove(&self, id: &PortId) -> Option<()> {
        self.remove_port(&mut self.lock(), id)
    }

    /// The far end goes first. The port goes when the switch has delivered the frames that it took from
    /// there, or after [`super::Waits::changes`].
    fn remove_port(&self, port_map: &mut PortMap, id: &PortId) -> Option<()> {
        if port_map.of(id).is_none() {
            return Some(());
        }
        self.plug_port(port_map, id, Box::new(Absent))?;
        self.await_frames_of(id)?;
        port_map.set(id, None);
        (0..self.workers()).try_for_each(|n| self.remove_at(n, id).map(drop))
    }

    /// Runs a change at the worker of a port. False if there is no such port.
    fn at_port<R: Send + 'static>(
        &self,
        port_map: &PortMap,
        id: &PortId,
        change: impl FnOnce(&mut crate::forwarder::Forwarder, &PortId) -> R + Send + 'static,
    ) -> Option<Option<R>> {
        let Some(worker) = port_map.of(id) else {
            return Some(None);
        };
        let id = id.clone();
        Some(Some(self.at(worker, move |f| change(f, &id))?))
    }

    /// Gives a port of a Xen guest its rings, or none. False if there is no such port, or epoll refuses
    /// the rings.
    pub fn plug(&self, id: &PortId, device: Box<dyn Device>) -> Option<bool> {
        self.plug_port(&self.lock(), id, device)
    }

    fn plug_port(
        &self,
        port_map: &PortMap,
        id: &PortId,
        mut device: Box<dyn Device>,
    ) -> Option<bool> {
        let state = device.far_end();
        let plugged = self.at_port(port_map, id, move |f, id| {
            let plugged = f.plug(id, &mut device);
            (plugged, device)
        })?;
        let Some((true, _unused)) = plugged else {
            return Some(false);
        };
        let (worker, of) = (port_map.of(id), id.clone());
        self.each(move |n, f| {
            if worker != Some(n) {
                f.note_far_end(&of, state);
            }
        })?;
        Some(true)
    }

    /// The far ends of all ports.
    pub fn far_ends(&self) -> Option<Vec<FarEndFound>> {
        let found = self.each(|_, f| f.far_ends())?;
        Some(found.into_iter().flatten().collect())
    }

    /// Notes the state of a port's far end, if it is still the port with this number.
    pub fn set_far_end(&self, id: &PortId, number: u64, state: FarEnd) -> Option<()> {
        let _port_map = self.lock();
        let id = id.clone();
        self.each(move |_, f| f.set_far_end(&id, number, state))
            .map(drop)
    }

    /// As [`Self::plug`], if it is still the port with this number.
    pub fn plug_again(&self, id: &PortId, number: u64, device: Box<dyn Device>) -> Option<bool> {
        let port_map = self.lock();
        match self.at_port(&port_map, id, move |f, id| f.has_port(id, number))? {
            Some(true) => self.plug_port(&port_map, id, device),
            _ => Some(false),
        }
    }

    /// False if there is no such port.
    pub fn set_link(&self, id: &PortId, up: bool) -> Option<bool> {
        let _port_map = self.lock();
        let id = id.clone();
        let found = self.each(move |_, f| f.set_link(&id, up))?;
        Some(found.into_iter().all(|found| found))
    }

    /// False if there is no such port.
    pub fn set_guard(&self, id: &PortId, guard: &Guard) -> Option<bool> {
        let _port_map = self.lock();
        let mut all = true;
        for n in 0..self.workers() {
            let (of, mut guard) = (id.clone(), Box::new(guard.clone()));
            let (found, _old) = self.at(n, move |f| (f.set_guard(&of, &mut guard), guard))?;
            all &= found;
        }
        Some(all)
    }

    /// False if there is no such port of kind `vxlan`.
    pub fn set_peers(&self, peers: PortPeers) -> Option<bool> {
        let port_map = self.lock();
        let id = peers.id();
        let found = self.at_port(&port_map, &id, move |f, _| f.set_peers(&peers))?;
        Some(found.unwrap_or(false))
    }

    /// False if there is no such port.
    pub fn set_limits(&self, limit: &PortLimit) -> Option<bool> {
        let port_map = self.lock();
        let id = PortId {
            switch: limit.switch.clone(),
            port: limit.port.clone(),
        };
        let limits = PortLimits::new(&limit.limits);
        let found = self.at_port(&port_map, &id, move |f, id| f.set_limits(id, limits))?;
        Some(found.unwrap_or(false))
    }

    /// False if there is no such switch.
    pub fn set_segment_limits(&self, set: &SegmentLimit) -> Option<bool> {
        let _port_map = self.lock();
        let limits = Arc::new(PortLimits::new(&set.limits));
        let set = set.clone();
        let found = self.each(move |_, f| f.set_segment_limits(&set, Arc::clone(&limits)))?;
        Some(found.into_iter().all(|found| found))
    }

    /// Replaces the filter of a port. The others look into the packets of their ports before the port
    /// has the filter, and longer than it has it. False if there is no such port.
    pub fn set_filter(&self, id: &PortId, filter: Option<Box<Filter>>) -> Option<bool> {
        let port_map = self.lock();
        let is_filtered = filter.is_some();
        let note = |is_filtered| {
            let (worker, of) = (port_map.of(id), id.clone());
            self.each(move |n, f| {
                if worker != Some(n) {
                    f.note_filter(&of, is_filtered);
                }
            })
        };
        if is_filtered {
            note(true)?;
        }
        let set = self.at_port(&port_map, id, move |f, id| {
            let mut filter = filter;
            (f.set_filter(id, &mut filter), filter)
        })?;
        if !is_filtered {
            note(false)?;
        }
        Some(set.is_some_and(|(found, _old)| found))
    }

    /// Exchanges the table of an owner at a port, or removes it. The inner None: there is no such port.
    pub fn set_table(
        &self,
        id: &PortId,
        owner: Owner,
        table: Option<OffloadTable>,
        replaces: Option<u64>,
    ) -> Option<Result<OffloadChange, TableRefusal>> {
        let port_map = self.lock();
        let info = {
            let id = id.clone();
            move |table: &OffloadTable| table.info(&id.switch, &id.port, owner)
        };
        let now = table.as_ref().map(&info);
        let done = self.at_port(&port_map, id, move |f, id| {
            let epoch = f.epoch(id, owner);
            if replaces.is_some_and(|replaces| replaces != epoch) {
                return Err(TableRefusal::Changed(epoch));
            }
            let mut table = table;
            match f.swap_offload_table(id, owner, &mut table) {
                true => Ok(table),
                false => Err(TableRefusal::NoSuchPort),
            }
        })?;
        let old = done.unwrap_or(Err(TableRefusal::NoSuchPort));
        Some(old.map(|old| OffloadChange {
            before: old.as_ref().map(&info),
            now,
        }))
    }

    /// Enables or disables a table. False if the owner has no table.
    pub fn enable_offload_table(&self, id: &PortId, owner: Owner, enabled: bool) -> Option<bool> {
        let port_map = self.lock();
        let found = self.at_port(&port_map, id, move |f, id| {
            f.enable_offload_table(id, owner, enabled)
        })?;
        Some(found.unwrap_or(false))
    }

    /// Makes a chain, or replaces it. False if there is no such switch.
    pub fn set_chain(&self, set: &ChainSet) -> Option<Result<bool, SetError>> {
        let _port_map = self.lock();
        self.define(Definition::new(set.clone(), None))
    }

    fn define(&self, definition: Definition) -> Option<Result<bool, SetError>> {
        let results = self.each(move |_, f| f.set_chain(definition.clone()))?;
        results.into_iter().next()
    }

    /// Makes or replaces a chain whose path has a new port. No other change comes in between: a look
    /// at the chains would remove the port.
    pub fn set_path(
        &self,
        set: &ChainSet,
        (port, link): (Box<Port>, Arc<Link>),
    ) -> Option<Result<Result<bool, SetError>, AddFailure>> {
        let mut port_map = self.lock();
        match self.add_port(&mut port_map, &set.switch, port)? {
            Ok(()) => Some(Ok(self.define(Definition::new(set.clone(), Some(link)))?)),
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Judges what a chain claims, before anything changes for it.
    pub fn check_claims(&self, set: &ChainSet) -> Option<Result<(), SetError>> {
        let _port_map = self.lock();
        let set = set.clone();
        self.at(0, move |f| {
            let switch = f.switch_mut(&set.switch);
            switch.map_or(Ok(()), |switch| switch.check_claims(&set))
        })
    }

    /// The numbers and local addresses of a chain's paths; the inner None: there is no such switch.
    pub fn paths_of(&self, set: &ChainSet) -> Option<Option<Vec<(u32, IpAddr)>>> {
        let _port_map = self.lock();
        let (switch, chain) = (set.switch.clone(), set.chain.clone());
        self.at(0, move |f| {
            let switch = f.switch_mut(&switch)?;
            Some(switch.paths_of(&chain))
        })
    }

    /// Exchanges the states of chains with other hosts, and closes the ports that are left over. No
    /// worker uses a definition before all workers have received the states, and the other hosts get them
    /// last.
    pub fn tick_chains(&self) -> Option<()> {
        let mut port_map = self.lock();
        let (received, now) = (self.at(0, |f| f.received_states())?, Instant::now());
        self.each(move |_, f| f.receive_states(&received, now))?;
        let unused = self.each(move |_, f| f.tick_chains(now))?;
        self.at(0, |f| f.announce_chains())?;
        // Another worker may have ended the last definition of a path a tick later. No packet needs it.
        let unused = unused.into_iter().next().unwrap_or_default();
        unused
            .iter()
            .try_for_each(|id| self.remove_port(&mut port_map, id))
    }

    pub fn remove_chain(&self, id: &ChainId) -> Option<()> {
        let _port_map = self.lock();
        let id = id.clone();
        self.each(move |_, f| f.remove_chain(&id)).map(drop)
    }

    /// Makes a mirror, or replaces it. The inner None: there is no such switch.
    pub fn set_mirror(
        &self,
        set: &MirrorSet,
        capture: Option<&Capture>,
    ) -> Option<Option<Result<(), TooManyMirrors>>> {
        let _port_map = self.lock();
        let budget = budget(set);
        let mut results = Vec::new();
        for n in 0..self.workers() {
            let (set, capture, budget) = (set.clone(), capture.cloned(), Arc::clone(&budget));
            results.push(self.at(n, move |f| f.set_mirror(set, capture, budget))?);
        }
        results.into_iter().next()
    }

    pub fn remove_mirror(&self, id: &MirrorId) -> Option<()> {
        let _port_map = self.lock();
        let id = id.clone();
        self.each(move |_, f| f.remove_mirror(&id)).map(drop)
    }

    /// The way of a frame that would come from a port. The inner None: there is no such port.
    pub fn trace(&self, id: &PortId, frame: Vec<u8>) -> Option<Option<Trace>> {
        let port_map = self.lock();
        let part = self.at_port(&port_map, id, move |f, id| f.trace(id, &frame))?;
        let Some(mut part) = part.flatten() else {
            return Some(None);
        };
        for remote in std::mem::take(&mut part.remote).into_iter().rev() {
            let switch = id.switch.clone();
            let (remote, output) = self.at(remote.worker, move |f| {
                let output = f.trace_at(&switch, &remote);
                (remote, output)
            })?;
            part.insert(&remote, output);
        }
        Some(Some(part.trace))
    }
}
