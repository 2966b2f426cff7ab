// SPDX-License-Identifier: Apache-2.0
//! A frame that the switch took from a port.
use ring::Mapping;

use crate::frame::gso::TxOffload;

/// The bytes of a frame behind its head, in the sender's ring.
pub type UncopiedTail<'a> = ring::Rest<'a, Mapping>;

/// A frame whose sender has left no work, and whose head is in private memory.
pub type PlainFrame<'a> = ring::Parts<'a, Mapping>;

/// A frame of a burst.
pub struct RxFrame<'a> {
    /// The frame, or its head, in private memory.
    pub bytes: &'a mut [u8],
    pub rest: Option<UncopiedTail<'a>>,
    pub offload: TxOffload,
}

impl RxFrame<'_> {
    /// Length of the frame.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.rest.map_or(0, |r| r.len())
    }
}
