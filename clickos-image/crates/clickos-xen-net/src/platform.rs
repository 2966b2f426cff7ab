// SPDX-License-Identifier: Apache-2.0
//! What the devices need of the guest's operating system.
use crate::counting_platform::Costs;
use click_packet::Region;
use core::fmt;

/// A domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomId(pub u16);

/// A grant reference of this guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantRef(pub u32);

/// An event channel's number in this guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvtchnPort(pub u32);

/// The other domain's rights on a granted page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    ReadWrite,
}

/// Shared memory, grants and event channels of this guest. The methods take `&self`, so that all
/// devices share one platform; none of them waits.
pub trait Platform {
    /// Memory that is granted to others and therefore only reached through [`ring::Memory`];
    /// `ring::Mapping::from_raw` makes one. Dropping it gives the pages back to the guest: they
    /// must not be granted any more then.
    type Memory: ring::Memory;

    /// `pages` zeroed pages that follow each other in the guest's address space, page aligned.
    fn allocate(&self, pages: usize) -> Option<Self::Memory>;

    /// `count` blocks of [`Region::BLOCK`] bytes for a device's packets, with the color of
    /// [`ring::layout::Layout::color`]. The memory is for grants and reaches no byte. The packets keep it
    /// alive, too.
    fn allocate_blocks(&self, count: usize) -> Option<(Self::Memory, Region)>;

    /// Lets `to` reach page number `page` of `memory`; `None` if the grant table is full.
    fn grant(
        &self,
        memory: &Self::Memory,
        page: usize,
        to: DomId,
        access: Access,
    ) -> Option<GrantRef>;

    /// Ends a grant. False if the other domain still has the page mapped or copies from it: the
    /// grant continues, and this may be tried again later.
    fn end_grant(&self, gref: GrantRef) -> bool;

    /// An event channel that `remote` can bind to; its events never interrupt, they are waited
    /// for and taken.
    fn open_evtchn(&self, remote: DomId) -> Option<EvtchnPort>;

    /// Sends an event.
    fn notify(&self, port: EvtchnPort);

    /// Takes a pending event: true if there was one since the last call.
    fn take_event(&self, port: EvtchnPort) -> bool;

    /// Closes an event channel of [`Platform::open_evtchn`].
    fn close_evtchn(&self, port: EvtchnPort);

    /// Writes a line to the console; called at most once per device and cause.
    fn say(&self, line: &str);

    /// The costs of all calls so far, on a platform that counts them.
    fn costs(&self) -> Costs {
        Costs::default()
    }
}

impl fmt::Display for GrantRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for EvtchnPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
