// SPDX-License-Identifier: Apache-2.0
//! A guest's rings as the far end of a port.
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use ring::layout::MIN_SEGMENT;
use ring::{PushError, Regions, RingError, SLOTS_RANGE, Slot, SwitchPort};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{FileType, Mode, OFlags, fcntl_setfl, fstat};
use rustix::pipe::{PipeFlags, pipe_with};
use vale_proto::{Counters, FarEnd};
use vale_xen_dev::EventChannel;

use crate::device::{BURST, Buffers, Burst, Device};
use crate::frame::HEAD;
use crate::frame::gso::{Checksum, TxOffload};
use crate::frame::headers::ETHERNET;
use crate::frame::rx_frame::{PlainFrame, RxFrame, UncopiedTail};
use crate::frame::tx_frame::TxFrame;

/// The name of an eventfd in /proc (proc_pid_fd(5)).
const EVENTFD: &str = "anon_inode:[eventfd]";

/// Slots of the largest ring.
const MAX_SLOTS: usize = *SLOTS_RANGE.end() as usize;

/// A guest's rings and their notifications.
pub struct RingPort {
    ring: SwitchPort,
    events: Events,
    /// The next flush has to wake the guest.
    is_wake_due: bool,
    /// Invalid descriptors and indices from before the rings had a port.
    malformed_before: u64,
}

/// The notifications between a guest and valed.
enum Events {
    Process {
        /// Eventfd that the guest writes. valed only polls it: the guest may change its flags, so a
        /// read could block.
        kick: OwnedFd,
        /// Write end of a pipe. The guest cannot change its flags, so a write never blocks.
        wake: OwnedFd,
    },
    Xen(EventChannel),
}

impl RingPort {
    /// The port and the descriptors for a process: memfd, kick, wake.
    /// Version 2 belongs to the other `regions` of its guest.
    pub fn create(
        slots: u32,
        regions: Option<&Arc<Regions>>,
    ) -> Result<(Self, [OwnedFd; 3]), RingError> {
        let made = match regions {
            Some(regions) => SwitchPort::create_in(regions, slots)?,
            None => SwitchPort::create(slots)?,
        };
        Self::with_events(made)
    }

    /// As [`Self::create`] in version 1, with frames of several slots.
    pub fn create_long(slots: u32) -> Result<(Self, [OwnedFd; 3]), RingError> {
        let (mut ring, memfd) = SwitchPort::create(slots)?;
        ring.set_long();
        Self::with_events((ring, memfd))
    }

    fn with_events(
        (ring, memfd): (SwitchPort, OwnedFd),
    ) -> Result<(Self, [OwnedFd; 3]), RingError> {
        let kick = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // The guest's end keeps the flag: a spurious read must not hang it.
        fcntl_setfl(&wake, OFlags::NONBLOCK)?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&kick, 3)?;
        let events = Events::Process { kick, wake };
        Ok((Self::new(ring, events), [memfd, theirs, woken]))
    }

    /// A Xen guest's port.
    pub fn of_guest(ring: SwitchPort, channel: EventChannel) -> Self {
        Self::new(ring, Events::Xen(channel))
    }

    /// The port of a process whose valed has ended, from the descriptors of [`Self::create`]. They
    /// come from the guest: valed makes sure that no use of them can block it or end it.
    pub fn resume(slots: u32, [memfd, kick, woken]: [OwnedFd; 3]) -> io::Result<Self> {
        let ring = SwitchPort::remap(memfd, slots).map_err(io::Error::other)?;
        if fs::read_link(own_path(&kick))? != Path::new(EVENTFD) {
            return Err(io::Error::other("kick: not an eventfd"));
        }
        if FileType::from_raw_mode(fstat(&woken)?.st_mode) != FileType::Fifo {
            return Err(io::Error::other("wake: not a pipe"));
        }
        // Opened again, so that its flags belong to valed.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let wake = rustix::fs::open(own_path(&woken), flags, Mode::empty())?;
        let port = Self::new(ring, Events::Process { kick, wake });
        // The guest may wait for a notification that the earlier valed did not send.
        port.wake();
        Ok(port)
    }

    /// As [`SwitchPort::negotiate`].
    #[cfg(test)]
    pub fn negotiate(&mut self) {
        self.ring.negotiate();
    }

    /// As [`SwitchPort::set_long`].
    pub fn set_long(&mut self) {
        self.ring.set_long();
    }

    /// As [`SwitchPort::join`].
    pub fn join(&mut self, regions: &Arc<Regions>) {
        self.ring.join(regions);
    }

    fn new(ring: SwitchPort, events: Events) -> Self {
        Self {
            ring,
            events,
            is_wake_due: false,
            malformed_before: 0,
        }
    }

    /// The size of the segments, if the guest can cut them itself.
    fn gso_size(&self, out: &TxFrame<'_>) -> Option<u16> {
        let size = out.offload.gso?.size;
        let sizes = MIN_SEGMENT..=self.ring.most_segment();
        let fits = sizes.contains(&size) && out.len() <= u16::MAX.into();
        (fits && self.ring.takes_segments() && is_of_transport(out)).then_some(size)
    }

    /// Wakes the guest. A full pipe holds wakes that it has not read.
    fn wake(&self) {
        match &self.events {
            Events::Process { wake, .. } => {
                let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
            }
            Events::Xen(channel) => channel.notify(),
        }
    }
}

impl Device for RingPort {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(match &self.events {
            Events::Process { kick, .. } => kick.as_fd(),
            Events::Xen(channel) => channel.as_fd(),
        })
    }

    /// A process holds the only read end of its pipe until it ends.
    fn far_end(&self) -> FarEnd {
        let Events::Process { wake, .. } = &self.events else {
            return FarEnd::Up;
        };
        let mut ends = [PollFd::new(wake, PollFlags::empty())];
        let polled = poll(&mut ends, Some(&Timespec::default()));
        match polled.is_ok() && ends[0].revents().contains(PollFlags::ERR) {
            true => FarEnd::Gone,
            false => FarEnd::Up,
        }
    }

    fn take_event(&mut self) {
        if let Events::Xen(channel) = &self.events {
            // This fails only if the channel is broken. The guest then cannot kick valed, and its
            // frames wait until other ports have traffic.
            let _ = channel.drain();
        }
    }

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        let count = self.ring.fetch(&mut burst.slots);
        let slots = &burst.slots[..count];
        self.ring.read_heads::<HEAD>(slots, &mut burst.heads);
        let bit = |bits: u64, (n, slot): (usize, &Slot)| bits | u64::from(slot.is_plain()) << n;
        burst.plain = slots.iter().enumerate().fold(0, bit);
        count
    }

    fn head<'a>(&self, burst: &'a Burst, n: usize) -> Option<&'a [u8]> {
        let (len, segment) = (burst.slots[n].len(), burst.slots[n].segment());
        // A frame to be cut into segments has to lie in private memory.
        (len > HEAD && segment == 0).then(|| &burst.heads[n * HEAD..][..len])
    }

    fn peek<'a>(&self, burst: &'a Burst, n: usize) -> Option<&'a [u8]> {
        let slot = burst.slots[n];
        (slot.segment() == 0).then(|| &burst.heads[n * HEAD..][..slot.len()])
    }

    fn work(&self, burst: &Burst, n: usize) -> Option<TxOffload> {
        let slot = burst.slots[n];
        offload(slot, &burst.heads[n * HEAD..][..slot.len().min(HEAD)])
    }

    fn rest<'a>(&'a self, burst: &Burst, n: usize) -> Option<UncopiedTail<'a>> {
        self.ring.rest(burst.slots[n], HEAD)
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        let slot = burst.slots[n];
        let bytes = &mut burst.heads[n * HEAD..][..slot.len().min(HEAD)];
        Some(RxFrame {
            offload: offload(slot, bytes)?,
            bytes,
            rest: match slot.len() > HEAD {
                true => self.ring.rest(slot, HEAD),
                false => None,
            },
        })
    }

    fn taken_whole<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        let slot = burst.slots[n];
        if slot.len() <= HEAD {
            return self.taken(burst, n);
        }
        let bytes = &mut burst.whole[..slot.len()];
        self.ring.read(slot, bytes);
        Some(RxFrame {
            offload: offload(slot, bytes)?,
            bytes,
            rest: None,
        })
    }

    fn has_room(&mut self, out: &TxFrame<'_>) -> bool {
        match self.gso_size(out) {
            None if out.offload.gso.is_some() => self.ring.room() >= out.count(),
            _ => self.ring.has_room_for(out.len()),
        }
    }

    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters) {
        if out.offload == TxOffload::default() {
            let len = out.len();
            return count(self.ring.push_parts(out.head, out.rest), len, counters);
        }
        let gso_size = self.gso_size(out);
        let ring = &mut self.ring;
        if let Some(segment) = gso_size {
            let pushed = ring.push_gso(out.head, segment);
            return count(pushed, out.len(), counters);
        }
        if ring.accepts_partial_csum() && out.offload.gso.is_none() && is_of_transport(out) {
            let (len, pushed) = (out.len(), ring.push_partial_csum(out.head, out.rest));
            return count(pushed, len, counters);
        }
        out.finish(&mut buffers.segment, |head, rest| {
            let len = head.len() + rest.map_or(0, |r| r.len());
            count(ring.push_parts(head, rest), len, counters);
        });
    }

    fn takes_lists(&self) -> bool {
        true
    }

    fn has_room_for(&mut self, frames: usize) -> bool {
        self.ring.has_slots(frames)
    }

    fn push_all(&mut self, frames: &[PlainFrame<'_>], counters: &mut Counters) {
        let pushed = self.ring.push_all(frames);
        counters.tx_packets += pushed.frames;
        counters.tx_bytes += pushed.bytes;
        counters.dropped_full += pushed.full;
        counters.dropped_too_long += pushed.bad_lengths;
        counters.dropped_malformed += pushed.bad_buffers;
    }

    fn release(&mut self) {
        self.is_wake_due |= self.ring.release();
    }

    fn flush(&mut self, counters: &mut Counters) {
        let is_wake_due = std::mem::take(&mut self.is_wake_due);
        if self.ring.publish() || is_wake_due {
            self.wake();
            counters.kicks += 1;
        }
    }

    fn sleep_prepare(&mut self) -> bool {
        self.ring.sleep_prepare()
    }

    fn wake_done(&mut self) {
        self.ring.wake_done();
    }

    fn malformed(&self) -> u64 {
        self.ring.malformed() - self.malformed_before
    }

    /// A guest that continues sending meanwhile keeps the thread no longer than a full ring does.
    fn discard(&mut self) {
        let mut slots = [Slot::EMPTY; BURST];
        for _ in 0..MAX_SLOTS / BURST {
            if self.ring.fetch(&mut slots) == 0 {
                break;
            }
        }
        if self.ring.publish() {
            self.wake();
        }
        self.malformed_before = self.ring.malformed();
    }
}

/// The name of a descriptor of valed in /proc.
fn own_path(fd: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

/// The work that the sender of a frame has left. None for flags that do not fit the frame.
fn offload(slot: Slot, head: &[u8]) -> Option<TxOffload> {
    if !slot.needs_csum() {
        return Some(TxOffload::default());
    }
    match slot.segment() {
        0 => Some(TxOffload {
            checksum: Some(Checksum::of(head)?),
            gso: None,
        }),
        size => TxOffload::of_segments(head, size),
    }
}

/// True if a ring's flags can say which checksum is left: that of the TCP or UDP header of a frame
/// without a VLAN tag.
fn is_of_transport(out: &TxFrame<'_>) -> bool {
    let checksum = out.offload.checksum;
    checksum.is_some() && out.payload == ETHERNET && checksum == Checksum::of(out.head)
}

/// Counts a frame of `len` bytes.
fn count(pushed: Result<(), PushError>, len: usize, counters: &mut Counters) {
    match pushed {
        Ok(()) => {
            counters.tx_packets += 1;
            counters.tx_bytes += len as u64;
        }
        Err(PushError::Full) => counters.dropped_full += 1,
        Err(PushError::BadLength(_)) => counters.dropped_too_long += 1,
        Err(PushError::BadBuffer) => counters.dropped_malformed += 1,
    }
}

#[cfg(test)]
mod tests {
    use ring::{GuestPort, Memory};

    use super::*;

    /// Rings that had no port before, and their guest's side.
    fn rings(slots: u32) -> (RingPort, GuestPort) {
        let (port, [memfd, ..]) = RingPort::create(slots, None).unwrap();
        (port, GuestPort::map(&memfd).unwrap())
    }

    fn fetched(port: &mut RingPort) -> usize {
        let count = port.fetch(&mut Burst::default());
        port.release();
        port.flush(&mut Counters::default());
        count
    }

    #[test]
    fn frames_from_before_are_dropped_with_their_counts() {
        for slots in [64, 2048] {
            let (mut port, mut guest) = rings(slots);
            while guest.push(&[1; 60]).is_ok() {}
            let _ = guest.publish();
            port.discard();
            assert_eq!(fetched(&mut port), 0);
            guest.push(&[2; 60]).unwrap();
            let _ = guest.publish();
            assert_eq!(fetched(&mut port), 1);
        }
    }

    #[test]
    fn malformed_descriptors_from_before_are_forgotten() {
        let (mut port, mut guest) = rings(64);
        let break_next = |guest: &mut GuestPort| {
            guest.push(&[1; 60]).unwrap();
            let _ = guest.publish();
            (0x1000..0x1000 + 64 * 8)
                .step_by(8)
                .for_each(|at| guest.memory().store_descriptor(at, u64::MAX));
        };
        break_next(&mut guest);
        port.discard();
        assert_eq!(port.malformed(), 0);
        break_next(&mut guest);
        assert_eq!(fetched(&mut port), 0);
        assert_eq!(port.malformed(), 1);
    }
}
