// SPDX-License-Identifier: Apache-2.0
//! A tap or an interface of this host as the far end of a port.
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;
use vale_netdev::{
    Received, RecvBatch, SendBatch, VNET_HEADER, interface_index, interface_passes,
    open_packet_socket, open_tap, open_vlan_socket,
};
use vale_proto::{Counters, FarEnd, Kind};

use crate::device::{Buffers, Burst, Device, Reopening};
use crate::frame::gso::TxOffload;
use crate::frame::rx_frame::RxFrame;
use crate::frame::tx_frame::TxFrame;
use control_socket::EventLimit;

/// Log lines about one interface in a minute.
const LOG_LINES_PER_MINUTE: u32 = 10;

/// Collects the frames for an interface and sends them together.
pub struct HostPort {
    ifname: String,
    /// The VLAN whose frames pass; the others stay outside.
    vlan: Option<u16>,
    fd: OwnedFd,
    /// The kernel's number of the interface.
    index: i32,
    kind: Kind,
    is_tap: bool,
    sending: SendBatch,
    /// There may be frames to read.
    ready: bool,
    failures: Failures,
    mode: Option<String>,
}

/// The failures of an interface in the log: one line until the next success.
pub struct Failures {
    /// Bounds the log: the far end can make the interface fail and recover without end.
    lines: EventLimit,
    /// The log has the last error.
    failing: bool,
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            lines: EventLimit::new(LOG_LINES_PER_MINUTE),
            failing: false,
        }
    }
}

impl Failures {
    pub fn end_if(&mut self, succeeded: bool) {
        self.failing &= !succeeded;
    }

    pub fn report(&mut self, ifname: &str, error: &io::Error) {
        let first = !std::mem::replace(&mut self.failing, true);
        if first && self.lines.allows(Instant::now()) {
            log::warn!("{ifname}: {error}");
        }
    }
}

impl HostPort {
    pub fn open(kind: Kind, ifname: &str, vlan: Option<u16>) -> io::Result<Self> {
        let is_tap = kind == Kind::Tap;
        let fd = match vlan {
            _ if is_tap => open_tap(ifname)?,
            Some(vlan) => open_vlan_socket(ifname, vlan)?,
            None => open_packet_socket(ifname)?,
        };
        let (ifname, index) = (ifname.to_owned(), interface_index(ifname)?);
        Ok(Self {
            ifname,
            vlan,
            fd,
            index,
            kind,
            is_tap,
            sending: SendBatch::default(),
            ready: true,
            failures: Failures::default(),
            mode: None,
        })
    }

    /// Gives the port a mode to show.
    pub fn with_mode(self, mode: String) -> Self {
        let mode = Some(mode);
        Self { mode, ..self }
    }

    /// Reads frames into `batch` and returns their number. Logs a failure once until the next
    /// success.
    fn receive(&mut self, batch: &mut RecvBatch) -> usize {
        let result = if self.is_tap {
            batch.read(self.fd.as_fd())
        } else {
            batch.receive(self.fd.as_fd())
        };
        match result {
            Ok(count) => {
                self.ready = count == RecvBatch::MAX;
                self.failures.end_if(count > 0);
                count
            }
            Err(error) => {
                self.ready = false;
                self.failures.report(&self.ifname, &error);
                0
            }
        }
    }

    /// False if the queue has to be sent first.
    fn queue(&mut self, header: &[u8; VNET_HEADER], frame: &[u8]) -> bool {
        match self.vlan {
            Some(vlan) => self.sending.push_to_vlan(header, frame, vlan),
            None => self.sending.push(header, frame),
        }
    }

    /// Sends the queued frames and counts the outcome of each.
    fn send_queue(&mut self, counters: &mut Counters) {
        let mut last_error = None;
        let mut count = |(result, len): (io::Result<()>, usize)| match result {
            Ok(()) => {
                counters.tx_packets += 1;
                counters.tx_bytes += len as u64;
            }
            Err(error) => *counter_of(&error, counters, &mut last_error) += 1,
        };
        if self.is_tap {
            self.sending.write(self.fd.as_fd(), &mut count);
        } else {
            self.sending.send(self.fd.as_fd(), &mut count);
        }
        if let Some(error) = last_error {
            self.failures.report(&self.ifname, &error);
        }
    }
}

impl Device for HostPort {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn interface(&self) -> Option<(&str, Option<u16>)> {
        Some((&self.ifname, self.vlan))
    }

    fn far_end(&self) -> FarEnd {
        far_end(&self.ifname, self.index)
    }

    fn reopening(&self) -> Option<Reopening> {
        let (kind, vlan, ifname) = (self.kind, self.vlan, self.ifname.clone());
        let mode = self.mode.clone();
        Some(Reopening {
            ifname: ifname.clone(),
            index: self.index,
            open: Box::new(move || {
                let port = Self::open(kind, &ifname, vlan)?;
                Ok(Box::new(Self { mode, ..port }))
            }),
        })
    }

    fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }

    fn take_event(&mut self) {
        self.ready = true;
    }

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        match self.ready {
            true => self.receive(&mut burst.host),
            false => 0,
        }
    }

    fn peek<'a>(&self, burst: &'a Burst, n: usize) -> Option<&'a [u8]> {
        peeked(burst, n, self.vlan).map(|(_, bytes)| bytes)
    }

    fn work(&self, burst: &Burst, n: usize) -> Option<TxOffload> {
        peeked(burst, n, self.vlan).map(|(work, _)| work)
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        received(burst, n, self.vlan)
    }

    /// Without room for the frame, sends the queue first.
    fn push(&mut self, out: &mut TxFrame<'_>, buffers: &mut Buffers, counters: &mut Counters) {
        let (header, frame) = (out.offload.to_header(), out.whole(&mut buffers.whole));
        if !self.queue(&header, frame) {
            self.send_queue(counters);
            let _empty_takes_any = self.queue(&header, frame);
        }
    }

    fn flush(&mut self, counters: &mut Counters) {
        self.send_queue(counters);
    }

    fn sleep_prepare(&mut self) -> bool {
        self.ready
    }
}

/// The state of an interface, which another one of its name may have replaced.
pub fn far_end(ifname: &str, index: i32) -> FarEnd {
    match interface_index(ifname) {
        Ok(now) if now == index => match interface_passes(ifname) {
            Ok(false) => FarEnd::Down,
            _ => FarEnd::Up,
        },
        _ => FarEnd::Gone,
    }
}

/// A frame as [`received`] takes it, without work but for a checksum. None for a frame whose tag the
/// kernel took out, if it belongs to the frame.
pub fn peeked(burst: &Burst, n: usize, vlan: Option<u16>) -> Option<(TxOffload, &[u8])> {
    let (header, bytes) = burst.host.peek(n, vlan)?;
    let work = TxOffload::parse(header, bytes.len())?;
    work.gso.is_none().then_some((work, bytes))
}

/// The frame at place `n` of those that a socket received, if it is whole and of the VLAN.
pub fn received(burst: &mut Burst, n: usize, vlan: Option<u16>) -> Option<RxFrame<'_>> {
    let received = match vlan {
        Some(vlan) => burst.host.frame_of_vlan(n, vlan),
        None => burst.host.frame(n),
    };
    let Received::Frame(header, bytes) = received else {
        return None;
    };
    let offload = TxOffload::parse(&header, bytes.len())?;
    Some(RxFrame {
        bytes,
        rest: None,
        offload,
    })
}

/// The counter of a failed send. `kept` gets an error that the log should have.
pub fn counter_of<'a>(
    error: &io::Error,
    counters: &'a mut Counters,
    kept: &mut Option<io::Error>,
) -> &'a mut u64 {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        _ if error.kind() == ErrorKind::WouldBlock => &mut counters.dropped_full,
        Some(Errno::NOBUFS | Errno::NOMEM) => &mut counters.dropped_full,
        Some(Errno::MSGSIZE) => &mut counters.dropped_too_long,
        Some(Errno::INVAL) => &mut counters.dropped_malformed,
        _ => {
            *kept = error.raw_os_error().map(io::Error::from_raw_os_error);
            &mut counters.dropped_link_down
        }
    }
}
