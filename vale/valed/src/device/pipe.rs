// SPDX-License-Identifier: Apache-2.0
//! A pipe: two ports that hand their frames to each other.
//!
//! Pipes join segments, of one switch or of two, to a tree. A pipe that would close a loop is
//! refused, so no frame comes back through pipes.
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use vale_proto::{Counters, FarEnd, PipeName, SwitchName};

use crate::device::{BURST, Buffers, Burst, Device};
use crate::frame::rx_frame::RxFrame;
use crate::frame::tx_frame::{TxFrame, append};

/// Frames that wait for one end.
const QUEUE: usize = 512;

/// The segment of a switch that an end belongs to.
pub type PipeEnd = (SwitchName, u32);

/// The pipes of this host by their names.
#[derive(Default)]
pub struct Pipes(Arc<Mutex<BTreeMap<PipeName, Pipe>>>);

#[derive(Default)]
struct Pipe {
    /// The places of the open ends.
    places: [Option<PipeEnd>; 2],
    queues: Arc<Mutex<Queues>>,
}

#[derive(Default)]
struct Queues {
    open: [bool; 2],
    /// The eventfd of an end whose worker sleeps.
    asleep: [Option<Arc<OwnedFd>>; 2],
    /// The frames for each end. The second value, which VXLAN needs, is 0.
    inboxes: [VecDeque<(Vec<u8>, usize)>; 2],
    /// Memory of frames that the switch has forwarded.
    spare: Vec<Vec<u8>>,
}

impl Pipes {
    /// Opens an end of a pipe.
    ///
    /// # Errors
    /// `AlreadyExists`: the pipe has two ends. `InvalidInput`: it would close a loop.
    pub fn open(&self, name: &PipeName, place: PipeEnd) -> io::Result<PipePort> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut pipes = lock(&self.0);
        let places = pipes.get(name).map(|p| p.places.clone());
        let places = places.unwrap_or_default();
        let end = places.iter().position(Option::is_none);
        let end = end.ok_or(ErrorKind::AlreadyExists)?;
        if let Some(other) = &places[1 - end] {
            if joined(&pipes, other, &place) {
                return Err(ErrorKind::InvalidInput.into());
            }
        }
        let pipe = pipes.entry(name.clone()).or_default();
        pipe.places[end] = Some(place);
        lock(&pipe.queues).open[end] = true;
        Ok(PipePort {
            name: name.clone(),
            end,
            pipes: Arc::clone(&self.0),
            wake: Arc::new(wake),
            queues: Arc::clone(&pipe.queues),
            outbox: Vec::new(),
            spare: Vec::new(),
        })
    }
}

/// True if frames can pass from one place to another through pipes.
fn joined(pipes: &BTreeMap<PipeName, Pipe>, from: &PipeEnd, to: &PipeEnd) -> bool {
    let mut reached = vec![from];
    let mut n = 0;
    while let Some(here) = reached.get(n).copied() {
        let ends = pipes.values().filter_map(|pipe| match &pipe.places {
            [Some(a), Some(b)] if a == here => Some(b),
            [Some(a), Some(b)] if b == here => Some(a),
            _ => None,
        });
        for next in ends {
            if !reached.contains(&next) {
                reached.push(next);
            }
        }
        n += 1;
    }
    reached.contains(&to)
}

/// One end of a pipe.
pub struct PipePort {
    name: PipeName,
    end: usize,
    pipes: Arc<Mutex<BTreeMap<PipeName, Pipe>>>,
    /// Wakes the worker of this end.
    wake: Arc<OwnedFd>,
    queues: Arc<Mutex<Queues>>,
    /// Frames for the other end until the flush.
    outbox: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl Drop for PipePort {
    fn drop(&mut self) {
        let mut pipes = lock(&self.pipes);
        if let Some(pipe) = pipes.get_mut(&self.name) {
            pipe.places[self.end] = None;
            if pipe.places == [None, None] {
                pipes.remove(&self.name);
            }
        }
        let mut queues = lock(&self.queues);
        queues.open[self.end] = false;
        queues.asleep[self.end] = None;
        let lost = std::mem::take(&mut queues.inboxes[self.end]);
        // The forwarding thread does not wait until the frames are freed.
        drop(queues);
        drop(lost);
    }
}

impl Device for PipePort {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.as_fd())
    }

    fn far_end(&self) -> FarEnd {
        match lock(&self.queues).open[1 - self.end] {
            true => FarEnd::Up,
            false => FarEnd::Down,
        }
    }

    fn take_event(&mut self) {
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
    }

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        let mut queues = lock(&self.queues);
        let Queues { inboxes, spare, .. } = &mut *queues;
        let inbox = &mut inboxes[self.end];
        if inbox.is_empty() {
            return 0;
        }
        let forwarded = burst.frames.drain(..).map(|(bytes, _)| bytes);
        spare.extend(forwarded);
        spare.truncate(QUEUE);
        let count = inbox.len().min(BURST);
        burst.frames.extend(inbox.drain(..count));
        count
    }

    fn peek<'a>(&self, burst: &'a Burst, n: usize) -> Option<&'a [u8]> {
        burst.frames.get(n).map(|(bytes, _)| &bytes[..])
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        Some(RxFrame {
            bytes: &mut burst.frames.get_mut(n)?.0,
            rest: None,
            offload: Default::default(),
        })
    }

    fn has_room(&mut self, out: &TxFrame<'_>) -> bool {
        let waiting = lock(&self.queues).inboxes[1 - self.end].len();
        waiting + self.outbox.len() + out.count() <= QUEUE
    }

    /// Queues up to [`QUEUE`] frames until the flush.
    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters) {
        out.finish(&mut buffers.segment, |head, rest| {
            if self.outbox.len() == QUEUE {
                return counters.dropped_full += 1;
            }
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            append(&mut bytes, head, rest);
            self.outbox.push(bytes);
        });
    }

    fn flush(&mut self, counters: &mut Counters) {
        if self.outbox.is_empty() {
            return;
        }
        let mut queues = lock(&self.queues);
        let other = 1 - self.end;
        let (is_open, room) = (queues.open[other], QUEUE - queues.inboxes[other].len());
        for bytes in self.outbox.drain(..) {
            if is_open && queues.inboxes[other].len() < QUEUE {
                counters.tx_packets += 1;
                counters.tx_bytes += bytes.len() as u64;
                queues.inboxes[other].push_back((bytes, 0));
                continue;
            }
            match is_open {
                true => counters.dropped_full += 1,
                false => counters.dropped_link_down += 1,
            }
            self.spare.push(bytes);
        }
        if let Some(wake) = queues.asleep[other].take() {
            let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
        }
        let wanted = queues.spare.len().min(room.min(BURST));
        let left = queues.spare.len() - wanted;
        self.spare.extend(queues.spare.drain(left..));
        self.spare.truncate(QUEUE);
    }

    fn sleep_prepare(&mut self) -> bool {
        let mut queues = lock(&self.queues);
        queues.asleep[self.end] = Some(Arc::clone(&self.wake));
        !queues.inboxes[self.end].is_empty()
    }

    fn wake_done(&mut self) {
        lock(&self.queues).asleep[self.end] = None;
    }
}

/// A panic of another thread leaves no invalid pipe.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(pipes: &Pipes, name: &str, switch: &str, segment: u32) -> Result<PipePort, ErrorKind> {
        let place = (switch.parse().unwrap(), segment);
        let opened = pipes.open(&name.parse().unwrap(), place);
        opened.map_err(|e| e.kind())
    }

    #[test]
    fn a_pipe_has_two_ends_which_others_may_take_later() {
        let pipes = Pipes::default();
        let first = open(&pipes, "a", "vale0", 1).unwrap();
        let second = open(&pipes, "a", "vale1", 1).unwrap();
        let third = open(&pipes, "a", "vale2", 1).err();
        assert_eq!(third, Some(ErrorKind::AlreadyExists));
        drop(first);
        drop(open(&pipes, "a", "vale2", 1).unwrap());
        drop(second);
        assert!(lock(&pipes.0).is_empty());
    }

    #[test]
    fn pipes_join_segments_to_a_tree() {
        let pipes = Pipes::default();
        let mut ends = Vec::new();
        for (name, from, to) in [("a", "vale0", "vale1"), ("b", "vale1", "vale2")] {
            ends.push(open(&pipes, name, from, 1).unwrap());
            ends.push(open(&pipes, name, to, 1).unwrap());
        }
        let _begin = open(&pipes, "c", "vale2", 1).unwrap();
        for (switch, segment, is_loop) in [
            ("vale2", 1, true),
            ("vale0", 1, true),
            ("vale0", 2, false),
            ("vale3", 1, false),
        ] {
            let end = open(&pipes, "c", switch, segment).err();
            assert_eq!(end, is_loop.then_some(ErrorKind::InvalidInput), "{switch}");
        }
        ends.pop();
        assert!(open(&pipes, "c", "vale0", 1).is_ok(), "b has one end");
    }
}
