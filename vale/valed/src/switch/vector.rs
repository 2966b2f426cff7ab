// SPDX-License-Identifier: Apache-2.0
//! The stages of a burst: each one works on all frames before the next one begins.
//!
//! A burst takes these stages: judge and look up, admit, steer, write for each destination. A stage that
//! no port of the burst uses is left out for the whole burst. Frames that need more go one by one through
//! [`Switch::forward`], in their order: those to many stations or to unknown ones, those to be cut into
//! segments, and those whose verdict rests on more than their heads.
mod judge;
mod steer;
mod write;

use std::ops::Range;

use vale_proto::{Direction, Side};

use super::{Scratch, Switch};
use crate::chain::Steering;
use crate::clock::Nanoseconds;
use crate::device::{BURST, Device};
use crate::frame::headers::Ethernet;
use crate::frame::key::FilterKey;
use crate::frame::repeat::{FlowBytes, PLACES};
use crate::policy::filter::Filter;
use crate::policy::token_bucket::Meter;
use crate::port::{Counter, MALFORMED};

/// The way of a judged frame.
#[derive(Clone, Copy, Default)]
struct Route {
    /// Index of the receiver.
    to: u16,
    /// Offset of the IP packet, and the number of checked bytes.
    payload: u16,
    checked_len: u16,
    /// Bytes of the frame.
    len: u16,
    /// The frame gets the receiver's MAC address.
    addressed: bool,
}

/// The step of a frame in a chain.
#[derive(Clone, Copy)]
struct Steered {
    step: Steering,
    ethernet: Ethernet,
}

/// The frames of a burst between two stages. Sets of frames have bit n for frame n.
pub struct Vector {
    /// The frames that go to a receiver, and those that the guard refuses.
    forwarded: u64,
    refused: u64,
    /// The frames that have the flow of the frame before them, and its verdict.
    repeats: u64,
    /// The frame whose flow another one has. Valid for those of `forwarded` that are not of `repeats`.
    firsts: [u8; BURST],
    /// The flows of frames with a verdict, and the places of the valid ones.
    known: [KnownFlow; PLACES],
    places: u32,
    /// The place of the last frame's flow.
    last: Option<usize>,
    /// Valid for `forwarded`.
    routes: [Route; BURST],
    /// Valid for `refused`.
    reasons: [Counter; BURST],
    /// The packets as filters see them. Valid for the first frame of each flow.
    keys: [FilterKey; BURST],
    /// The steps in chains. Valid for such a frame in a burst from a port whose frames chains may take.
    steps: [Option<Steered>; BURST],
    /// Bytes of all judged frames, and of the longest one.
    bytes: u64,
    longest: u16,
    /// The receiver of the first frame of `forwarded`; others have another one.
    to: u16,
    is_mixed: bool,
    /// Some frames get their receiver's MAC address.
    has_addressed: bool,
}

impl Default for Vector {
    fn default() -> Self {
        Self {
            forwarded: 0,
            refused: 0,
            repeats: 0,
            firsts: [0; BURST],
            known: [KnownFlow::default(); PLACES],
            places: 0,
            last: None,
            routes: [Route::default(); BURST],
            reasons: [MALFORMED; BURST],
            keys: [FilterKey::Other; BURST],
            steps: [None; BURST],
            bytes: 0,
            longest: 0,
            to: 0,
            is_mixed: false,
            has_addressed: false,
        }
    }
}

impl Vector {
    /// Forgets all frames.
    fn clear(&mut self) {
        (self.forwarded, self.refused, self.repeats) = (0, 0, 0);
        (self.places, self.last) = (0, None);
        (self.bytes, self.longest) = (0, 0);
        (self.is_mixed, self.has_addressed) = (false, false);
    }

    /// The first frame of the flow of frame `n`, whose verdict it has.
    fn first(&self, n: usize) -> usize {
        let others = !self.repeats & (u64::MAX >> (BURST - 1 - n));
        let begin = others.checked_ilog2().unwrap_or(0) as usize;
        self.firsts[begin].into()
    }

    /// Frame `n` and those of its flow that follow it without another one between them.
    fn run(&self, n: usize) -> u64 {
        let repeats = (self.repeats >> n >> 1).trailing_ones();
        u64::MAX >> (u64::BITS - 1 - repeats) << n
    }

    fn key(&self, n: usize) -> &FilterKey {
        &self.keys[self.first(n)]
    }

    fn len(&self, n: usize) -> usize {
        self.routes[n].len.into()
    }
}

/// The numbers of the frames of a set.
fn each(set: u64) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let n = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(n)
    })
}

/// The frames of a set that a filter admits.
fn filtered(
    filter: &mut Filter,
    set: u64,
    vector: &Vector,
    (direction, now): (Direction, Nanoseconds),
) -> u64 {
    let (mut left, mut admitted) = (set, 0);
    while left != 0 {
        let n = left.trailing_zeros() as usize;
        let run = vector.run(n);
        if filter.admits(vector.key(n), direction, now) {
            admitted |= set & run;
        }
        left &= !run;
    }
    admitted
}

/// The frames of a set within some rates.
fn within(rates: &Meter, set: u64, vector: &Vector, now: Nanoseconds) -> u64 {
    let admitted = each(set).filter(|n| rates.admits(1, vector.len(*n), now));
    admitted.fold(0, |bits, n| bits | 1 << n)
}

/// A flow of a burst.
#[derive(Clone, Copy, Default)]
struct KnownFlow {
    bytes: FlowBytes,
    route: Route,
    /// Its first frame.
    first: u8,
}

/// The port that sends a burst, and the stages that its frames need.
#[derive(Clone, Copy)]
struct Origin {
    port: usize,
    /// Chains may take its frames.
    steers: bool,
    /// The switch notes its stations, which have no port.
    learns: bool,
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
        let Some(origin) = self.origin(source) else {
            return (0..count).for_each(|n| self.forward_alone(source, device, n, scratch));
        };
        let mut from = 0;
        while from < count {
            let to = match origin.steers || origin.learns {
                true => self.judge_burst::<true>(origin, device, from..count, scratch),
                false => self.judge_burst::<false>(origin, device, from..count, scratch),
            };
            if to > from {
                self.admit_burst(source, from..to, scratch);
                if origin.steers {
                    self.steer_burst(source, scratch);
                }
                self.write_burst(source, device, scratch);
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

    /// The stages of frames from a port. None if they go one by one: a mirror copies them in their order, a
    /// path's have labels, and a station is not noted before the port's filter and rates have admitted its
    /// frame.
    fn origin(&self, source: usize) -> Option<Origin> {
        let port = self.ports[source].as_deref()?;
        let learns = port.face.learns || port.face.mac.is_none();
        let segment = port.face.segment;
        let limited = || {
            let of_port = port.filter.is_some() || port.limits.is_some();
            of_port || self.segment_limits.of(segment).is_some()
        };
        let has_order = port.face.is_path() || self.mirrors.sees(Side::Rx, source, segment);
        let is_alone = has_order || learns && limited();
        (!is_alone).then_some(Origin {
            port: source,
            steers: self.chains.steers(source),
            learns,
        })
    }

    /// Counts the frames, and applies the filter and the rates of their port and segment.
    #[inline(never)]
    fn admit_burst(&mut self, source: usize, run: Range<usize>, scratch: &mut Scratch) {
        let (vector, now) = (&mut scratch.vector, scratch.now);
        let Some(port) = self.ports[source].as_deref_mut() else {
            return;
        };
        port.counters.rx_packets += run.len() as u64;
        port.counters.rx_bytes += vector.bytes;
        for n in each(vector.refused) {
            *vector.reasons[n](&mut port.counters) += 1;
        }
        if let Some(filter) = &mut port.filter {
            let when = (Direction::Egress, now);
            let admitted = filtered(filter, vector.forwarded, vector, when);
            port.counters.dropped_filter += count(vector.forwarded & !admitted);
            vector.forwarded = admitted;
        }
        let of_port = port.limits.as_deref();
        let limits = [of_port, self.segment_limits.of(port.face.segment)];
        for limits in limits.into_iter().flatten() {
            let admitted = within(&limits.rx, vector.forwarded, vector, now);
            port.counters.dropped_rate += count(vector.forwarded & !admitted);
            vector.forwarded = admitted;
        }
    }
}

/// The number of frames of a set.
fn count(set: u64) -> u64 {
    set.count_ones().into()
}
