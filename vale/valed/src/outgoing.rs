// SPDX-License-Identifier: Apache-2.0
//! A judged frame on its way to one or more ports.
use ring::BUFFER_SIZE;

use crate::filter::Seen;
use crate::limit::Nanoseconds;
use crate::offload::{Checksum, Offload, Segments};
use crate::taken::{Rest, Taken};

/// Most segments of one frame: 64 KB in TCP's smallest usual segments.
const MAX_SEGMENTS: usize = 2048;

/// A frame on its way to one or more ports.
pub struct Outgoing<'a> {
    /// The judged bytes and more, in private memory.
    pub head: &'a mut [u8],
    /// The bytes behind `head`. The sender may change them at any time; no verdict rests on them.
    pub rest: Option<Rest<'a>>,
    pub offload: Offload,
    /// The packet as filters see it; only valid while a port has one.
    pub seen: &'a Seen,
    /// The time of the burst.
    pub now: Nanoseconds,
    /// Offset of the IP packet.
    pub payload: usize,
    /// Bytes of the frame, or of its longest segment.
    pub longest: usize,
}

impl<'a> Outgoing<'a> {
    /// None if the frame cannot be segmented as asked, or if an offload would change one of the
    /// `judged` bytes at its start. A frame with an offload has no `rest`.
    pub fn new(taken: Taken<'a>, payload: usize, judged: usize) -> Option<Self> {
        let len = taken.len();
        let Taken {
            bytes: head,
            rest,
            offload,
        } = taken;
        let (offload, longest) = match offload.gso {
            None => {
                let field = offload.checksum.map_or(judged, Checksum::field);
                (field >= judged).then_some((offload, len))?
            }
            Some(gso) => {
                let segments = Segments::new(head, gso)?;
                let checksum = offload.checksum.filter(|c| *c == segments.checksum())?;
                (segments.count() <= MAX_SEGMENTS).then_some(())?;
                let offload = Offload::segmented(checksum, gso, segments.headers());
                (offload, segments.longest())
            }
        };
        Some(Self {
            head,
            rest,
            offload,
            seen: &Seen::Other,
            now: 0,
            payload,
            longest,
        })
    }

    /// Length of the frame in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.rest.map_or(0, |r| r.len())
    }

    /// All bytes of the frame in private memory; `buffer` holds a frame that has a rest.
    pub fn whole<'b>(&'b self, buffer: &'b mut [u8; BUFFER_SIZE]) -> &'b [u8] {
        let Some(rest) = &self.rest else {
            return self.head;
        };
        let (head, end) = (self.head.len(), self.head.len() + rest.len());
        buffer[..head].copy_from_slice(self.head);
        rest.read(&mut buffer[head..end]);
        &buffer[..end]
    }
}
