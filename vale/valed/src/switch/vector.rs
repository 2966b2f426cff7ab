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
use crate::device::{BURST, Device};
use crate::frame::headers::Ethernet;
use crate::frame::key::FilterKey;
use crate::port::Counter;

/// What becomes of a judged frame.
#[derive(Clone, Copy)]
enum Fate {
    /// Dropped, with its bytes.
    Dropped(Counter, u16),
    To(Route),
    /// An earlier stage has dropped and counted it.
    Gone,
}

/// The way of a judged frame.
#[derive(Clone, Copy)]
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

/// The frames of a burst between two stages.
pub struct Vector {
    fates: [Fate; BURST],
    keys: [FilterKey; BURST],
    /// Bit n: frame n has the flow of the frame before it, and its verdict.
    repeats: u64,
    /// Valid in a burst from a port whose frames chains may take.
    steps: [Option<Steered>; BURST],
}

impl Default for Vector {
    fn default() -> Self {
        Self {
            fates: [Fate::Gone; BURST],
            keys: [FilterKey::Other; BURST],
            repeats: 0,
            steps: [None; BURST],
        }
    }
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
                    self.steer_burst(source, from..to, scratch);
                }
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
        let Scratch {
            vector:
                Vector {
                    fates,
                    keys,
                    repeats,
                    ..
                },
            now,
            ..
        } = scratch;
        let Some(port) = self.ports[source].as_deref_mut() else {
            return;
        };
        let bytes = fates[run.clone()].iter().map(|fate| match fate {
            Fate::To(Route { len, .. }) | Fate::Dropped(_, len) => u64::from(*len),
            Fate::Gone => 0,
        });
        port.counters.rx_packets += run.len() as u64;
        port.counters.rx_bytes += bytes.sum::<u64>();
        if let Some(filter) = &mut port.filter {
            let mut admitted = false;
            for n in run.clone() {
                if let Fate::To(route) = fates[n] {
                    if *repeats >> n & 1 == 0 {
                        admitted = filter.admits(&keys[n], Direction::Egress, *now);
                    }
                    if !admitted {
                        fates[n] = Fate::Dropped(|c| &mut c.dropped_filter, route.len);
                    }
                }
            }
        }
        let of_port = port.limits.as_deref();
        let limits = [of_port, self.segment_limits.of(port.face.segment)];
        for limits in limits.into_iter().flatten() {
            for fate in &mut fates[run.clone()] {
                if let Fate::To(route) = *fate {
                    if !limits.rx.admits(1, route.len.into(), *now) {
                        *fate = Fate::Dropped(|c| &mut c.dropped_rate, route.len);
                    }
                }
            }
        }
        for fate in &fates[run] {
            if let Fate::Dropped(dropped, _) = fate {
                *dropped(&mut port.counters) += 1;
            }
        }
    }
}
