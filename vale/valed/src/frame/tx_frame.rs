// SPDX-License-Identifier: Apache-2.0
//! A judged frame on its way to one or more ports.
use std::net::IpAddr;

use ring::LONGEST;

use crate::clock::Nanoseconds;
use crate::frame::gso::{Checksum, Segments, TxOffload, complete};
use crate::frame::key::FilterKey;
use crate::frame::nsh::Label;
use crate::frame::rx_frame::{RxFrame, UncopiedTail};

/// Most segments of one frame: 64 KB in TCP's smallest usual segments.
const MAX_SEGMENTS: usize = 2048;

/// Appends a frame of two parts to `bytes`.
pub fn append(bytes: &mut Vec<u8>, head: &[u8], rest: Option<UncopiedTail<'_>>) {
    bytes.extend_from_slice(head);
    if let Some(rest) = rest {
        let start = bytes.len();
        bytes.resize(start + rest.len(), 0);
        rest.read(&mut bytes[start..]);
    }
}

/// A frame on its way to one or more ports.
pub struct TxFrame<'a> {
    /// The judged bytes and more, in private memory.
    pub head: &'a mut [u8],
    /// The bytes behind `head`. The sender may change them at any time; no verdict rests on them.
    pub rest: Option<UncopiedTail<'a>>,
    pub offload: TxOffload,
    /// The packet as filters see it; only valid while a port has one.
    pub seen: &'a FilterKey,
    /// The time of the burst.
    pub now: Nanoseconds,
    /// Index of the port that sent the frame.
    pub from: usize,
    /// A rule of a port redirected the frame, so no other rule does.
    pub redirected: bool,
    /// The host that continues with the frame's chain, and the place in the chain.
    pub label: Option<(IpAddr, Label)>,
    /// Offset of the IP packet.
    pub payload: usize,
    /// Bytes of the frame, or of its longest segment.
    pub longest: usize,
}

impl<'a> TxFrame<'a> {
    /// None if the frame cannot be segmented as asked, or if an offload would change one of the
    /// `checked_len` bytes at its start. A frame to be segmented has no `rest`.
    pub fn new(taken: RxFrame<'a>, payload: usize, checked_len: usize) -> Option<Self> {
        let len = taken.len();
        let RxFrame {
            bytes: head,
            rest,
            offload,
        } = taken;
        let (offload, longest) = match offload.gso {
            None => {
                let field = offload.checksum.map_or(checked_len, Checksum::field);
                (field >= checked_len).then_some((offload, len))?
            }
            Some(gso) => {
                let segments = Segments::new(head, gso)?;
                let checksum = offload.checksum.filter(|c| *c == segments.checksum())?;
                (segments.count() <= MAX_SEGMENTS).then_some(())?;
                let offload = TxOffload::segmented(checksum, gso, segments.headers());
                (offload, segments.longest())
            }
        };
        Some(Self {
            head,
            rest,
            offload,
            seen: &FilterKey::Other,
            now: 0,
            from: 0,
            redirected: false,
            label: None,
            payload,
            longest,
        })
    }

    /// Length of the frame in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.rest.map_or(0, |r| r.len())
    }

    /// The number of frames that it becomes for a guest. Rates count it as that many.
    pub fn count(&self) -> usize {
        let segments = self
            .offload
            .gso
            .and_then(|gso| Segments::new(self.head, gso));
        segments.map_or(1, |segments| segments.count())
    }

    /// Completes the sender's offloads and hands over each frame to send: its head and its rest.
    pub fn finish(
        &mut self,
        segment: &mut Vec<u8>,
        mut hand_over: impl FnMut(&[u8], Option<UncopiedTail<'_>>),
    ) {
        let Some(gso) = self.offload.gso else {
            return match self.complete_checksum(segment) {
                true => hand_over(segment, None),
                false => hand_over(self.head, self.rest),
            };
        };
        let Some(mut segments) = Segments::new(self.head, gso) else {
            return;
        };
        while segments.next_into(segment) {
            hand_over(segment, None);
        }
    }

    /// Completes a checksum that the sender has left. The sender may change the end of a frame in its
    /// ring, so such a frame is completed in a copy. True if the frame to send is that copy in `whole`.
    fn complete_checksum(&mut self, whole: &mut Vec<u8>) -> bool {
        let Some(checksum) = self.offload.checksum else {
            return false;
        };
        if self.rest.is_some() {
            whole.clear();
            append(whole, self.head, self.rest);
            complete(whole, checksum);
            return true;
        }
        self.offload.checksum = None;
        complete(self.head, checksum);
        false
    }

    /// A copy in `bytes`, which no later change of the frame reaches.
    pub fn copied<'b>(&'b self, bytes: &'b mut Vec<u8>) -> TxFrame<'b> {
        bytes.clear();
        append(bytes, self.head, self.rest);
        TxFrame {
            head: bytes,
            rest: None,
            label: None,
            ..*self
        }
    }

    /// All bytes of the frame in private memory; `buffer` holds a frame that has a rest.
    pub fn whole<'b>(&'b self, buffer: &'b mut [u8; LONGEST]) -> &'b [u8] {
        let Some(rest) = &self.rest else {
            return self.head;
        };
        let (head, end) = (self.head.len(), self.head.len() + rest.len());
        buffer[..head].copy_from_slice(self.head);
        rest.read(&mut buffer[head..end]);
        &buffer[..end]
    }
}
