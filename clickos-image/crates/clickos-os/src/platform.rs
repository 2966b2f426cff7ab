// SPDX-License-Identifier: Apache-2.0
//! Grants, event channels and shared memory for the network devices.
use crate::console::Console;
use alloc::rc::Rc;
use click_packet::Region;
use xen_net::{Access, DomId, EvtchnPort, GrantRef, Platform};
use xen_sys::{Pages, events, grants};

/// This guest, on Xen.
#[derive(Clone, Debug)]
pub struct Xen {
    console: Rc<Console>,
}

impl Xen {
    /// The devices' complaints go to this console.
    pub fn new(console: Rc<Console>) -> Self {
        Self { console }
    }
}

impl Platform for Xen {
    type Memory = Pages;

    fn allocate(&self, pages: usize) -> Option<Pages> {
        Pages::new(pages)
    }

    fn allocate_blocks(&self, count: usize) -> Option<(Pages, Region)> {
        Pages::blocks(count)
    }

    fn grant(&self, memory: &Pages, page: usize, to: DomId, access: Access) -> Option<GrantRef> {
        let granted = grants::grant(memory, page, to.0, access == Access::Read);
        granted.map(GrantRef).ok()
    }

    fn end_grant(&self, gref: GrantRef) -> bool {
        grants::end(gref.0)
    }

    fn open_evtchn(&self, remote: DomId) -> Option<EvtchnPort> {
        events::open(remote.0).map(EvtchnPort).ok()
    }

    fn notify(&self, port: EvtchnPort) {
        events::notify(port.0);
    }

    fn take_event(&self, port: EvtchnPort) -> bool {
        events::take(port.0)
    }

    fn close_evtchn(&self, port: EvtchnPort) {
        events::close(port.0);
    }

    fn say(&self, line: &str) {
        self.console.line(line);
    }
}
