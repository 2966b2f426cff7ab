// SPDX-License-Identifier: Apache-2.0
//! The stages of a burst: each one works on all frames before the next one begins.
//!
//! A burst of a guest's own frames to other guests takes these stages: judge and look up, admit, write for
//! each destination. Frames that need more ([`Fate::Alone`]) go one by one through [`Switch::forward`],
//! in their order. A stage that neither port uses (filter, rates) is left out for the whole burst. The
//! stages of the switch (chains, mirrors, limits of segments) and the mark of a port end this way for it.
use std::ops::Range;

use vale_proto::{Direction, Mac};

use super::{Scratch, Switch};
use crate::clock::Nanoseconds;
use crate::device::{BURST, Buffers, Burst, Device};
use crate::frame::HEAD;
use crate::frame::headers::Ethernet;
use crate::frame::key::FilterKey;
use crate::frame::tx_frame::TxFrame;
use crate::port::{Counter, MALFORMED, Port};

/// What becomes of a frame.
#[derive(Clone, Copy)]
enum Fate {
    /// It needs more stages than these.
    Alone,
    Dropped(Counter),
    To(Route),
}

/// The way of a judged frame.
#[derive(Clone, Copy)]
struct Route {
    /// Index of the receiver.
    to: u16,
    /// Offset of the IP packet, and the judged bytes.
    payload: u16,
    judged: u16,
    /// Bytes of the frame.
    len: u16,
}

/// The frames of a burst between two stages.
pub struct Vector {
    fates: [Fate; BURST],
    keys: [FilterKey; BURST],
}

impl Default for Vector {
    fn default() -> Self {
        Self {
            fates: [Fate::Alone; BURST],
            keys: [FilterKey::Other; BURST],
        }
    }
}

/// The last look-up: the frames of a burst often have one destination.
#[derive(Clone, Copy)]
struct Found {
    mac: Mac,
    to: Option<u16>,
    /// One of both ports has a filter.
    filtered: bool,
}

impl Port {
    /// True if a frame to the port needs no stage but those of [`Vector`].
    fn is_plain_receiver(&self) -> bool {
        self.elsewhere.is_none() && !self.face.is_moving && self.decided.is_none()
    }
}

impl Switch {
    /// Forwards a burst from a port whose device is out of it meanwhile.
    pub(super) fn forward_burst(
        &mut self,
        source: usize,
        device: &dyn Device,
        count: usize,
        scratch: &mut Scratch,
    ) {
        if !self.is_plain_source(source) {
            return (0..count).for_each(|n| self.forward_alone(source, device, n, scratch));
        }
        self.judge_burst(source, device, count, scratch);
        let mut from = 0;
        while from < count {
            let fates = &scratch.vector.fates[from..count];
            let run = fates.iter().take_while(|fate| !matches!(fate, Fate::Alone));
            let to = from + run.count();
            if to > from {
                self.admit_burst(source, from..to, scratch);
                self.write_burst(source, device, from..to, scratch);
            }
            if to < count {
                self.forward_alone(source, device, to, scratch);
            }
            from = to + 1;
        }
    }

    fn forward_alone(
        &mut self,
        source: usize,
        device: &dyn Device,
        n: usize,
        scratch: &mut Scratch,
    ) {
        if let Err(dropped) = self.forward(source, device, n, scratch) {
            self.drop_frame(source, dropped);
        }
    }

    /// True if frames from the port may take the stages of a burst.
    fn is_plain_source(&self, source: usize) -> bool {
        let port = self.ports[source].as_deref();
        self.chains.is_empty()
            && self.mirrors.is_empty()
            && self.segment_limits.is_empty()
            && port.is_some_and(|port| port.face.mac.is_some() && !port.holds() && !port.marks())
    }

    /// Judges the frames and looks their receivers up.
    #[inline(never)]
    fn judge_burst(&self, source: usize, device: &dyn Device, count: usize, scratch: &mut Scratch) {
        let Scratch { burst, vector, .. } = scratch;
        let Some(port) = self.ports[source].as_deref() else {
            return;
        };
        let mut found = Found {
            mac: Mac([0; 6]),
            to: None,
            filtered: false,
        };
        for n in 0..count {
            let key = &mut vector.keys[n];
            vector.fates[n] = match device.peek(burst, n) {
                Some(bytes) => self.fate(source, port, bytes, (&mut found, key)),
                None => Fate::Alone,
            };
        }
    }

    #[inline]
    fn fate(
        &self,
        source: usize,
        port: &Port,
        bytes: &[u8],
        (found, key): (&mut Found, &mut FilterKey),
    ) -> Fate {
        let Some(ethernet) = Ethernet::parse(bytes) else {
            return Fate::Alone;
        };
        // Another station's frame may come back, and the switch notes its station.
        if port.face.mac != Some(ethernet.source) || ethernet.destination.is_multicast() {
            return Fate::Alone;
        }
        if found.mac != ethernet.destination {
            *found = self.found(source, port, ethernet.destination);
        }
        let Some(to) = found.to else {
            return Fate::Alone;
        };
        let judged = match port.judge(&ethernet, bytes, None) {
            Ok(judged) => judged,
            Err(dropped) => {
                return match bytes.len() <= HEAD {
                    true => Fate::Dropped(dropped),
                    false => Fate::Alone,
                };
            }
        };
        let mut rests_on = judged;
        if found.filtered {
            *key = FilterKey::parse(&ethernet, bytes);
            rests_on = judged.max(key.rests_on(&ethernet, bytes));
        }
        // The verdict on a longer frame has to rest on its head.
        if bytes.len() > HEAD && rests_on > HEAD {
            return Fate::Alone;
        }
        Fate::To(Route {
            to,
            payload: ethernet.payload as u16,
            judged: judged as u16,
            len: bytes.len() as u16,
        })
    }

    #[inline]
    fn found(&self, source: usize, port: &Port, mac: Mac) -> Found {
        let to = self.lookup.find(port.face.segment, mac);
        let to = to.filter(|to| *to != source);
        let receiver = to.and_then(|to| self.ports[to].as_deref());
        let receiver = receiver.filter(|receiver| receiver.is_plain_receiver());
        Found {
            mac,
            to: to.filter(|_| receiver.is_some()).map(|to| to as u16),
            filtered: port.filter.is_some() || receiver.is_some_and(|r| r.filter.is_some()),
        }
    }

    /// Counts the frames, and applies the filter and the rates of their port.
    #[inline(never)]
    fn admit_burst(&mut self, source: usize, run: Range<usize>, scratch: &mut Scratch) {
        let Scratch {
            burst,
            vector: Vector { fates, keys },
            now,
            ..
        } = scratch;
        let Some(port) = self.ports[source].as_deref_mut() else {
            return;
        };
        let (mut bytes, frames) = (0, run.len());
        for n in run.clone() {
            bytes += match fates[n] {
                Fate::To(route) => u64::from(route.len),
                _ => burst.slots[n].len() as u64,
            };
        }
        port.counters.rx_packets += frames as u64;
        port.counters.rx_bytes += bytes;
        if let Some(filter) = &mut port.filter {
            for n in run.clone() {
                let is_left = matches!(fates[n], Fate::To(_));
                if is_left && !filter.admits(&keys[n], Direction::Egress, *now) {
                    fates[n] = Fate::Dropped(|c| &mut c.dropped_filter);
                }
            }
        }
        if let Some(limits) = &port.limits {
            for fate in &mut fates[run.clone()] {
                if let Fate::To(route) = fate {
                    if !limits.rx.admits(1, route.len.into(), *now) {
                        *fate = Fate::Dropped(|c| &mut c.dropped_rate);
                    }
                }
            }
        }
        for fate in &fates[run] {
            if let Fate::Dropped(dropped) = fate {
                *dropped(&mut port.counters) += 1;
            }
        }
    }

    /// Writes the frames, one receiver after the other.
    fn write_burst(
        &mut self,
        source: usize,
        device: &dyn Device,
        run: Range<usize>,
        scratch: &mut Scratch,
    ) {
        let mut left: u64 = 0;
        for n in run {
            left |= u64::from(matches!(scratch.vector.fates[n], Fate::To(_))) << n;
        }
        while left != 0 {
            let Fate::To(Route { to, .. }) = scratch.vector.fates[left.trailing_zeros() as usize]
            else {
                return;
            };
            let mut list = 0;
            let mut rest = left;
            while rest != 0 {
                let n = rest.trailing_zeros();
                rest &= rest - 1;
                if let Fate::To(route) = scratch.vector.fates[n as usize] {
                    list |= u64::from(route.to == to) << n;
                }
            }
            left &= !list;
            self.write_to(source, device, (to.into(), list), scratch);
        }
    }

    /// Writes the frames of a list to their receiver.
    #[inline(never)]
    fn write_to(
        &mut self,
        source: usize,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) {
        let Scratch {
            burst,
            buffers,
            vector,
            now,
            ..
        } = scratch;
        let Some(port) = self.ports[to].as_deref_mut() else {
            return;
        };
        let (mut left, mut malformed) = (list, 0);
        while left != 0 {
            let n = left.trailing_zeros() as usize;
            left &= left - 1;
            if let Fate::To(route) = vector.fates[n] {
                let key = &vector.keys[n];
                let written = write(
                    device,
                    port,
                    (n, route),
                    (source, *now),
                    key,
                    burst,
                    buffers,
                );
                malformed += u64::from(!written);
            }
        }
        self.mark(to);
        if let (1.., Some(port)) = (malformed, &mut self.ports[source]) {
            *MALFORMED(&mut port.counters) += malformed;
        }
    }
}

/// Writes a frame. False if its sender has left work that cannot be done.
#[inline]
fn write(
    device: &dyn Device,
    port: &mut Port,
    (n, route): (usize, Route),
    (from, now): (usize, Nanoseconds),
    seen: &FilterKey,
    burst: &mut Burst,
    buffers: &mut Buffers,
) -> bool {
    let Some(taken) = device.taken(burst, n) else {
        return false;
    };
    let (payload, judged) = (route.payload.into(), route.judged.into());
    let Some(mut out) = TxFrame::new(taken, payload, judged) else {
        return false;
    };
    (out.seen, out.now, out.from) = (seen, now, from);
    port.deliver(&mut out, buffers);
    true
}
