// SPDX-License-Identifier: Apache-2.0
//! Several pairs of rings as the far end of one port (docs/rings.md).
//!
//! The port stays whole: one worker serves all queues, with one lookup, filter and rate.
mod flow;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use vale_proto::Counters;

use crate::device::ring_port::RingPort;
use crate::device::{Buffers, Burst, Device};
use crate::frame::gso::TxOffload;
use crate::frame::rx_frame::{RxFrame, UncopiedTail};
use crate::frame::tx_frame::TxFrame;

/// Most queues of a guest's port.
pub const MAX: usize = 4;

/// The queues of a guest, two or more.
pub struct Queues {
    queues: Vec<RingPort>,
    /// An epoll set of the queues' notifications, which epoll can watch like each of them.
    events: OwnedFd,
    /// The queue of the last burst.
    current: usize,
}

/// The far end of a guest with these rings.
///
/// # Errors
/// There are none, or the kernel's about the epoll set.
pub fn device(mut queues: Vec<RingPort>) -> io::Result<Box<dyn Device>> {
    Ok(match queues.len() {
        0 => return Err(io::Error::other("no queue")),
        1 => Box::new(queues.remove(0)),
        _ => Box::new(Queues::new(queues)?),
    })
}

impl Queues {
    fn new(queues: Vec<RingPort>) -> io::Result<Self> {
        let events = epoll::create(CreateFlags::CLOEXEC)?;
        for fd in queues.iter().filter_map(Device::event_fd) {
            epoll::add(&events, fd, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self {
            queues,
            events,
            current: 0,
        })
    }

    /// The queue for a frame. A flow stays in one queue, so its frames keep their order.
    fn queue_for(&mut self, out: &TxFrame<'_>) -> &mut RingPort {
        let flow = flow::hash(out.head, out.payload).unwrap_or(0);
        let index = flow % self.queues.len() as u64;
        &mut self.queues[index as usize]
    }
}

impl Device for Queues {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.events.as_fd())
    }

    /// The set does not say which queue had the event: asking it costs a system call, too.
    fn take_event(&mut self) {
        self.queues.iter_mut().for_each(Device::take_event);
    }

    /// Takes a burst from the next queue that has frames. The other methods about the burst follow
    /// before the next call.
    fn fetch(&mut self, burst: &mut Burst) -> usize {
        let (all, last) = (self.queues.len(), self.current);
        for index in (1..=all).map(|n| (last + n) % all) {
            let count = self.queues[index].fetch(burst);
            if count > 0 {
                self.current = index;
                return count;
            }
        }
        0
    }

    fn head<'a>(&self, burst: &'a Burst, n: usize) -> Option<&'a [u8]> {
        self.queues[self.current].head(burst, n)
    }

    fn peek<'a>(&self, burst: &'a Burst, n: usize) -> Option<&'a [u8]> {
        self.queues[self.current].peek(burst, n)
    }

    fn work(&self, burst: &Burst, n: usize) -> Option<TxOffload> {
        self.queues[self.current].work(burst, n)
    }

    fn rest<'a>(&'a self, burst: &Burst, n: usize) -> Option<UncopiedTail<'a>> {
        self.queues[self.current].rest(burst, n)
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        self.queues[self.current].taken(burst, n)
    }

    fn taken_whole<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        self.queues[self.current].taken_whole(burst, n)
    }

    fn has_room(&mut self, out: &TxFrame<'_>) -> bool {
        self.queue_for(out).has_room(out)
    }

    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters) {
        self.queue_for(out).push(out, buffers, counters);
    }

    fn release(&mut self) {
        self.queues.iter_mut().for_each(Device::release);
    }

    fn flush(&mut self, counters: &mut Counters) {
        for queue in &mut self.queues {
            queue.flush(counters);
        }
    }

    fn sleep_prepare(&mut self) -> bool {
        let queues = self.queues.iter_mut();
        queues.fold(false, |busy, queue| queue.sleep_prepare() | busy)
    }

    fn wake_done(&mut self) {
        self.queues.iter_mut().for_each(Device::wake_done);
    }

    fn malformed(&self) -> u64 {
        let counts = self.queues.iter().map(Device::malformed);
        counts.fold(0, u64::saturating_add)
    }

    fn discard(&mut self) {
        self.queues.iter_mut().for_each(Device::discard);
    }
}
