// SPDX-License-Identifier: Apache-2.0
//! The last stage of a burst: writes the frames, one receiver after the other.
use std::ops::Range;

use vale_proto::Side;

use super::{Fate, Route, Vector};
use crate::clock::Nanoseconds;
use crate::device::{Burst, Device};
use crate::frame::dscp;
use crate::frame::key::FilterKey;
use crate::frame::tx_frame::TxFrame;
use crate::port::{Delivery, MALFORMED, Port};
use crate::switch::{Scratch, Switch};

/// The stages between a judged frame and its receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivering {
    /// The receiver's queue alone.
    Plain,
    /// The receiver's own.
    Port,
    /// Those of the switch too.
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
        run: Range<usize>,
        scratch: &mut Scratch,
    ) {
        let Some(port) = self.ports[source].as_deref() else {
            return;
        };
        let (has_backpressure, dscp) = (port.face.has_backpressure, port.dscp());
        let sender = Sender {
            port: source,
            now: scratch.now,
            dscp,
        };
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
            let to = to.into();
            let malformed = match self.delivering(to, has_backpressure) {
                Delivering::Plain => self.write_to::<true>(sender, device, (to, list), scratch),
                Delivering::Port => self.write_to::<false>(sender, device, (to, list), scratch),
                Delivering::Switch => self.write_one_by_one(sender, device, (to, list), scratch),
            };
            if let (1.., Some(port)) = (malformed, &mut self.ports[source]) {
                *MALFORMED(&mut port.counters) += malformed;
            }
        }
    }

    fn delivering(&self, to: usize, has_backpressure: bool) -> Delivering {
        let Some(port) = self.ports[to].as_deref() else {
            return Delivering::Switch;
        };
        let segment = port.face.segment;
        let limits = self.segment_limits.of(segment).is_some();
        let is_here =
            port.remote_worker.is_none() && !port.face.is_moving && port.offload_tables.is_none();
        match () {
            () if has_backpressure || limits || !is_here => Delivering::Switch,
            () if self.mirrors.sees(Side::Tx, to, segment) => Delivering::Switch,
            () if port.takes_all() => Delivering::Plain,
            () => Delivering::Port,
        }
    }

    /// Writes the frames of a list to a receiver, with its stages unless it is `PLAIN`. Returns the number
    /// of those whose sender has left work that cannot be done.
    #[inline(never)]
    fn write_to<const PLAIN: bool>(
        &mut self,
        sender: Sender,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) -> u64 {
        let (burst, buffers) = (&mut scratch.burst, &mut scratch.buffers);
        let Some(port) = self.ports[to].as_deref_mut() else {
            return 0;
        };
        let repeats = scratch.vector.repeats;
        // The place behind the last frame that all stages admitted.
        let mut admitted = usize::MAX;
        let malformed = each(list, &scratch.vector, |n, route, key| {
            let Some(mut out) = frame(sender, device, port, (n, route), key, burst) else {
                return false;
            };
            if PLAIN {
                port.deliver_plain(&mut out, buffers);
                return true;
            }
            let delivery = match admitted == n && repeats >> n & 1 == 1 {
                true => port.deliver_repeated(&mut out, buffers),
                false => port.deliver(&mut out, buffers),
            };
            if matches!(delivery, Delivery::Queued) {
                admitted = n + 1;
            }
            true
        });
        self.mark(to);
        malformed
    }

    /// The same with all stages of single frames: limits of the segment, frames that wait, another worker,
    /// offload rules, mirrors.
    #[inline(never)]
    fn write_one_by_one(
        &mut self,
        sender: Sender,
        device: &dyn Device,
        (to, list): (usize, u64),
        scratch: &mut Scratch,
    ) -> u64 {
        let (burst, buffers) = (&mut scratch.burst, &mut scratch.buffers);
        each(list, &scratch.vector, |n, route, key| {
            let Some(port) = self.ports[to].as_deref() else {
                return true;
            };
            let Some(mut out) = frame(sender, device, port, (n, route), key, burst) else {
                return false;
            };
            self.deliver_or_block(to, &mut out, buffers);
            true
        })
    }
}

/// Calls `write` for each frame of a list, and returns how often it failed.
#[inline(always)]
fn each(
    list: u64,
    vector: &Vector,
    mut write: impl FnMut(usize, Route, &FilterKey) -> bool,
) -> u64 {
    let (mut left, mut failed) = (list, 0);
    while left != 0 {
        let n = left.trailing_zeros() as usize;
        left &= left - 1;
        if let Fate::To(route) = vector.fates[n] {
            failed += u64::from(!write(n, route, &vector.keys[n]));
        }
    }
    failed
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
    let taken = device.taken(burst, n)?;
    let mut out = TxFrame::new(taken, route.payload.into(), route.checked_len.into())?;
    (out.seen, out.now, out.from) = (seen, sender.now, sender.port);
    if let Some(dscp) = sender.dscp {
        dscp::mark(out.head, out.payload, dscp);
    }
    if let (true, Some(mac)) = (route.addressed, port.face.mac) {
        out.head[..mac.0.len()].copy_from_slice(&mac.0);
    }
    Some(out)
}
