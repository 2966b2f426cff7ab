// SPDX-License-Identifier: Apache-2.0
//! A port of a switch: its device, its guard and its counters.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ring::{PushError, RingError, SwitchPort};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use vale_proto::{Counters, GuestVif, Kind, Mac, PortAdd, PortInfo, PortName, SwitchName};
use vale_xen_dev::EventChannel;

use crate::guard::Guard;
use crate::headers::Ethernet;
use crate::host::HostPort;
use crate::offload::{Checksum, Offload, Segments, complete};
use crate::refusal::Refusal;

/// Most segments of one frame: 64 KB in TCP's smallest usual segments.
const MAX_SEGMENTS: usize = 2048;

/// The far end of a port.
pub enum Device {
    Ring(RingPort),
    Host(HostPort),
    /// A Xen guest that has no rings at the moment.
    Absent,
}

/// A guest's rings and their notifications.
pub struct RingPort {
    pub ring: SwitchPort,
    events: Events,
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
    pub fn create(slots: u32) -> Result<(Self, [OwnedFd; 3]), RingError> {
        let (ring, memfd) = SwitchPort::create(slots)?;
        let kick = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // The guest's end keeps the flag: a spurious read must not hang it.
        fcntl_setfl(&wake, OFlags::NONBLOCK)?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&kick, 3)?;
        let events = Events::Process { kick, wake };
        Ok((Self { ring, events }, [memfd, theirs, woken]))
    }

    /// A Xen guest's port.
    pub fn of_guest(ring: SwitchPort, channel: EventChannel) -> Self {
        let events = Events::Xen(channel);
        Self { ring, events }
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

    /// Takes an event that epoll reported.
    pub fn take_event(&self) {
        if let Events::Xen(channel) = &self.events {
            // This fails only if the channel is broken. The guest then cannot kick valed, and its
            // frames wait until other ports have traffic.
            let _ = channel.drain();
        }
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        match &self.events {
            Events::Process { kick, .. } => kick.as_fd(),
            Events::Xen(channel) => channel.as_fd(),
        }
    }
}

/// A frame on its way to one or more ports.
pub struct Outgoing<'a> {
    pub bytes: &'a mut [u8],
    pub offload: Offload,
    /// Offset of the IP packet.
    pub payload: usize,
    /// Bytes of the frame, or of its longest segment.
    pub longest: usize,
}

impl<'a> Outgoing<'a> {
    /// None if the frame cannot be segmented as asked, or if an offload would change one of the
    /// `judged` bytes at its start.
    fn new(bytes: &'a mut [u8], offload: Offload, payload: usize, judged: usize) -> Option<Self> {
        let (offload, longest) = match offload.gso {
            None => {
                let field = offload.checksum.map_or(judged, Checksum::field);
                (field >= judged).then_some((offload, bytes.len()))?
            }
            Some(gso) => {
                let segments = Segments::new(bytes, gso)?;
                let checksum = offload.checksum.filter(|c| *c == segments.checksum())?;
                (segments.count() <= MAX_SEGMENTS).then_some(())?;
                let offload = Offload::segmented(checksum, gso, segments.headers());
                (offload, segments.longest())
            }
        };
        Some(Self {
            bytes,
            offload,
            payload,
            longest,
        })
    }
}

pub struct Port {
    pub name: PortName,
    kind: Kind,
    guest: Option<GuestVif>,
    pub segment: u16,
    pub mac: Option<Mac>,
    mtu: usize,
    pub link_up: bool,
    pub guard: Guard,
    pub counters: Counters,
    pub device: Device,
    /// The port has moved frames since the last flush.
    pub dirty: bool,
}

impl Port {
    pub fn new(add: &PortAdd, device: Device) -> Self {
        Self {
            name: add.port.clone(),
            kind: add.kind,
            guest: add.guest,
            segment: add.segment,
            mac: add.mac,
            mtu: add.mtu.into(),
            link_up: add.link_up,
            guard: Guard::new(add),
            counters: Counters::default(),
            device,
            dirty: false,
        }
    }

    /// The descriptor for epoll.
    pub fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.device {
            Device::Ring(port) => Some(port.event_fd()),
            Device::Host(port) => Some(port.fd()),
            Device::Absent => None,
        }
    }

    pub fn ifname(&self) -> Option<&str> {
        match &self.device {
            Device::Ring(_) | Device::Absent => None,
            Device::Host(port) => Some(&port.ifname),
        }
    }

    /// True if frames can leave by the port.
    pub fn is_live(&self) -> bool {
        self.link_up && !matches!(self.device, Device::Absent)
    }

    /// Counts and judges a frame from the far end. None if the port drops it, which it counts too.
    /// A hop of a chain has `relayed` the frame for another station.
    pub fn judge<'a>(
        &mut self,
        bytes: &'a mut [u8],
        offload: Offload,
        relayed: bool,
    ) -> Option<(Ethernet, Outgoing<'a>)> {
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += bytes.len() as u64;
        match self.verdict(bytes, offload, relayed) {
            Ok(forwarded) => Some(forwarded),
            Err(dropped) => {
                *dropped(&mut self.counters) += 1;
                None
            }
        }
    }

    fn verdict<'a>(
        &self,
        bytes: &'a mut [u8],
        offload: Offload,
        relayed: bool,
    ) -> Result<(Ethernet, Outgoing<'a>), Counter> {
        if !self.link_up {
            return Err(|c| &mut c.dropped_link_down);
        }
        let ethernet = Ethernet::parse(bytes).ok_or(MALFORMED)?;
        if ethernet.is_link_control() {
            return Err(|c| &mut c.dropped_link_control);
        }
        let judged = match relayed {
            true => self.guard.judge_relayed(&ethernet, bytes),
            false => self.guard.judge(&ethernet, bytes),
        };
        let judged = judged.map_err(counter_of)?;
        let out = Outgoing::new(bytes, offload, ethernet.payload, judged).ok_or(MALFORMED)?;
        Ok((ethernet, out))
    }

    /// Queues a frame for the far end, or counts the drop. [`Self::flush`] publishes the queue.
    pub fn deliver(&mut self, out: &mut Outgoing<'_>, gso_buffer: &mut Vec<u8>) {
        if !self.link_up {
            self.counters.dropped_link_down += 1;
            return;
        }
        if out.longest - out.payload > self.mtu {
            self.counters.dropped_too_long += 1;
            return;
        }
        match &mut self.device {
            Device::Host(port) => {
                port.push(&out.offload.to_header(), out.bytes, &mut self.counters)
            }
            Device::Ring(port) => {
                push_finished(&mut port.ring, out, gso_buffer, &mut self.counters)
            }
            Device::Absent => self.counters.dropped_link_down += 1,
        }
    }

    /// Publishes the delivered frames and returns the taken buffers, with at most one notification.
    pub fn flush(&mut self) {
        self.dirty = false;
        match &mut self.device {
            Device::Absent => (),
            Device::Host(port) => port.flush(&mut self.counters),
            Device::Ring(port) => {
                if port.ring.publish() {
                    port.wake();
                    self.counters.kicks += 1;
                }
            }
        }
    }

    /// Gives the port other rings, or none, and keeps the counts of the old ones.
    pub fn replace(&mut self, device: Device) -> Device {
        if let Device::Ring(port) = &self.device {
            self.counters.dropped_malformed += port.ring.malformed();
        }
        std::mem::replace(&mut self.device, device)
    }

    /// The port as `port-list` shows it.
    pub fn info(&self, switch: &SwitchName) -> PortInfo {
        let mut counters = self.counters;
        if let Device::Ring(port) = &self.device {
            counters.dropped_malformed += port.ring.malformed();
        }
        PortInfo {
            switch: switch.clone(),
            port: self.name.clone(),
            kind: self.kind,
            guest: self.guest,
            segment: self.segment,
            mac: self.mac,
            link_up: self.link_up,
            counters,
        }
    }
}

/// The counter of a drop.
type Counter = fn(&mut Counters) -> &mut u64;
const MALFORMED: Counter = |c| &mut c.dropped_malformed;

fn counter_of(refusal: Refusal) -> Counter {
    match refusal {
        Refusal::Malformed => MALFORMED,
        Refusal::Type => |c| &mut c.dropped_type,
        Refusal::Spoof => |c| &mut c.dropped_spoof,
        Refusal::Role => |c| &mut c.dropped_role,
        Refusal::Hidden => |c| &mut c.dropped_hidden,
    }
}

/// Completes the sender's offloads and puts the result into a guest's ring.
fn push_finished(
    ring: &mut SwitchPort,
    out: &mut Outgoing<'_>,
    gso_buffer: &mut Vec<u8>,
    counters: &mut Counters,
) {
    let Some(gso) = out.offload.gso else {
        if let Some(checksum) = out.offload.checksum.take() {
            complete(out.bytes, checksum);
        }
        return push(ring, out.bytes, counters);
    };
    let Some(mut segments) = Segments::new(out.bytes, gso) else {
        return;
    };
    while segments.next_into(gso_buffer) {
        push(ring, gso_buffer, counters);
    }
}

fn push(ring: &mut SwitchPort, frame: &[u8], counters: &mut Counters) {
    match ring.push(frame) {
        Ok(()) => {
            counters.tx_packets += 1;
            counters.tx_bytes += frame.len() as u64;
        }
        Err(PushError::Full) => counters.dropped_full += 1,
        Err(PushError::BadLength(_)) => counters.dropped_too_long += 1,
        Err(PushError::BadBuffer) => counters.dropped_malformed += 1,
    }
}

/// Opens the device that `add` names. Returns the descriptors for the caller, if there are any.
pub fn open(add: &PortAdd) -> io::Result<(Port, Vec<OwnedFd>)> {
    let ifname = add.ifname.as_deref().unwrap_or_default();
    let (device, fds) = match add.kind {
        Kind::Process => {
            let (port, fds) = RingPort::create(add.slots).map_err(io::Error::other)?;
            (Device::Ring(port), fds.into())
        }
        Kind::Xen => (Device::Absent, Vec::new()),
        kind => (Device::Host(HostPort::open(kind, ifname)?), Vec::new()),
    };
    Ok((Port::new(add, device), fds))
}

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;
