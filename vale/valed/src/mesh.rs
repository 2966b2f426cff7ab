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
use crate::frame::rx_frame::PlainFrame;
use crate::frame::tx_frame::TxFrame;

/// Most workers.
pub const MAX_WORKERS: usize = 16;
/// Messages that wait between two workers.
pub const SLOTS: usize = 1024;
/// Most frames of a message.
pub const LIST: usize = 16;
/// Bytes of the frames of a message, if there are several: two of the longest ones.
const LIST_BYTES: usize = 2 * BUFFER_SIZE;

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

/// A judged frame in private memory, or plain ones from one port to another. What most messages lack comes
/// last: another processor reads each line of the memory that the sender has written.
#[repr(C, align(64))]
pub struct Message {
    envelope: Envelope,
    /// Offset of the IP packet in each frame.
    payload: usize,
    /// Plain frames; 0 for a frame that `single` describes.
    count: usize,
    /// The receiver may have a filter, which needs `seen`. All frames have its flow.
    is_seen: bool,
    /// The bytes of the frames, then those of earlier ones.
    bytes: Vec<u8>,
    lens: [u16; LIST],
    seen: FilterKey,
    single: Single,
}

/// A frame that is alone in its message.
#[derive(Clone, Copy, Default)]
struct Single {
    len: usize,
    longest: usize,
    offload: TxOffload,
    redirected: bool,
    label: Option<(IpAddr, Label)>,
}

impl Default for Message {
    fn default() -> Self {
        let (switch, from) = (GenIndex::default(), GenIndex::default());
        let to = HandoffTarget::Port(GenIndex::default());
        Self {
            envelope: Envelope { switch, from, to },
            payload: 0,
            count: 0,
            is_seen: false,
            bytes: vec![0; LIST_BYTES],
            lens: [0; LIST],
            seen: FilterKey::default(),
            single: Single::default(),
        }
    }
}

/// What the plain frames of a message have in common.
#[derive(Clone, Copy)]
pub struct ListHead<'a> {
    pub envelope: Envelope,
    pub payload: usize,
    /// The flow of all frames, if the receiver may have a filter.
    pub seen: Option<&'a FilterKey>,
}

impl Message {
    fn fill(&mut self, envelope: Envelope, out: &TxFrame<'_>, is_seen: bool) {
        let len = out.len();
        (self.envelope, self.payload, self.count) = (envelope, out.payload, 0);
        self.make_room(len);
        let (head, rest) = self.bytes[..len].split_at_mut(out.head.len());
        head.copy_from_slice(out.head);
        if let Some(tail) = out.rest {
            tail.read(rest);
        }
        self.note_seen(is_seen.then_some(out.seen));
        self.single = Single {
            len,
            longest: out.longest,
            offload: out.offload,
            redirected: out.redirected,
            label: out.label,
        };
    }

    /// A slot keeps no memory of a frame to be segmented.
    fn make_room(&mut self, len: usize) {
        if self.bytes.len() > LONGEST && len <= LIST_BYTES {
            self.bytes = vec![0; LIST_BYTES];
        }
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
    }

    /// Takes the first of some frames, and returns their number.
    fn fill_list(&mut self, head: ListHead<'_>, frames: &[PlainFrame<'_>]) -> usize {
        (self.envelope, self.payload) = (head.envelope, head.payload);
        self.note_seen(head.seen);
        self.make_room(LIST_BYTES);
        let mut free = &mut self.bytes[..];
        self.count = 0;
        for (frame, len) in frames.iter().zip(&mut self.lens) {
            let (bytes, later) = match free.split_at_mut_checked(frame.len()) {
                Some(both) => both,
                None => break,
            };
            let (start, end) = bytes.split_at_mut(frame.head.len());
            start.copy_from_slice(frame.head);
            if let Some(tail) = frame.rest {
                tail.read(end);
            }
            *len = frame.len() as u16;
            self.count += 1;
            free = later;
        }
        debug_assert!(self.count > 0, "a plain frame has a buffer at most");
        self.count
    }

    fn note_seen(&mut self, seen: Option<&FilterKey>) {
        self.is_seen = seen.is_some();
        if let Some(seen) = seen {
            self.seen = *seen;
        }
    }

    pub fn envelope(&self) -> Envelope {
        self.envelope
    }

    /// Frames of the message.
    pub fn frames(&self) -> usize {
        self.count.max(1)
    }

    /// The plain frames; None for a frame with more than its bytes.
    pub fn list(&mut self) -> Option<List<'_>> {
        (self.count > 0).then_some(List {
            payload: self.payload,
            seen: match self.is_seen {
                true => &self.seen,
                false => &FilterKey::Other,
            },
            lens: &self.lens[..self.count],
            bytes: &mut self.bytes,
        })
    }

    /// The frame that is alone in the message.
    pub fn outgoing(&mut self, now: Nanoseconds) -> TxFrame<'_> {
        let single = self.single;
        TxFrame {
            head: &mut self.bytes[..single.len],
            rest: None,
            offload: single.offload,
            seen: match self.is_seen {
                true => &self.seen,
                false => &FilterKey::Other,
            },
            now,
            from: self.envelope.from.index,
            redirected: single.redirected,
            label: single.label,
            payload: self.payload,
            longest: single.longest,
        }
    }
}

/// The plain frames of a message.
pub struct List<'a> {
    pub payload: usize,
    pub seen: &'a FilterKey,
    pub lens: &'a [u16],
    bytes: &'a mut [u8],
}

impl List<'_> {
    /// The frames at some places.
    pub fn frames(&self) -> [PlainFrame<'_>; LIST] {
        let (mut frames, mut rest) = ([PlainFrame::default(); LIST], &self.bytes[..]);
        for (frame, len) in frames.iter_mut().zip(self.lens) {
            (frame.head, rest) = rest.split_at((*len).into());
        }
        frames
    }

    /// Gives each frame to `take`, as one from the port `from`.
    pub fn each(&mut self, from: usize, now: Nanoseconds, mut take: impl FnMut(&mut TxFrame<'_>)) {
        let mut bytes = &mut self.bytes[..];
        for len in self.lens {
            let (head, rest) = bytes.split_at_mut((*len).into());
            bytes = rest;
            take(&mut TxFrame {
                head,
                rest: None,
                offload: TxOffload::default(),
                seen: self.seen,
                now,
                from,
                redirected: false,
                label: None,
                payload: self.payload,
                longest: (*len).into(),
            });
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
    pub frames: Sender<Message>,
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
        let fill = |message: &mut Message| message.fill(envelope, out, is_seen);
        let pushed = queue.is_some_and(|queue| queue.frames.push(fill));
        self.handoffs += u64::from(pushed);
        self.lost += u64::from(!pushed);
        pushed
    }

    /// Copies the first of some plain frames into a message to a worker. Returns their number, 0 if the ring is
    /// full.
    pub fn handoff_list(
        &mut self,
        worker: usize,
        head: ListHead<'_>,
        frames: &[PlainFrame<'_>],
    ) -> usize {
        let queue = self.queues.get_mut(worker).and_then(Option::as_mut);
        let mut taken = 0;
        if let Some(queue) = queue {
            queue
                .frames
                .push(|message| taken = message.fill_list(head, frames));
        }
        self.handoffs += taken as u64;
        taken
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
pub fn mesh(wakers: &[WorkerWaker]) -> Vec<(Peers, Vec<Receiver<Message>>)> {
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
