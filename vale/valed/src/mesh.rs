// SPDX-License-Identifier: Apache-2.0
//! Frames on their way to the port of another worker (docs/adr/0060-workers.md).
//!
//! A worker copies such a frame into the ring to that worker. The two memories differ, so the sender's
//! slots are free before the receiver of the frame sees it.
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ring::{BUFFER_SIZE, LONGEST};
use vale_handoff::{NeedWakeup, Receiver, Sender};

use crate::clock::Nanoseconds;
use crate::frame::gso::TxOffload;
use crate::frame::key::FilterKey;
use crate::frame::nsh::Label;
use crate::frame::tx_frame::TxFrame;

/// Most workers.
pub const MAX_WORKERS: usize = 16;
/// Frames that wait between two workers.
pub const SLOTS: usize = 1024;

/// A port of a switch. The number tells it from later ports at the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenIndex {
    pub index: usize,
    pub id: u64,
}

/// The destination of a frame at the other worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoffTarget {
    Port(GenIndex),
    /// A copy of a mirror.
    Copy(GenIndex),
    /// All ports there that get a flooded frame, except for one.
    Segment {
        segment: u32,
        group: bool,
        except: Option<usize>,
    },
}

/// The place of a frame in the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub switch: GenIndex,
    pub from: GenIndex,
    pub to: HandoffTarget,
}

/// A judged frame in private memory. What most frames lack comes last: another processor reads each line
/// of the memory that the sender has written.
#[repr(C, align(64))]
pub struct Frame {
    envelope: Envelope,
    len: usize,
    payload: usize,
    longest: usize,
    offload: TxOffload,
    redirected: bool,
    /// The receiver may have a filter, which needs `seen`.
    is_seen: bool,
    has_label: bool,
    /// The frame's bytes, then those of earlier ones.
    bytes: Vec<u8>,
    seen: FilterKey,
    label: Option<(IpAddr, Label)>,
}

impl Default for Frame {
    fn default() -> Self {
        let (switch, from) = (GenIndex::default(), GenIndex::default());
        let to = HandoffTarget::Port(GenIndex::default());
        Self {
            envelope: Envelope { switch, from, to },
            len: 0,
            payload: 0,
            longest: 0,
            offload: TxOffload::default(),
            redirected: false,
            is_seen: false,
            has_label: false,
            bytes: vec![0; BUFFER_SIZE],
            seen: FilterKey::default(),
            label: None,
        }
    }
}

impl Frame {
    fn fill(&mut self, envelope: Envelope, out: &TxFrame<'_>, is_seen: bool) {
        self.envelope = envelope;
        self.len = out.len();
        // A slot keeps no memory of a frame to be segmented.
        if self.bytes.len() > LONGEST && self.len <= BUFFER_SIZE {
            self.bytes = vec![0; BUFFER_SIZE];
        }
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len, 0);
        }
        let (head, rest) = self.bytes[..self.len].split_at_mut(out.head.len());
        head.copy_from_slice(out.head);
        if let Some(tail) = out.rest {
            tail.read(rest);
        }
        self.offload = out.offload;
        (self.payload, self.longest) = (out.payload, out.longest);
        (self.redirected, self.is_seen) = (out.redirected, is_seen);
        if is_seen {
            self.seen = *out.seen;
        }
        self.has_label = out.label.is_some();
        if self.has_label {
            self.label = out.label;
        }
    }

    pub fn envelope(&self) -> Envelope {
        self.envelope
    }

    pub fn outgoing(&mut self, now: Nanoseconds) -> TxFrame<'_> {
        TxFrame {
            head: &mut self.bytes[..self.len],
            rest: None,
            offload: self.offload,
            seen: match self.is_seen {
                true => &self.seen,
                false => &FilterKey::Other,
            },
            now,
            from: self.envelope.from.index,
            redirected: self.redirected,
            label: self.label.filter(|_| self.has_label),
            payload: self.payload,
            longest: self.longest,
        }
    }
}

/// The sleep of a worker, as the others see it.
#[derive(Clone)]
pub struct WorkerWaker {
    pub need_wakeup: Arc<NeedWakeup>,
    pub wake: Arc<OwnedFd>,
}

impl WorkerWaker {
    pub fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

/// The queue to another worker.
pub struct PeerQueue {
    pub frames: Sender<Frame>,
    pub waker: WorkerWaker,
}

/// The queues to the other workers, by their numbers.
#[derive(Default)]
pub struct Peers {
    queues: Vec<Option<PeerQueue>>,
    /// Frames handed off, and frames that found a ring full.
    pub handoffs: u64,
    pub lost: u64,
}

impl Peers {
    pub fn new(queues: Vec<Option<PeerQueue>>) -> Self {
        Self {
            queues,
            ..Self::default()
        }
    }

    pub fn has_room(&mut self, worker: usize) -> bool {
        let queue = self.queues.get_mut(worker).and_then(Option::as_mut);
        queue.is_some_and(|queue| queue.frames.has_room())
    }

    /// Copies a frame into the ring to a worker, with what filters see of it if one may judge it there.
    /// False if the ring is full.
    pub fn handoff_to(
        &mut self,
        worker: usize,
        envelope: Envelope,
        out: &TxFrame<'_>,
        is_seen: bool,
    ) -> bool {
        let queue = self.queues.get_mut(worker).and_then(Option::as_mut);
        let fill = |frame: &mut Frame| frame.fill(envelope, out, is_seen);
        let pushed = queue.is_some_and(|queue| queue.frames.push(fill));
        self.handoffs += u64::from(pushed);
        self.lost += u64::from(!pushed);
        pushed
    }

    /// Shows the other workers their frames, and wakes those that sleep.
    pub fn publish(&mut self) {
        for queue in self.queues.iter_mut().flatten() {
            if queue.frames.publish() && queue.waker.need_wakeup.is_due() {
                queue.waker.wake();
            }
        }
    }
}

/// The rings between all workers: the outgoing and the incoming ones of each.
pub fn mesh(wakers: &[WorkerWaker]) -> Vec<(Peers, Vec<Receiver<Frame>>)> {
    let count = wakers.len();
    let mut queues: Vec<Vec<Option<PeerQueue>>> = (0..count).map(|_| Vec::new()).collect();
    let mut incoming: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    for (from, row) in queues.iter_mut().enumerate() {
        for (to, waker) in wakers.iter().enumerate() {
            row.push((from != to).then(|| {
                let (frames, receiver) = vale_handoff::ring(SLOTS);
                incoming[to].push(receiver);
                let waker = waker.clone();
                PeerQueue { frames, waker }
            }));
        }
    }
    let peers = queues.into_iter().map(Peers::new);
    peers.zip(incoming).collect()
}
