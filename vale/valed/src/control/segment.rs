// SPDX-License-Identifier: Apache-2.0
//! The verbs about segments.
use control_socket::{ApiError, Done, Peer};
use log::info;
use vale_proto::{SegmentLimit, SegmentList, Segments};

use super::{Control, no_such_switch, stopped};

impl Control {
    pub(super) fn segment_limit(&self, peer: &Peer, set: SegmentLimit) -> Result<Done, ApiError> {
        set.check()
            .map_err(|e| ApiError::bad_request(format!("segment-limit: {e}")))?;
        let found = self.forwarder.set_segment_limits(&set);
        let SegmentLimit {
            switch, segment, ..
        } = set;
        if !found.ok_or_else(stopped)? {
            return Err(no_such_switch(&switch));
        }
        info!(
            "{switch}: limits of segment {segment} set by uid {}",
            peer.uid
        );
        Ok(Done {})
    }

    pub(super) fn segment_list(&self, _: &Peer, list: SegmentList) -> Result<Segments, ApiError> {
        let segments = self.forwarder.segments(list.switch.as_ref());
        let segments = segments.ok_or_else(stopped)?;
        Ok(Segments { segments })
    }
}
