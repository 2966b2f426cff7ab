// SPDX-License-Identifier: Apache-2.0
//! The guest's connection to the Xen store.
use crate::events;
use crate::state::{STATE, page};
use core::sync::atomic::Ordering::Relaxed;
use xenstore::page::SharedPage;
use xenstore::{Index, Notify, Page, RingClient};

/// Notifies the store that the ring changed.
#[derive(Debug)]
pub struct Notifier(());

impl Notify for Notifier {
    fn notify(&mut self) {
        events::notify(STATE.store_port.load(Relaxed));
    }
}

/// A new client of the store's ring; an older one must not be used any more. Answers and events that
/// are in the ring are dropped: they are for the older one.
pub fn store_client() -> RingClient<SharedPage, Notifier> {
    let (mut page, notifier) = store_ring();
    page.store(Index::RspCons, page.load(Index::RspProd));
    RingClient::new(page, notifier)
}

/// The store's ring itself, for a guest that breaks its rules.
pub fn store_ring() -> (SharedPage, Notifier) {
    let base = page(&STATE.store).base();
    // SAFETY: boot found the page, which is mapped as long as the guest lives. Two clients would
    // spoil each other's messages, but all accesses are volatile.
    (unsafe { SharedPage::new(base) }, Notifier(()))
}
