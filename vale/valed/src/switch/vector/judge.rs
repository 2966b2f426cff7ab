// SPDX-License-Identifier: Apache-2.0
//! The first stage of a burst: judges the frames and looks their receivers up.
use std::ops::Range;

use vale_proto::Mac;

use super::{KnownFlow, Origin, Route, Steered, Vector};
use crate::chain::{Flow, Next, Steering};
use crate::clock::Nanoseconds;
use crate::device::{Burst, Device};
use crate::frame::HEAD;
use crate::frame::gso::{Checksum, TxOffload};
use crate::frame::headers::Ethernet;
use crate::frame::key::FilterKey;
use crate::frame::packet;
use crate::frame::repeat::FlowBytes;
use crate::port::{Port, Relayed};
use crate::switch::{Scratch, Switch};

/// The last outcomes of a stage: the frames of a burst often have one destination and one flow.
struct Last {
    found: Found,
    /// The last station that the stage learned.
    learned: Option<Mac>,
    steered: Option<SteeredFlow>,
}

/// A frame of a burst.
#[derive(Clone, Copy)]
struct At<'a> {
    device: &'a dyn Device,
    burst: &'a Burst,
    n: usize,
}

impl<'a> At<'a> {
    #[inline(always)]
    fn peek(&self) -> Option<&'a [u8]> {
        match self.is_plain() {
            true => Some(self.burst.peek(self.n)),
            false => self.device.peek(self.burst, self.n),
        }
    }

    fn is_plain(&self) -> bool {
        self.burst.plain >> self.n & 1 == 1
    }

    /// False for a frame with flags that do not fit it. It has no verdict.
    fn has_sound_work(&self) -> bool {
        self.is_plain() || self.device.work(self.burst, self.n).is_some()
    }

    /// False for a frame that cannot be written as its sender asks. Filters, rates, steps and stations count
    /// before frames are written.
    #[inline(always)]
    fn is_done(&self, route: Route) -> bool {
        let is_free = |c: Checksum| c.field() >= usize::from(route.checked_len);
        let is_done = |work: TxOffload| work.checksum.is_none_or(is_free);
        self.is_plain() || self.device.work(self.burst, self.n).is_some_and(is_done)
    }

    /// Notes a frame of a flow that has a verdict. False for any other frame.
    #[inline(always)]
    fn is_known(&self, vector: &mut Vector) -> bool {
        let Some(bytes) = self.peek() else {
            return false;
        };
        let place = FlowBytes::place(bytes);
        let known = &vector.known[place];
        if vector.places >> place & 1 == 0 || !known.bytes.are_of(bytes) {
            return false;
        }
        let Ok(len) = u16::try_from(bytes.len()) else {
            return false;
        };
        let route = Route { len, ..known.route };
        if !self.is_done(route) {
            return false;
        }
        match vector.last == Some(place) {
            true => vector.repeats |= 1 << self.n,
            false => {
                vector.firsts[self.n] = known.first;
                vector.is_mixed |= vector.to != route.to;
                vector.last = Some(place);
            }
        }
        vector.routes[self.n] = route;
        vector.forwarded |= 1 << self.n;
        vector.bytes += u64::from(len);
        vector.longest = vector.longest.max(len);
        true
    }
}

impl Vector {
    /// Notes a frame with a verdict of its own, which later ones of its flow share.
    fn forward(&mut self, n: usize, route: Route, bytes: &[u8]) {
        if self.forwarded == 0 {
            self.to = route.to;
        }
        self.is_mixed |= self.to != route.to;
        self.has_addressed |= route.addressed;
        self.routes[n] = route;
        self.forwarded |= 1 << n;
        self.firsts[n] = n as u8;
        if let Some(flow) = FlowBytes::of(bytes) {
            let place = FlowBytes::place(bytes);
            self.known[place] = KnownFlow {
                bytes: flow,
                route,
                first: n as u8,
            };
            self.places |= 1 << place;
            self.last = Some(place);
        }
    }
}

/// The receiver of a destination.
#[derive(Clone, Copy)]
struct Found {
    mac: Mac,
    to: Option<u16>,
    /// One of both ports has a filter.
    filtered: bool,
}

/// The step of a flow's frames, and their receiver.
#[derive(Clone, Copy)]
struct SteeredFlow {
    source: Mac,
    destination: Mac,
    flow: Option<Flow>,
    step: Option<Steering>,
    relayed: Option<Relayed>,
    found: Found,
}

impl Default for Last {
    fn default() -> Self {
        Self {
            found: Found::nothing(),
            learned: None,
            steered: None,
        }
    }
}

impl Found {
    /// No frame goes to this address.
    fn nothing() -> Self {
        Self {
            mac: Mac([0; 6]),
            to: None,
            filtered: false,
        }
    }
}

impl Switch {
    /// Judges frames up to the first that goes alone, and returns its place. With `MORE`, chains may take
    /// the frames, or the switch notes their stations.
    #[inline(never)]
    pub(super) fn judge_burst<const MORE: bool>(
        &self,
        origin: Origin,
        device: &dyn Device,
        frames: Range<usize>,
        scratch: &mut Scratch,
    ) -> usize {
        let Scratch {
            burst, vector, now, ..
        } = scratch;
        let Some(port) = self.ports[origin.port].as_deref() else {
            return frames.start;
        };
        let mut last = Last::default();
        vector.clear();
        for n in frames.clone() {
            let at = At { device, burst, n };
            if at.is_known(vector) {
                continue;
            }
            let judged = self.judge::<MORE>(origin, port, at, &mut last, vector, *now);
            let Some(len) = judged else {
                return n;
            };
            vector.bytes += u64::from(len);
            vector.longest = vector.longest.max(len);
        }
        frames.end
    }

    /// Notes the verdict on a frame, and returns its length. None for a frame that goes alone.
    #[inline(never)]
    fn judge<const MORE: bool>(
        &self,
        origin: Origin,
        port: &Port,
        at: At<'_>,
        last: &mut Last,
        vector: &mut Vector,
        now: Nanoseconds,
    ) -> Option<u16> {
        let (n, bytes) = (at.n, at.peek()?);
        at.has_sound_work().then_some(())?;
        let len = u16::try_from(bytes.len()).ok()?;
        vector.last = None;
        let ethernet = Ethernet::parse(bytes)?;
        let (mut relayed, mut inspected_len) = (None, 0);
        let mut found = None;
        let (mut addressed, mut leaves_hop) = (false, false);
        if MORE && origin.steers {
            let steered = self.steered(origin, port, &ethernet, bytes, last, now)?;
            inspected_len = packet::transport_end(&ethernet, bytes);
            vector.steps[n] = steered.step.map(|step| Steered { step, ethernet });
            if let Some(step) = steered.step {
                (relayed, leaves_hop) = (steered.relayed, !step.enters);
                addressed = matches!(
                    step.next,
                    Next::Hop {
                        addressed: true,
                        ..
                    }
                );
                found = Some(steered.found);
            }
        }
        if ethernet.destination.is_multicast() {
            return None;
        }
        let is_own = port.face.mac == Some(ethernet.source);
        let learns = MORE && origin.learns && !leaves_hop;
        // The frame of another station may come back, and the switch notes its station.
        if !is_own && !learns && !leaves_hop {
            return None;
        }
        let found = match found {
            Some(found) => found,
            None => {
                if last.found.mac != ethernet.destination {
                    last.found = self.found(origin.port, port, ethernet.destination, now);
                }
                last.found
            }
        };
        let to = found.to?;
        let checked_len = match port.face.judge(&ethernet, bytes, relayed) {
            Ok(checked_len) => checked_len,
            // The verdict on a longer frame rests on all its bytes.
            Err(dropped) => {
                (bytes.len() <= HEAD).then_some(())?;
                vector.refused |= 1 << n;
                vector.reasons[n] = dropped;
                return Some(len);
            }
        };
        inspected_len = inspected_len.max(checked_len);
        vector.keys[n] = FilterKey::Other;
        if found.filtered {
            let key = FilterKey::parse(&ethernet, bytes);
            inspected_len = inspected_len.max(key.inspected_len(&ethernet, bytes));
            vector.keys[n] = key;
        }
        if bytes.len() > HEAD && inspected_len > HEAD {
            return None;
        }
        let route = Route {
            to,
            payload: ethernet.payload as u16,
            checked_len: checked_len as u16,
            len,
            addressed,
        };
        at.is_done(route).then_some(())?;
        if learns {
            // A look-up from before may have found the station elsewhere.
            if self.learn(origin.port, port, &ethernet, last, now)? {
                vector.places = 0;
            }
        }
        vector.forward(n, route, bytes);
        Some(len)
    }

    /// Notes the station of a frame, as [`Switch::forward`] does. True for a station that
    /// the stage has not just noted. None if the frame goes to its sender, and is alone.
    fn learn(
        &self,
        source: usize,
        port: &Port,
        ethernet: &Ethernet,
        last: &mut Last,
        now: Nanoseconds,
    ) -> Option<bool> {
        let (station, segment) = (ethernet.source, port.face.segment);
        if last.learned == Some(station) {
            return Some(false);
        }
        (station != ethernet.destination).then_some(())?;
        match port.face.learns || port.face.has_virtual_router(station) {
            true if self.lookup.find(segment, station).is_none() => {
                self.learned.learn(segment, station, source, now);
            }
            false if self.owner(segment, station, now).is_none() => {
                self.heard.learn(segment, station, source, now);
            }
            _ => (),
        }
        *last = Last {
            learned: Some(station),
            ..Last::default()
        };
        Some(true)
    }

    /// The receiver of frames to an address, if a port of the switch or a learned one has it.
    #[inline]
    fn found(&self, source: usize, port: &Port, mac: Mac, now: Nanoseconds) -> Found {
        let segment = port.face.segment;
        let to = self.lookup.find(segment, mac);
        let to = to.or_else(|| self.station(segment, mac, now));
        let to = to.filter(|to| *to != source);
        self.receiver(port, mac, to)
    }

    fn receiver(&self, port: &Port, mac: Mac, to: Option<usize>) -> Found {
        let receiver = to.and_then(|to| self.ports[to].as_deref());
        let is_filtered = receiver.is_some_and(|r| r.face.is_filtered || r.filter.is_some());
        Found {
            mac,
            to: to.filter(|_| receiver.is_some()).map(|to| to as u16),
            filtered: port.filter.is_some() || is_filtered,
        }
    }

    /// The step of a frame, None if the frame goes alone. Frames of one flow have one step.
    fn steered(
        &self,
        origin: Origin,
        port: &Port,
        ethernet: &Ethernet,
        bytes: &[u8],
        last: &mut Last,
        now: Nanoseconds,
    ) -> Option<SteeredFlow> {
        let (source, destination) = (ethernet.source, ethernet.destination);
        let flow = Flow::parse(ethernet, bytes);
        let same =
            |s: &SteeredFlow| (s.source, s.destination, s.flow) == (source, destination, flow);
        if let Some(steered) = last.steered.filter(same) {
            return Some(steered);
        }
        let (chains, ports) = (&self.chains, &self.ports);
        let step = flow.and_then(|flow| chains.step_of(ports, origin.port, ethernet, flow));
        let to = match step.map(|step| (step, step.next)) {
            None if chains.isolates(origin.port) => return None,
            None => None,
            Some((_, Next::Hop { port, .. })) => Some(port),
            Some((step, Next::Exit)) => {
                let segment = chains.segment(step);
                let found = self.lookup.find(segment, destination);
                let found = found.or_else(|| self.station(segment, destination, now));
                found.filter(|to| *to != origin.port)
            }
            Some((_, Next::Remote { .. } | Next::Blocked { .. })) => return None,
        };
        let steered = SteeredFlow {
            source,
            destination,
            flow,
            step,
            relayed: step.and_then(|step| chains.relayed(step, ports, origin.port, ethernet)),
            found: self.receiver(port, destination, to),
        };
        last.steered = Some(steered);
        Some(steered)
    }
}
