// SPDX-License-Identifier: Apache-2.0
//! The far end of a port behind one trait, and the burst of frames that the switch takes from it.
pub mod capture;
pub(crate) mod host;
pub mod host_resources;
pub(crate) mod path_port;
pub(crate) mod pcap;
pub(crate) mod pipe;
pub(crate) mod queues;
pub mod region_registry;
pub(crate) mod ring_port;
pub mod vxlan;
pub(crate) mod xdp_port;

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use ring::{LONGEST, Slot};
use vale_netdev::{MAX_FRAME, RecvBatch};
use vale_proto::{Counters, FarEnd};

use crate::clock::Nanoseconds;
use crate::frame::HEAD;
use crate::frame::gso::TxOffload;
use crate::frame::nsh::Label;
use crate::frame::rx_frame::{PlainFrame, RxFrame, UncopiedTail};
use crate::frame::tx_frame::TxFrame;
use crate::mesh::Peers;

/// Most frames that the switch takes from one port at a time.
pub const BURST: usize = 64;

/// The interface of a device, and how another thread opens it again.
pub struct Reopening {
    pub ifname: String,
    /// The kernel's number of the interface that the device has.
    pub index: i32,
    pub open: Box<dyn FnOnce() -> io::Result<Box<dyn Device>> + Send>,
}

/// The far end of a port: rings of a guest, or an interface.
pub trait Device: Send {
    /// The descriptor for epoll.
    fn event_fd(&self) -> Option<BorrowedFd<'_>>;
    /// The state of the far end.
    fn far_end(&self) -> FarEnd {
        FarEnd::Up
    }
    /// The interface of a device, which another one of its name may replace.
    fn reopening(&self) -> Option<Reopening> {
        None
    }
    /// The name of an interface, and the VLAN of a port that has only one of them.
    fn interface(&self) -> Option<(&str, Option<u16>)> {
        None
    }
    /// How the switch reaches an interface, if there is a choice.
    fn mode(&self) -> Option<&str> {
        None
    }
    /// True if the switch has to ask epoll for events also while it is busy.
    fn is_of_kernel(&self) -> bool {
        self.interface().is_some()
    }
    /// Takes an event that epoll reported.
    fn take_event(&mut self);
    /// Takes up to [`BURST`] frames and copies their heads. Returns their number.
    fn fetch(&mut self, burst: &mut Burst) -> usize;
    /// Private memory as long as frame `n`, of which only the first [`HEAD`] bytes are the frame's.
    /// None if the whole frame is in private memory.
    fn head<'a>(&self, _burst: &'a Burst, _n: usize) -> Option<&'a [u8]> {
        None
    }
    /// As [`Self::head`], but for a short frame its bytes. None for a frame whose stages need it alone.
    /// [`Self::taken`] follows for a frame that is forwarded.
    fn peek<'a>(&self, _burst: &'a Burst, _n: usize) -> Option<&'a [u8]> {
        None
    }
    /// The work that the sender of a frame has left, for which [`Self::peek`] has bytes. None if the frame is
    /// malformed.
    fn work(&self, _burst: &Burst, _n: usize) -> Option<TxOffload> {
        Some(TxOffload::default())
    }
    /// Frame `n` with the rest that [`Self::head`] left in the ring. None if it is malformed.
    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>>;
    /// Frame `n`, wholly in private memory. To be called in place of [`Self::taken`].
    fn taken_whole<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        self.taken(burst, n)
    }
    /// The bytes of frame `n`, one of [`Burst::plain`], behind its head.
    fn rest<'a>(&'a self, _burst: &Burst, _n: usize) -> Option<UncopiedTail<'a>> {
        None
    }
    /// The place in a chain of frame `n`, which another host sent.
    fn label(&self, _burst: &Burst, _n: usize) -> Option<Label> {
        None
    }
    /// True if the far end has room for a frame, as far as valed knows.
    fn has_room(&mut self, _out: &TxFrame<'_>) -> bool {
        true
    }
    /// Queues a frame for the far end and counts the outcome.
    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters);
    /// True if the device has [`Self::push_all`].
    fn takes_lists(&self) -> bool {
        false
    }
    /// As [`Self::has_room`], for some plain frames.
    fn has_room_for(&mut self, _frames: usize) -> bool {
        false
    }
    /// As [`Self::push`], for plain frames.
    fn push_all(&mut self, _frames: &[PlainFrame<'_>], _counters: &mut Counters) {}
    /// Returns the taken buffers. [`Self::flush`] follows, after this call for all other ports.
    fn release(&mut self) {}
    /// Publishes the queued frames and returns the taken buffers, with at most one notification.
    fn flush(&mut self, counters: &mut Counters);
    /// Asks the far end for a notification. True if it has sent something already.
    fn sleep_prepare(&mut self) -> bool;
    /// Tells the far end that valed needs no notification now.
    fn wake_done(&mut self) {}
    /// Replaces the other hosts of a VXLAN network, or of a chain's path.
    fn set_peers(&mut self, _peers: &[IpAddr]) {}
    /// Invalid descriptors and indices so far.
    fn malformed(&self) -> u64 {
        0
    }
    /// Drops the frames that a guest has sent so far, and forgets what was wrong with them.
    fn discard(&mut self) {}
}

/// No far end: a Xen guest without rings, or a port whose far end another worker has.
pub struct Absent;

impl Device for Absent {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn far_end(&self) -> FarEnd {
        FarEnd::Down
    }

    fn take_event(&mut self) {}

    fn fetch(&mut self, _: &mut Burst) -> usize {
        0
    }

    fn taken<'a>(&'a self, _: &'a mut Burst, _: usize) -> Option<RxFrame<'a>> {
        None
    }

    fn push(&mut self, _: &mut TxFrame<'_>, _: &mut Buffers, counters: &mut Counters) {
        counters.dropped_link_down += 1;
    }

    fn flush(&mut self, _: &mut Counters) {}

    fn sleep_prepare(&mut self) -> bool {
        false
    }
}

/// Private memory for the frames that the switch takes from one port.
pub struct Burst {
    pub slots: [Slot; BURST],
    /// Bit n: slot n has a frame of one buffer at most, whose sender has left no work. Its head is in `heads`.
    pub plain: u64,
    /// The heads, [`HEAD`] bytes each, then room for the length of one more frame.
    pub heads: Box<[u8]>,
    /// One frame that needs more than its head.
    pub whole: Box<[u8; MAX_FRAME]>,
    pub host: RecvBatch,
    /// Frames from other hosts, with the index of the host.
    pub frames: Vec<(Vec<u8>, usize)>,
    /// The time of the round.
    pub now: Nanoseconds,
}

impl Default for Burst {
    fn default() -> Self {
        Self {
            slots: [Slot::EMPTY; BURST],
            plain: 0,
            heads: vec![0; BURST * HEAD + LONGEST].into(),
            whole: Box::new([0; MAX_FRAME]),
            host: RecvBatch::default(),
            frames: Vec::new(),
            now: 0,
        }
    }
}

impl Burst {
    /// As [`Device::peek`], for a frame of [`Self::plain`].
    #[inline]
    pub fn peek(&self, n: usize) -> &[u8] {
        &self.heads[n * HEAD..][..self.slots[n].len()]
    }

    /// The head of a frame of [`Self::plain`].
    #[inline]
    pub fn plain_head(&mut self, n: usize) -> &mut [u8] {
        &mut self.heads[n * HEAD..][..self.slots[n].len().min(HEAD)]
    }

    /// The frame at place `n`, one of [`Self::plain`].
    #[inline]
    pub fn plain_frame<'a>(&'a self, device: &'a dyn Device, n: usize) -> PlainFrame<'a> {
        let len = self.slots[n].len();
        PlainFrame {
            head: &self.heads[n * HEAD..][..len.min(HEAD)],
            rest: match len > HEAD {
                true => device.rest(self, n),
                false => None,
            },
        }
    }
}

/// Private memory for frames on their way out.
pub struct Buffers {
    /// A frame gathered from its head and its rest.
    pub whole: Box<[u8; LONGEST]>,
    /// One of the frames that the switch cuts from a longer one.
    pub segment: Vec<u8>,
    /// A copy for a mirror.
    pub copy: Vec<u8>,
    /// The way to the other workers.
    pub peers: Peers,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            whole: Box::new([0; LONGEST]),
            segment: Vec::with_capacity(MAX_FRAME),
            copy: Vec::new(),
            peers: Peers::default(),
        }
    }
}

#[cfg(test)]
#[path = "fake_nic.rs"]
pub mod fake_nic;
