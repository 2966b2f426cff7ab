// SPDX-License-Identifier: Apache-2.0
//! The frames of a port that waits for full receivers.
use std::net::IpAddr;

use crate::clock::Nanoseconds;
use crate::frame::gso::TxOffload;
use crate::frame::key::FilterKey;
use crate::frame::nsh::Label;
use crate::frame::tx_frame::TxFrame;

/// The longest wait without a frame that finds room. Then the frames go on and may be lost.
#[derive(Clone, Copy)]
pub struct Patience(pub Nanoseconds);

impl Default for Patience {
    fn default() -> Self {
        Self(100_000_000)
    }
}

/// A judged frame for a port whose queue was full, in private memory.
struct BlockedFrame {
    to: usize,
    from: usize,
    bytes: Vec<u8>,
    offload: TxOffload,
    seen: FilterKey,
    redirected: bool,
    label: Option<(IpAddr, Label)>,
    payload: usize,
    longest: usize,
}

/// The frames of one port, of one burst at most, in their order.
#[derive(Default)]
pub struct BlockedFrames {
    frames: Vec<BlockedFrame>,
    since: Nanoseconds,
}

impl BlockedFrames {
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Adds the later frames of the same port.
    pub fn append(&mut self, mut later: Self) {
        if self.is_empty() {
            self.since = later.since;
        }
        self.frames.append(&mut later.frames);
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// True if a frame waits for the port: later frames to it wait too and keep their order.
    pub fn waits_for(&self, to: usize) -> bool {
        self.frames.iter().any(|frame| frame.to == to)
    }

    pub fn add(&mut self, to: usize, out: &TxFrame<'_>) {
        if self.is_empty() {
            self.since = out.now;
        }
        let mut bytes = Vec::new();
        let TxFrame {
            offload,
            payload,
            longest,
            ..
        } = out.copied(&mut bytes);
        self.frames.push(BlockedFrame {
            to,
            from: out.from,
            bytes,
            offload,
            seen: *out.seen,
            redirected: out.redirected,
            label: out.label,
            payload,
            longest,
        });
    }

    /// Forgets the frames for a port that is gone.
    pub fn forget(&mut self, to: usize) {
        self.frames.retain(|frame| frame.to != to);
    }

    /// Offers each frame, in order, to `deliver`, which refuses one without room if it may still
    /// wait. True if it took any.
    pub fn release(
        &mut self,
        now: Nanoseconds,
        patience: Patience,
        mut deliver: impl FnMut(usize, &mut TxFrame<'_>, bool) -> bool,
    ) -> bool {
        let may_wait = now.saturating_sub(self.since) < patience.0;
        let (before, mut full) = (self.frames.len(), Vec::new());
        self.frames.retain_mut(|frame| {
            if full.contains(&frame.to) || !deliver(frame.to, &mut frame.outgoing(now), may_wait) {
                full.push(frame.to);
                return true;
            }
            false
        });
        let moved = self.frames.len() < before;
        if moved {
            self.since = now;
        }
        moved
    }
}

impl BlockedFrame {
    fn outgoing(&mut self, now: Nanoseconds) -> TxFrame<'_> {
        TxFrame {
            head: &mut self.bytes,
            rest: None,
            offload: self.offload,
            seen: &self.seen,
            now,
            from: self.from,
            redirected: self.redirected,
            label: self.label,
            payload: self.payload,
            longest: self.longest,
        }
    }
}
