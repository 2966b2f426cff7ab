// SPDX-License-Identifier: Apache-2.0
//! Frames that would go in a circle: through guests with two ports, or through a hop of a chain again
//! (docs/adr/0032-chains.md).
use std::time::Instant;

use vale_proto::{Mac, PortName};

use super::Switch;
use crate::chain::{Next, Steering};
use crate::clock::Nanoseconds;
use crate::frame::headers::Ethernet;
use crate::frame::tx_frame::TxFrame;
use crate::port::Counter;
use control_socket::EventLimit;

/// Log lines about circles of one switch in a minute.
const LOG_LINES_PER_MINUTE: u32 = 10;
pub(super) const LOOP: Counter = |c| &mut c.dropped_loop;

/// Bounds the log: guests can send frames in circles without end.
pub(super) struct Lines(EventLimit);

impl Default for Lines {
    fn default() -> Self {
        Self(EventLimit::new(LOG_LINES_PER_MINUTE))
    }
}

impl Switch {
    /// Refuses a frame that came back, and the frames that a hop sends beyond its copies.
    pub(super) fn check_circle(
        &mut self,
        source: usize,
        ethernet: &Ethernet,
        step: Option<Steering>,
        out: &TxFrame<'_>,
    ) -> Result<(), Counter> {
        match step {
            Some(step) if !step.enters => {
                self.check_step(step, source, ethernet, out.count(), out.now)
            }
            None if self.chains.isolates(source) => Ok(()),
            _ if self.notes_station(source, ethernet, out.now) => Ok(()),
            _ => Err(self.cut_station(source, ethernet)),
        }
    }

    /// Refuses frames of a hop that would go back to their station's uplink, and those beyond its copies.
    pub(super) fn check_step(
        &mut self,
        step: Steering,
        source: usize,
        ethernet: &Ethernet,
        frames: usize,
        now: Nanoseconds,
    ) -> Result<(), Counter> {
        let exits = step.next == Next::Exit;
        if exits && self.goes_back(step, source, ethernet, now) {
            return Err(|c| &mut c.dropped_spoof);
        }
        match self.chains.leaves(step, frames, now) {
            true => Ok(()),
            false => Err(self.cut_step(step, source, None, frames)),
        }
    }

    /// Notes the station that sends a frame from a port. False for a frame that comes back: its source is
    /// another station of the segment. It is a group frame, or its port is an open one of a guest.
    fn notes_station(&mut self, source: usize, ethernet: &Ethernet, now: Nanoseconds) -> bool {
        let Some(port) = self.ports[source].as_deref() else {
            return false;
        };
        if port.face.is_path() {
            return true;
        }
        let (segment, station) = (port.face.segment, ethernet.source);
        if port.face.learns || port.face.has_virtual_router(station) {
            if self.lookup.find(segment, station).is_none() {
                self.learned.learn(segment, station, source, now);
            }
            return true;
        }
        if self.returned(source, ethernet, now) {
            return false;
        }
        if self.owner(segment, station, now).is_none() {
            self.heard.learn(segment, station, source, now);
        }
        true
    }

    /// True for a frame that comes back. See [`Self::notes_station`].
    pub(super) fn returned(&self, source: usize, ethernet: &Ethernet, now: Nanoseconds) -> bool {
        let Some(port) = self.ports[source].as_deref() else {
            return false;
        };
        let (segment, station) = (port.face.segment, ethernet.source);
        if port.face.mac == Some(station) || port.face.learns || port.face.is_path() {
            return false;
        }
        if port.face.has_virtual_router(station) {
            return false;
        }
        let is_open_guest = port.face.is_open && port.face.mac.is_some();
        match self.owner(segment, station, now) {
            Some(owner) => {
                owner != source && (is_open_guest || ethernet.destination.is_multicast())
            }
            // A guard may permit one address at two ports; it moves between them.
            None => {
                let last = || self.heard.find(segment, station, now);
                is_open_guest && last().is_some_and(|last| last != source)
            }
        }
    }

    /// The port of a station: a guest's own, or the uplink behind which it is.
    pub(super) fn owner(&self, segment: u32, station: Mac, now: Nanoseconds) -> Option<usize> {
        let owner = self.lookup.find(segment, station);
        owner.or_else(|| self.station(segment, station, now))
    }

    /// Notes a frame from a port that comes back, and returns its counter.
    #[cold]
    fn cut_station(&mut self, source: usize, ethernet: &Ethernet) -> Counter {
        let station = ethernet.source;
        self.log_loop(source, |port| {
            format!("{port}: a frame of {station} came back, and was dropped as a loop")
        });
        LOOP
    }

    /// Notes frames of a chain that are cut: `to` is the port of a hop that they would enter again. Without
    /// it their hop sent too many. Returns their counter.
    #[cold]
    pub(super) fn cut_step(
        &mut self,
        step: Steering,
        source: usize,
        to: Option<usize>,
        frames: usize,
    ) -> Counter {
        let hop = self.chains.count_looped(step, to, frames);
        let hop = hop.map_or("a former hop".to_owned(), |hop| format!("hop {hop}"));
        let chain = self.chains.name(step).clone();
        let entered = to.and_then(|to| Some(self.ports[to].as_deref()?.face.name.clone()));
        self.log_loop(source, |port| match &entered {
            Some(entered) => format!(
                "{port}: chain {chain}: {hop}: a frame to {entered} passed the chain before, and was dropped as a loop"
            ),
            None => format!(
                "{port}: chain {chain}: {hop}: sends more frames than it declares; they were dropped as a loop"
            ),
        });
        LOOP
    }

    fn log_loop(&mut self, source: usize, text: impl Fn(&PortName) -> String) {
        let Some(port) = self.ports[source].as_deref() else {
            return;
        };
        if self.lines.0.allows(Instant::now()) {
            log::warn!("{}:{}", self.name, text(&port.face.name));
        }
    }
}
