// SPDX-License-Identifier: Apache-2.0
use alloc::vec::Vec;

use click_core::offload::OffloadRequest;
use xenstore::WatchEvent;

/// Something for the control thread.
pub(crate) enum ControlEvent {
    /// An event of the store; none if some were lost.
    Event(Option<WatchEvent>),
    OffloadRequests(Vec<OffloadRequest>),
}
