// SPDX-License-Identifier: Apache-2.0
//! One named switch: takes frames from its ports, judges them, and delivers them.
mod backpressure;
mod chains;
mod circles;
mod drr;
mod handoff;
mod limits;
mod mirrors;
mod offload_rules;
pub mod trace;
mod vector;

use std::sync::Arc;

use vale_proto::{Counters, FarEnd, Mac, PortId, PortInfo, PortName, Side, SwitchName};

use crate::chain::{Chains, Steering};
use crate::clock::Nanoseconds;
use crate::device::{Buffers, Burst, Device, Reopening};
use crate::frame::HEAD;
use crate::frame::headers::Ethernet;
use crate::frame::key::FilterKey;
use crate::frame::nsh::Label;
use crate::frame::packet;
use crate::frame::tx_frame::TxFrame;
use crate::mesh::GenIndex;
use crate::mirror::Mirrors;
use crate::policy::filter::Filter;
use crate::port::blocked::Patience;
use crate::port::{Counter, Delivery, MALFORMED, Port};
use crate::stations::lookup::StaticTable;
use crate::stations::mac_learning::{MacLearning, SharedLearning};
use circles::Lines;
use drr::{DeficitRoundRobin, Taken};
use limits::SegmentLimits;

/// Most ports of a switch.
pub const MAX_PORTS: usize = 256;

/// Private memory of the forwarding thread, shared by all ports.
#[derive(Default)]
pub struct Scratch {
    burst: Burst,
    pub buffers: Buffers,
    vector: vector::Vector,
    /// The frame as filters see it.
    seen: FilterKey,
    /// The time of the round.
    pub now: Nanoseconds,
    pub patience: Patience,
}

/// Why a port cannot be added.
#[derive(Debug, PartialEq, Eq)]
pub enum AddError {
    Full,
    NameTaken,
    MacTaken(Mac),
}

/// The far end of the port with a number.
pub struct FarEndFound {
    pub id: PortId,
    pub number: u64,
    /// The state that the switch has noted.
    pub noted: FarEnd,
    pub now: FarEndNow,
}

/// The present state of a far end.
pub enum FarEndNow {
    Is(FarEnd),
    /// Another thread asks the kernel.
    Interface(Reopening),
}

/// The outcome of the stages that judge a frame.
struct Verdict {
    ethernet: Ethernet,
    step: Option<Steering>,
    /// Bytes at the start of the frame that no offload may change.
    checked_len: usize,
    /// Bytes at the start of the frame on which the verdict depends.
    inspected_len: usize,
}

/// The destination of a frame.
#[derive(Clone, Copy)]
struct Target {
    segment: u32,
    mac: Mac,
    group: bool,
}

impl Target {
    fn of(segment: u32, ethernet: &Ethernet) -> Self {
        let mac = ethernet.destination;
        let group = mac.is_multicast();
        Self {
            segment,
            mac,
            group,
        }
    }
}

/// The part of a switch that all workers share, apart from limits of segments.
#[derive(Clone, Default)]
pub struct Shared {
    /// Its number, different from those of all other switches and ports.
    pub id: u64,
    learned: Arc<MacLearning>,
    heard: Arc<SharedLearning>,
}

impl Shared {
    pub fn new(id: u64) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }
}

/// A switch as one worker sees it. Each worker has all its ports, most of them without far end.
pub struct Switch {
    pub name: SwitchName,
    /// The place of the switch at all workers.
    at: GenIndex,
    ports: Vec<Option<Box<Port>>>,
    lookup: StaticTable,
    /// The stations behind uplinks.
    learned: Arc<MacLearning>,
    /// Stations that no port has and no uplink leads to, such as those behind a guest with two ports.
    heard: Arc<SharedLearning>,
    lines: Lines,
    chains: Chains,
    mirrors: Mirrors,
    segment_limits: SegmentLimits,
    /// A port has a filter.
    filters: bool,
    /// Indexes of ports to be flushed.
    dirty: Vec<usize>,
    drr: DeficitRoundRobin,
    /// The copies of flooded frames since the last turn began, but for the first of each frame.
    copied: Taken,
}

impl Switch {
    pub fn new(name: SwitchName, index: usize, shared: Shared) -> Self {
        let Shared { id, learned, heard } = shared;
        Self {
            name,
            at: GenIndex { index, id },
            ports: Vec::new(),
            lookup: StaticTable::default(),
            learned,
            heard,
            lines: Lines::default(),
            chains: Chains::default(),
            mirrors: Mirrors::default(),
            segment_limits: SegmentLimits::default(),
            filters: false,
            dirty: Vec::new(),
            drr: DeficitRoundRobin::default(),
            copied: Taken::default(),
        }
    }

    /// Returns the index of the port.
    pub fn add(&mut self, offered: &mut Option<Box<Port>>) -> Result<usize, AddError> {
        let Some(port) = offered.as_deref() else {
            return Err(AddError::Full);
        };
        if self.ports().any(|p| p.face.name == port.face.name) {
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
        if let Some(mac) = port.face.mac {
            if !self.lookup.insert(port.face.segment, mac, index) {
                return Err(AddError::MacTaken(mac));
            }
        }
        self.ports
            .resize_with(self.ports.len().max(index + 1), || None);
        self.filters |= port.face.is_filtered;
        self.drr.add(index, port.face.owner);
        self.ports[index] = offered.take();
        self.resolve();
        Ok(index)
    }

    pub fn remove(&mut self, name: &PortName) -> Option<Box<Port>> {
        let is_it = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.face.name == *name);
        let index = self.ports.iter().position(is_it)?;
        let port = self.ports[index].take()?;
        self.drr.remove(index);
        let others = self.ports.iter_mut().flatten();
        others.for_each(|p| p.forget(index));
        self.learned.forget(index);
        self.heard.forget(index);
        if let Some(mac) = port.face.mac {
            self.lookup.remove(port.face.segment, mac);
        }
        self.resolve();
        Some(port)
    }

    /// A port and its index.
    pub fn find(&mut self, name: &PortName) -> Option<(usize, &mut Port)> {
        let mut ports = self.ports.iter_mut().enumerate();
        ports.find_map(|(index, port)| {
            Some((
                index,
                &mut **port.as_mut().filter(|p| p.face.name == *name)?,
            ))
        })
    }

    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter().flatten().map(|p| &**p)
    }

    pub fn port_mut(&mut self, name: &PortName) -> Option<&mut Port> {
        self.find(name).map(|(_, port)| port)
    }

    /// Replaces the filter of a port by one with other rules, and leaves the old one in `filter`.
    /// False if there is no such port.
    pub fn set_filter(&mut self, name: &PortName, filter: &mut Option<Box<Filter>>) -> bool {
        let port = self.port_mut(name);
        let found = port.map(|port| match (&port.filter, &*filter) {
            (Some(old), Some(new)) if old.has_rules_of(new) => (),
            _ => std::mem::swap(&mut port.filter, filter),
        });
        let found = found.is_some();
        let has_filter = self.port_mut(name).is_some_and(|p| p.filter.is_some());
        self.note_filter(name, has_filter);
        found
    }

    /// Notes whether the worker of a port has a filter for it.
    pub fn note_filter(&mut self, name: &PortName, is_filtered: bool) {
        if let Some(port) = self.port_mut(name) {
            port.face.is_filtered = is_filtered;
        }
        let filters = self.ports().any(|p| p.face.is_filtered);
        self.filters = filters;
    }

    /// Finds the ports of all chains and mirrors again.
    pub fn resolve(&mut self) {
        self.chains.resolve(&self.ports);
        self.mirrors.resolve(&self.ports);
    }

    /// The ports of this worker, by their indices.
    pub fn local_ports(&self) -> impl Iterator<Item = (usize, PortInfo)> {
        let ports = self.ports.iter().enumerate();
        let ports = ports.filter_map(|(index, port)| Some((index, port.as_ref()?)));
        let here = ports.filter(|(_, port)| port.remote_worker.is_none());
        here.map(|(index, port)| {
            let mirrors = self.mirrors.of(&port.face.name);
            let info = port.info(&self.name);
            (index, PortInfo { mirrors, ..info })
        })
    }

    /// The far ends of this worker's ports.
    pub fn far_ends(&self) -> impl Iterator<Item = FarEndFound> {
        let here = self.ports().filter(|port| port.remote_worker.is_none());
        here.map(|port| FarEndFound {
            id: PortId {
                switch: self.name.clone(),
                port: port.face.name.clone(),
            },
            number: port.face.id,
            noted: port.face.far_end,
            now: match port.device.reopening() {
                Some(interface) => FarEndNow::Interface(interface),
                None => FarEndNow::Is(port.device.far_end()),
            },
        })
    }

    /// The counts of this worker about ports of others.
    pub fn remote_counters(&self) -> impl Iterator<Item = (&PortName, Counters)> {
        let ports = self.ports().filter(|port| port.remote_worker.is_some());
        ports.map(|port| (&port.face.name, port.counters))
    }

    #[cfg(test)]
    pub fn infos(&self) -> impl Iterator<Item = PortInfo> {
        self.local_ports().map(|(_, info)| info)
    }

    /// Takes an event of the port at `index`.
    pub fn event(&mut self, index: usize) {
        if let Some(Some(port)) = self.ports.get_mut(index) {
            port.counters.kicks_received += 1;
            port.device.take_event();
        }
    }

    /// Takes a burst from each port that has its turn. True if any frame moved. [`Self::flush`] ends
    /// the round.
    pub fn serve_ports(&mut self, scratch: &mut Scratch) -> bool {
        scratch.burst.now = scratch.now;
        let (mut drr, mut released) = (std::mem::take(&mut self.drr), false);
        let moved = drr.round(|index| self.serve(index, scratch, &mut released));
        self.drr = drr;
        moved | released
    }

    #[cfg(test)]
    #[inline(never)]
    pub fn round(&mut self, scratch: &mut Scratch) -> bool {
        let moved = self.serve_ports(scratch);
        self.release_taken();
        self.flush();
        moved
    }

    /// Returns the slots of all senders, before any receiver or worker sees a frame. If valed is
    /// killed in between, its successor forwards no frame twice (adr/0050).
    pub fn release_taken(&mut self) {
        for n in 0..self.dirty.len() {
            if let Some(port) = &mut self.ports[self.dirty[n]] {
                port.release();
            }
        }
    }

    /// Ends a round: shows the receivers their frames. True if one of them was full.
    pub fn flush(&mut self) -> bool {
        let mut full = false;
        for n in 0..self.dirty.len() {
            if let Some(port) = &mut self.ports[self.dirty[n]] {
                full |= port.flush();
            }
        }
        self.dirty.clear();
        full
    }

    /// Takes a burst from a port that has its turn, or delivers frames that wait for their receivers.
    fn serve(&mut self, source: usize, scratch: &mut Scratch, released: &mut bool) -> Taken {
        let Some(port) = &mut self.ports[source] else {
            return Taken::default();
        };
        if !port.blocked.is_empty() {
            *released |= self.release(source, scratch);
            return Taken::default();
        }
        if port.remote_worker.is_some() || port.throttled_by_remote() {
            return Taken::default();
        }
        let before = port.counters.rx_bytes;
        self.copied = Taken::default();
        let frames = self.take_burst(source, scratch);
        let after = self.ports[source].as_ref().map(|p| p.counters.rx_bytes);
        Taken {
            frames: frames + self.copied.frames,
            bytes: after.unwrap_or(before) - before + self.copied.bytes,
        }
    }

    /// Takes a burst from one port, and returns the number of its frames. The device leaves its port
    /// meanwhile: no frame returns to its source.
    fn take_burst(&mut self, source: usize, scratch: &mut Scratch) -> usize {
        let Some(port) = &mut self.ports[source] else {
            return 0;
        };
        scratch.burst.plain = 0;
        let count = port.device.fetch(&mut scratch.burst);
        match count {
            0 => port.counters.polls_empty += 1,
            _ => port.counters.bursts += 1,
        }
        if self.chains.is_due() {
            self.chains.promote_due(&self.ports);
        }
        if count == 0 {
            // The flush gives back the descriptors that a ring without a good frame passed over.
            self.mark(source);
            return 0;
        }
        let Some(port) = &mut self.ports[source] else {
            return 0;
        };
        let device = port.take_device();
        self.forward_burst(source, &*device, count, scratch);
        if let Some(port) = &mut self.ports[source] {
            port.device = device;
        }
        // The flush also gives back the descriptors that the ring passed over.
        self.mark(source);
        count
    }

    fn drop_frame(&mut self, source: usize, dropped: Counter) {
        if let Some(port) = &mut self.ports[source] {
            *dropped(&mut port.counters) += 1;
        }
    }

    /// Judges frame `n` of a burst and sends it on.
    fn forward(
        &mut self,
        source: usize,
        device: &dyn Device,
        n: usize,
        scratch: &mut Scratch,
    ) -> Result<(), Counter> {
        let Scratch {
            burst,
            buffers,
            seen,
            now,
            ..
        } = scratch;
        if let Some(port) = &mut self.ports[source] {
            port.counters.rx_packets += 1;
        }
        let label = device.label(burst, n);
        let by_head = device
            .head(burst, n)
            .map(|bytes| self.verdict(source, label, bytes, seen));
        let by_head = by_head.and_then(Result::ok);
        let (taken, verdict) = match by_head.filter(|v| v.inspected_len <= HEAD) {
            Some(verdict) => (device.taken(burst, n).ok_or(MALFORMED)?, Ok(verdict)),
            None => {
                let taken = device.taken_whole(burst, n).ok_or(MALFORMED)?;
                let verdict = self.verdict(source, label, taken.bytes, seen);
                (taken, verdict)
            }
        };
        if let Some(port) = &mut self.ports[source] {
            port.counters.rx_bytes += taken.len() as u64;
        }
        let Verdict {
            ethernet,
            step,
            checked_len,
            ..
        } = verdict?;
        let seen = &*seen;
        let mut out = TxFrame::new(taken, ethernet.payload, checked_len).ok_or(MALFORMED)?;
        (out.seen, out.now, out.from) = (seen, *now, source);
        self.enter(source, &ethernet, step, &mut out, buffers)
    }

    /// Admits a judged frame from a port, and sends it on.
    fn enter(
        &mut self,
        source: usize,
        ethernet: &Ethernet,
        step: Option<Steering>,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) -> Result<(), Counter> {
        let mut is_own = false;
        if let Some(port) = &mut self.ports[source] {
            port.enters(out)?;
            self.segment_limits.enters(port.face.segment, out)?;
            is_own = port.face.mac == Some(ethernet.source);
        }
        // The lookup has the port's own address.
        if !is_own || step.is_some_and(|step| !step.enters) {
            self.check_circle(source, ethernet, step, out)?;
        }
        if !self.mirrors.is_empty() {
            self.mirror(Side::Rx, source, out, buffers);
        }
        match step {
            Some(step) => self.take_step(step, source, ethernet, out, buffers),
            None if self.chains.isolates(source) => Err(|c| &mut c.dropped_unknown),
            None => {
                let segment = self.ports[source].as_ref().map_or(0, |p| p.face.segment);
                let to = Target::of(segment, ethernet);
                self.send(source, to, None, out, buffers)
            }
        }
    }

    /// The port behind which a station of the segment was seen last.
    fn station(&self, segment: u32, mac: Mac, now: Nanoseconds) -> Option<usize> {
        let index = self.learned.find(segment, mac, now)?;
        let port = self.ports.get(index)?.as_ref()?;
        let is_there = port.face.learns || port.face.has_virtual_router(mac);
        (port.face.segment == segment && is_there).then_some(index)
    }

    /// Judges the bytes of a frame. The verdict of the first [`HEAD`] bytes holds for the frame if it
    /// rests on no others.
    fn verdict(
        &self,
        source: usize,
        label: Option<Label>,
        bytes: &[u8],
        seen: &mut FilterKey,
    ) -> Result<Verdict, Counter> {
        let port = self.ports[source].as_deref().ok_or(MALFORMED)?;
        let ethernet = Ethernet::parse(bytes).ok_or(MALFORMED)?;
        let (step, classified) = match self.chains.is_empty() {
            true => (None, 0),
            false => {
                let chains = &self.chains;
                let step = chains.step(&self.ports, source, label, &ethernet, bytes);
                (step, packet::transport_end(&ethernet, bytes))
            }
        };
        let filtered = match self.filters {
            true => {
                *seen = FilterKey::parse(&ethernet, bytes);
                seen.inspected_len(&ethernet, bytes)
            }
            false => 0,
        };
        let relayed =
            step.and_then(|step| self.chains.relayed(step, &self.ports, source, &ethernet));
        let checked_len = port.face.judge(&ethernet, bytes, relayed)?;
        Ok(Verdict {
            ethernet,
            step,
            checked_len,
            inspected_len: checked_len.max(classified).max(filtered),
        })
    }

    /// Sends a judged frame to its destination. One that has passed a chain, by `step`, enters none of its
    /// hops.
    fn send(
        &mut self,
        source: usize,
        to: Target,
        step: Option<Steering>,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) -> Result<(), Counter> {
        let Target {
            segment,
            mac,
            group,
        } = to;
        let owner = self.lookup.find(segment, mac);
        let found = owner.or_else(|| self.station(segment, mac, out.now));
        if let Some(index) = found.filter(|index| !group && *index != source) {
            if let Some(step) = step.filter(|step| self.chains.is_inside(*step, index)) {
                return Err(self.cut_step(step, source, Some(index), out.count()));
            }
            self.deliver_or_block(index, out, buffers);
            return Ok(());
        }
        let known = found.is_some();
        if !known && !self.may_flood(source, to, out) {
            return Err(|c| &mut c.dropped_flood);
        }
        let sent = !known && self.flood(source, to, step, out, buffers);
        match sent || group {
            true => Ok(()),
            false => Err(|c| &mut c.dropped_unknown),
        }
    }

    /// Delivers to the other ports of the segment. A frame to one address goes to the open ports
    /// only: the destination may be behind them.
    fn flood(
        &mut self,
        source: usize,
        to: Target,
        step: Option<Steering>,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) -> bool {
        let Target { segment, group, .. } = to;
        let (mut sent, mut workers) = (0, 0u64);
        for index in 0..self.ports.len() {
            let is_inside = step.is_some_and(|step| self.chains.is_inside(step, index));
            if is_inside || !self.floods(index, source, segment, group) {
                continue;
            }
            sent += 1;
            match self.ports[index].as_deref() {
                Some(port) if port.face.is_moving => self.deliver_or_block(index, out, buffers),
                // Another worker does not know the chain of the frame.
                Some(Port {
                    remote_worker: Some(worker),
                    ..
                }) if step.is_none() => workers |= 1 << worker,
                _ => self.deliver(index, out, buffers),
            }
        }
        if workers != 0 {
            self.flood_remote(workers, segment, group, out, buffers);
        }
        let copies = sent.max(1) - 1;
        self.copied.frames += copies;
        self.copied.bytes += (copies * out.len()) as u64;
        sent > 0
    }

    /// True if a flooded frame goes to the port at `index`.
    fn floods(&self, index: usize, source: usize, segment: u32, group: bool) -> bool {
        let wanted = |p: &Port| p.face.segment == segment && (group || p.face.is_open);
        let open = index != source && !self.chains.isolates(index);
        open && self.ports[index].as_deref().is_some_and(wanted)
    }

    fn deliver(&mut self, index: usize, out: &mut TxFrame<'_>, buffers: &mut Buffers) {
        let Some(port) = &mut self.ports[index] else {
            return;
        };
        if let Some(worker) = port.remote_worker {
            return self.handoff((index, worker), out, buffers);
        }
        if let Err(dropped) = self.segment_limits.leaves(port.face.segment, out) {
            return *dropped(&mut port.counters) += 1;
        }
        let delivery = match port.deliver(out, buffers) {
            Delivery::Redirect(found) => self.redirect(index, &found, out, buffers),
            other => other,
        };
        self.mark(index);
        if matches!(delivery, Delivery::Queued) && !self.mirrors.is_empty() {
            self.mirror(Side::Tx, index, out, buffers);
        }
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
            busy |= port.device.sleep_prepare();
        }
        busy
    }

    /// Notifies all guests that no kick is needed now.
    pub fn wake_done(&mut self) {
        for port in self.ports.iter_mut().flatten() {
            port.device.wake_done();
        }
    }
}

#[cfg(test)]
mod tests;
