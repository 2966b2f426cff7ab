// SPDX-License-Identifier: Apache-2.0
//! The guest's operating system as one device uses it: what costs a hypercall, or wakes somebody,
//! is counted.
use crate::platform::{Access, DomId, EvtchnPort, GrantRef, Platform};
use alloc::rc::Rc;
use click_packet::Region;
use core::cell::Cell;

/// The costs of a device besides its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Events sent to the backend.
    pub events_sent: u64,
    /// Events taken; several that came before one was taken count once.
    pub events_taken: u64,
    /// Grants that were made.
    pub grants_made: u64,
    /// Grants that were ended.
    pub grants_ended: u64,
}

/// A platform that counts for one device.
pub(crate) struct CountingPlatform<P> {
    platform: Rc<P>,
    costs: Cell<Costs>,
}

impl<P> CountingPlatform<P> {
    pub fn new(platform: &Rc<P>) -> Rc<Self> {
        let platform = Rc::clone(platform);
        let costs = Cell::default();
        Rc::new(Self { platform, costs })
    }

    /// Counts one where it is true.
    fn count(&self, is: bool, which: fn(&mut Costs) -> &mut u64) {
        let mut costs = self.costs.get();
        *which(&mut costs) += u64::from(is);
        self.costs.set(costs);
    }
}

impl<P: Platform> Platform for CountingPlatform<P> {
    type Memory = P::Memory;

    fn allocate(&self, pages: usize) -> Option<P::Memory> {
        self.platform.allocate(pages)
    }

    fn allocate_blocks(&self, count: usize) -> Option<(P::Memory, Region)> {
        self.platform.allocate_blocks(count)
    }

    fn grant(
        &self,
        memory: &P::Memory,
        page: usize,
        to: DomId,
        access: Access,
    ) -> Option<GrantRef> {
        let made = self.platform.grant(memory, page, to, access);
        self.count(made.is_some(), |costs| &mut costs.grants_made);
        made
    }

    fn end_grant(&self, gref: GrantRef) -> bool {
        let ended = self.platform.end_grant(gref);
        self.count(ended, |costs| &mut costs.grants_ended);
        ended
    }

    fn open_evtchn(&self, remote: DomId) -> Option<EvtchnPort> {
        self.platform.open_evtchn(remote)
    }

    fn notify(&self, port: EvtchnPort) {
        self.count(true, |costs| &mut costs.events_sent);
        self.platform.notify(port);
    }

    fn take_event(&self, port: EvtchnPort) -> bool {
        let taken = self.platform.take_event(port);
        self.count(taken, |costs| &mut costs.events_taken);
        taken
    }

    fn close_evtchn(&self, port: EvtchnPort) {
        self.platform.close_evtchn(port);
    }

    fn say(&self, line: &str) {
        self.platform.say(line);
    }

    fn costs(&self) -> Costs {
        self.costs.get()
    }
}
