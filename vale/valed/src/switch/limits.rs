// SPDX-License-Identifier: Apache-2.0
//! The limits of ports and segments.
use std::collections::BTreeMap;
use std::sync::Arc;

use vale_proto::{PortName, SegmentLimit};

use super::{Switch, Target};
use crate::frame::tx_frame::TxFrame;
use crate::policy::token_bucket::PortLimits;
use crate::port::Counter;

/// The limits of the segments that have some. All workers share their tokens.
#[derive(Default)]
pub struct SegmentLimits(BTreeMap<u32, Arc<PortLimits>>);

impl SegmentLimits {
    /// Replaces the limits of a segment by others; the same ones keep their tokens.
    fn set(&mut self, segment: u32, limits: Arc<PortLimits>) {
        match self.0.get(&segment) {
            Some(old) if old.has_rates_of(&limits) => (),
            _ if limits.limits_any() => drop(self.0.insert(segment, limits)),
            _ => drop(self.0.remove(&segment)),
        }
    }

    pub fn of(&self, segment: u32) -> Option<&PortLimits> {
        match self.0.is_empty() {
            true => None,
            false => self.0.get(&segment).map(|limits| &**limits),
        }
    }

    /// The rate of all frames from the segment's ports.
    pub fn enters(&self, segment: u32, out: &TxFrame<'_>) -> Result<(), Counter> {
        let limits = self.of(segment);
        admitted(limits.is_none_or(|limits| limits.rx.admits(out.count(), out.len(), out.now)))
    }

    /// The rate of all frames to the segment's ports.
    pub fn leaves(&self, segment: u32, out: &TxFrame<'_>) -> Result<(), Counter> {
        let limits = self.of(segment);
        admitted(limits.is_none_or(|limits| limits.tx.admits(out.count(), out.len(), out.now)))
    }
}

fn admitted(within: bool) -> Result<(), Counter> {
    match within {
        true => Ok(()),
        false => Err(|c| &mut c.dropped_rate),
    }
}

impl Switch {
    /// Replaces the limits of a port by others; the same ones keep their tokens. False if there is no
    /// such port.
    pub fn set_limits(&mut self, name: &PortName, limits: PortLimits) -> bool {
        let limits = limits.limits_any().then(|| Box::new(limits));
        let port = self.port_mut(name);
        let found = port.map(|port| match (&port.limits, &limits) {
            (Some(old), Some(new)) if old.has_rates_of(new) => (),
            _ => port.limits = limits,
        });
        found.is_some()
    }

    pub fn set_segment_limits(&mut self, segment: u32, limits: impl Into<Arc<PortLimits>>) {
        let limits = limits.into();
        self.segment_limits.set(segment, limits);
    }

    /// The limits of all segments that have some.
    pub fn segment_limits(&self) -> impl Iterator<Item = SegmentLimit> {
        let all = self.segment_limits.0.iter();
        all.map(|(segment, limits)| SegmentLimit {
            switch: self.name.clone(),
            segment: *segment,
            limits: limits.set,
        })
    }

    /// True within the budgets of the source and of the segment for group frames, or for frames to
    /// unknown addresses.
    pub(super) fn may_flood(
        &self,
        source: usize,
        Target { segment, group, .. }: Target,
        out: &TxFrame<'_>,
    ) -> bool {
        let port = self.ports[source].as_ref();
        let of_port = port.and_then(|port| port.limits.as_deref());
        let of_segment = self.segment_limits.of(segment);
        let mut both = of_port.into_iter().chain(of_segment);
        both.all(|limits| match group {
            true => limits.group.admits(out.count(), out.now),
            false => limits.unknown.admits(out.count(), out.now),
        })
    }
}
