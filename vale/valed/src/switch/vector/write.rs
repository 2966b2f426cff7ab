// SPDX-License-Identifier: Apache-2.0
//! The last stage of a burst: writes the frames, one receiver after the other.
use vale_proto::{Direction, Mac, Side};

use super::{Route, Vector, count, each, filtered, within};
use crate::clock::Nanoseconds;
use crate::device::{Burst, Device};
use crate::frame::dscp;
use crate::frame::key::FilterKey;
use crate::frame::rx_frame::PlainFrame;
use crate::frame::tx_frame::TxFrame;
use crate::mesh::{LIST, List};
use crate::port::{MALFORMED, Port};
use crate::switch::{Scratch, Switch};

/// Frames that a device gets at a time.
const CHUNK: usize = 32;

/// The stages between a judged frame and its receiver's queue.
enum Course {
    /// Those of the receiver's port.
    Port,
    /// Those of another worker.
    Worker,
    /// Those of single frames: limits of the segment, offload rules, mirrors, frames that wait.
    Switch,
}

/// The sending port, as far as its frames depend on it.
#[derive(Clone, Copy)]
struct Sender {
    port: usize,
    now: Nanoseconds,
    /// The mark of its packets.
    dscp: Option<u8>,
}

impl Switch {
    pub(super) fn write_burst(
        &mut self,
        source: usize,
        device: &dyn Device,
        scratch: &mut Scratch,
    ) {
        let Some(port) = self.ports[source].as_deref() else {
            return;
        };
        let sender = Sender {
            port: source,
            now: scratch.now,
            dscp: port.dscp(),
        };
        let mut left = scratch.vector.forwarded;
        while left != 0 {
            let routes = &scratch.vector.routes;
            let to = routes[left.trailing_zeros() as usize].to;
            let list = match scratch.vector.is_mixed {
                true => {
                    let same = each(left).filter(|n| routes[*n].to == to);
                    same.fold(0, |bits, n| bits | 1 << n)
                }
                false => left,
            };
            left &= !list;
            let malformed = self.write_to(sender, device, (to.into(), list), scratch);
            if let (1.., Some(port)) = (malformed, &mut self.ports[source]) {
                *MALFORMED(&mut port.counters) += malformed;
            }
        }
    }

    /// Writes the frames of a list to a receiver. Returns the number of those whose sender has left work
    /// that cannot be done.
    #[inline(never)]
    fn write_to(
        &mut self,
        sender: Sender,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) -> u64 {
        let Some(port) = self.ports[to].as_deref() else {
            return 0;
        };
        let Scratch { burst, vector, .. } = &mut *scratch;
        let plain = list & burst.plain;
        change_heads(sender, port, plain, vector, burst);
        let is_plain = plain == list;
        let left = match self.course(sender.port, to) {
            Course::Worker if is_plain => self.hand_over(sender, device, (to, list), scratch),
            Course::Port if is_plain && self.takes_list(sender.port, to, count(list)) => {
                self.write_plain(sender, device, (to, list), scratch);
                0
            }
            Course::Port if !self.has_backpressure(sender.port) => {
                return self.write_singly(sender, device, (to, list), scratch);
            }
            _ => list,
        };
        match left {
            0 => 0,
            _ => self.write_one_by_one(sender, device, (to, left), scratch),
        }
    }

    /// The stages between two ports.
    fn course(&self, from: usize, to: usize) -> Course {
        let ports = [from, to].map(|index| self.ports[index].as_deref());
        let [Some(source), Some(receiver)] = ports else {
            return Course::Switch;
        };
        // Frames that wait are before these.
        if receiver.face.is_moving || !source.blocked.is_empty() {
            return Course::Switch;
        }
        if receiver.remote_worker.is_some() {
            return Course::Worker;
        }
        let segment = receiver.face.segment;
        let has_more =
            receiver.offload_tables.is_some() || self.segment_limits.of(segment).is_some();
        match has_more || self.mirrors.sees(Side::Tx, to, segment) {
            true => Course::Switch,
            false => Course::Port,
        }
    }

    fn has_backpressure(&self, port: usize) -> bool {
        self.ports[port]
            .as_deref()
            .is_some_and(|p| p.face.has_backpressure)
    }

    /// True if a receiver gets plain frames from a port as one, and none of them has to wait.
    fn takes_list(&mut self, from: usize, to: usize, frames: u64) -> bool {
        let may_wait = self.has_backpressure(from);
        self.ports[to].as_deref_mut().is_some_and(|port| {
            let is_free = !may_wait || port.device.has_room_for(frames as usize);
            port.device.takes_lists() && is_free
        })
    }

    /// Writes plain frames to a receiver of this worker.
    fn write_plain(
        &mut self,
        sender: Sender,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) {
        let Scratch { burst, vector, .. } = scratch;
        if let Some(port) = self.ports[to].as_deref_mut() {
            let mut left = admitted(port, list, vector, sender.now);
            while left != 0 {
                let mut frames = [PlainFrame::default(); CHUNK];
                let count = gather(&mut frames, left, device, burst);
                left = without(left, count);
                port.device.push_all(&frames[..count], &mut port.counters);
            }
        }
        self.mark(to);
    }

    /// Writes frames to a receiver of this worker, one after the other.
    fn write_singly(
        &mut self,
        sender: Sender,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) -> u64 {
        let Scratch {
            burst,
            buffers,
            vector,
            ..
        } = scratch;
        let mut malformed = 0;
        if let Some(port) = self.ports[to].as_deref_mut() {
            for n in each(list) {
                let (route, key) = (vector.routes[n], vector.key(n));
                match frame(sender, device, port, (n, route), key, burst) {
                    Some(mut out) => drop(port.deliver(&mut out, buffers)),
                    None => malformed += 1,
                }
            }
        }
        self.mark(to);
        malformed
    }

    /// Hands plain frames over to the worker of their receiver, and returns those without room there.
    fn hand_over(
        &mut self,
        sender: Sender,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) -> u64 {
        let Scratch {
            burst,
            buffers,
            vector,
            ..
        } = scratch;
        let is_filtered = self.ports[to]
            .as_deref()
            .is_some_and(|p| p.face.is_filtered);
        let mut left = list;
        while left != 0 {
            let n = left.trailing_zeros() as usize;
            let payload = vector.routes[n].payload;
            let run = match is_filtered {
                true => left & vector.run(n),
                false => left,
            };
            let other = each(run).find(|n| vector.routes[*n].payload != payload);
            let run = run & other.map_or(u64::MAX, |n| (1 << n) - 1);
            let mut frames = [PlainFrame::default(); LIST];
            let count = gather(&mut frames, run, device, burst);
            let (ends, head) = ((sender.port, to), (payload.into(), vector.key(n)));
            let handed = self.handoff_list(ends, head, &frames[..count], buffers);
            left = without(left, handed);
            if handed < count {
                break;
            }
        }
        if let Some(port) = self.ports[sender.port].as_deref() {
            port.begin_remote(count(list & !left) as usize);
        }
        left
    }

    /// Writes plain frames of another worker to a receiver of this one. False if they have to go one by one.
    pub(in crate::switch) fn write_list(
        &mut self,
        from: usize,
        to: usize,
        list: &List<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let count = list.lens.len() as u64;
        let is_plain = matches!(self.course(from, to), Course::Port);
        if !is_plain || !self.takes_list(from, to, count) {
            return false;
        }
        let Scratch { vector, now, .. } = scratch;
        vector.note_list(list);
        if let Some(port) = self.ports[to].as_deref_mut() {
            let mut frames = list.frames();
            let mut kept = 0;
            for n in each(admitted(port, vector.forwarded, vector, *now)) {
                frames[kept] = frames[n];
                kept += 1;
            }
            port.device.push_all(&frames[..kept], &mut port.counters);
        }
        self.mark(to);
        true
    }

    /// Writes frames to a receiver with all stages of single frames.
    #[inline(never)]
    fn write_one_by_one(
        &mut self,
        sender: Sender,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) -> u64 {
        let Scratch {
            burst,
            buffers,
            vector,
            ..
        } = scratch;
        let mut malformed = 0;
        for n in each(list) {
            let Some(port) = self.ports[to].as_deref() else {
                break;
            };
            let (route, key) = (vector.routes[n], vector.key(n));
            match frame(sender, device, port, (n, route), key, burst) {
                Some(mut out) => self.deliver_or_block(to, &mut out, buffers),
                None => malformed += 1,
            }
        }
        malformed
    }
}

/// The next frames of a set, as many as there are places, and their number.
#[inline]
fn gather<'a>(
    frames: &mut [PlainFrame<'a>],
    set: u64,
    device: &'a dyn Device,
    burst: &'a Burst,
) -> usize {
    let places = frames.iter_mut().zip(each(set));
    places.fold(0, |count, (place, n)| {
        *place = burst.plain_frame(device, n);
        count + 1
    })
}

/// A set without its first frames.
fn without(set: u64, frames: usize) -> u64 {
    (0..frames).fold(set, |left, _| left & left.wrapping_sub(1))
}

impl Vector {
    /// Takes the frames of a message, which have one verdict.
    fn note_list(&mut self, list: &List<'_>) {
        self.clear();
        (self.keys[0], self.firsts[0]) = (*list.seen, 0);
        for (n, len) in list.lens.iter().enumerate() {
            self.routes[n] = Route {
                payload: list.payload as u16,
                len: *len,
                ..Route::default()
            };
            self.longest = self.longest.max(*len);
        }
        self.forwarded = (1 << list.lens.len()) - 1;
        self.repeats = self.forwarded & !1;
    }
}

/// The stages of [`Port::deliver`] for the frames of a list, without offload rules. Returns those that all
/// stages admit.
#[inline]
fn admitted(port: &mut Port, list: u64, vector: &Vector, now: Nanoseconds) -> u64 {
    let mut list = list;
    if !port.face.takes_all(vector.longest.into()) {
        for n in each(list) {
            let Route { payload, len, .. } = vector.routes[n];
            let takes = port.face.takes((len - payload).into());
            let takes = takes.and_then(|()| port.face.takes_tags(payload.into()));
            if let Err(dropped) = takes {
                *dropped(&mut port.counters) += 1;
                list &= !(1 << n);
            }
        }
    }
    if let Some(filter) = &mut port.filter {
        let admitted = filtered(filter, list, vector, (Direction::Ingress, now));
        port.counters.dropped_filter += count(list & !admitted);
        list = admitted;
    }
    if let Some(limits) = &port.limits {
        let admitted = within(&limits.tx, list, vector, now);
        port.counters.dropped_rate += count(list & !admitted);
        list = admitted;
    }
    list
}

/// Marks packets as their sender's port says, and gives frames to a hop its MAC address.
#[inline]
fn change_heads(sender: Sender, port: &Port, list: u64, vector: &Vector, burst: &mut Burst) {
    let mac = port.face.mac.filter(|_| vector.has_addressed);
    if (sender.dscp, mac) == (None, None) {
        return;
    }
    for n in each(list) {
        let (route, head) = (vector.routes[n], burst.plain_head(n));
        change(sender.dscp, route, mac.filter(|_| route.addressed), head);
    }
}

fn change(dscp: Option<u8>, route: Route, mac: Option<Mac>, head: &mut [u8]) {
    if let Some(dscp) = dscp {
        dscp::mark(head, route.payload.into(), dscp);
    }
    if let Some(mac) = mac {
        head[..mac.0.len()].copy_from_slice(&mac.0);
    }
}

/// Frame `n` as its receiver gets it. None if its sender has left work that cannot be done.
#[inline(always)]
fn frame<'a>(
    sender: Sender,
    device: &'a dyn Device,
    port: &Port,
    (n, route): (usize, Route),
    seen: &'a FilterKey,
    burst: &'a mut Burst,
) -> Option<TxFrame<'a>> {
    let is_changed = burst.plain >> n & 1 == 1;
    let taken = device.taken(burst, n)?;
    let mut out = TxFrame::new(taken, route.payload.into(), route.checked_len.into())?;
    (out.seen, out.now, out.from) = (seen, sender.now, sender.port);
    if !is_changed {
        let mac = port.face.mac.filter(|_| route.addressed);
        change(sender.dscp, route, mac, out.head);
    }
    Some(out)
}
