// SPDX-License-Identifier: Apache-2.0
//! An interface of this host as the far end of a port, by an AF_XDP socket.
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use vale_netdev::{XdpSocket, interface_index};
use vale_proto::{Counters, FarEnd, Kind};

use crate::device::host::{Failures, HostPort, counter_of, far_end, peeked, received};
use crate::device::{Buffers, Burst, Device, Reopening};
use crate::frame::gso::TxOffload;
use crate::frame::rx_frame::{RxFrame, UncopiedTail};
use crate::frame::tx_frame::TxFrame;

/// The longest packet of a socket: a buffer has a page, with 256 bytes for the kernel.
const MAX_MTU: u16 = 3_500;
/// Bytes of the addresses, behind which a VLAN tag stands.
const ADDRESSES: usize = 12;

/// Collects the frames for an interface in memory that the kernel shares.
pub struct XdpPort {
    ifname: String,
    /// The VLAN whose frames pass; the kernel gets the others.
    vlan: Option<u16>,
    mtu: u16,
    /// The kernel's number of the interface.
    index: i32,
    socket: XdpSocket,
    mode: String,
    /// Packets and bytes since the last flush.
    queued: (u64, u64),
    /// The kernel has reported an event.
    event: bool,
    failures: Failures,
}

impl XdpPort {
    /// # Errors
    /// The kernel or the driver refuses AF_XDP, the interface has several receive queues, or the frames
    /// may be longer than its buffers.
    pub fn open(ifname: &str, vlan: Option<u16>, mtu: u16) -> io::Result<Self> {
        if mtu > MAX_MTU {
            let text = format!("mtu: {mtu} is above {MAX_MTU}");
            return Err(io::Error::other(text));
        }
        let socket = XdpSocket::open(ifname, vlan)?;
        let (program, memory) = socket.modes();
        Ok(Self {
            ifname: ifname.to_owned(),
            vlan,
            mtu,
            index: interface_index(ifname)?,
            mode: format!("xdp, {program} mode, {memory}"),
            socket,
            queued: (0, 0),
            event: false,
            failures: Failures::default(),
        })
    }

    /// Queues a frame, with a tag if the port is of a VLAN. False without room.
    fn queue(&mut self, head: &[u8], rest: Option<UncopiedTail<'_>>) -> bool {
        let (addresses, behind) = head.split_at(ADDRESSES.min(head.len()));
        let tag = self.vlan.map(|vlan| {
            let [high, low] = vlan.to_be_bytes();
            [0x81, 0, high, low]
        });
        let tag = tag.as_ref().map_or(&[][..], |tag| tag);
        let len = head.len() + rest.map_or(0, |rest| rest.len());
        let is_queued = self.socket.push(len + tag.len(), |mut to| {
            for part in [addresses, tag, behind] {
                let (start, end) = to.split_at_mut(part.len());
                start.copy_from_slice(part);
                to = end;
            }
            if let Some(rest) = rest {
                rest.read(to);
            }
        });
        if is_queued {
            self.queued.0 += 1;
            self.queued.1 += len as u64;
        }
        is_queued
    }

    /// Sends the queued frames and counts the outcome.
    fn send(&mut self, counters: &mut Counters) {
        let (packets, bytes) = std::mem::take(&mut self.queued);
        let mut kept = None;
        match self.socket.flush() {
            Ok(()) => {
                counters.tx_packets += packets;
                counters.tx_bytes += bytes;
            }
            Err(error) => *counter_of(&error, counters, &mut kept) += packets,
        }
        if let Some(error) = kept {
            self.failures.report(&self.ifname, &error);
        }
    }
}

/// Opens an AF_XDP socket, or a packet socket if the kernel refuses that.
pub fn by_xdp(ifname: &str, vlan: Option<u16>, mtu: u16) -> io::Result<Box<dyn Device>> {
    match XdpPort::open(ifname, vlan, mtu) {
        Ok(port) => Ok(Box::new(port)),
        Err(error) => {
            let port = HostPort::open(Kind::Veth, ifname, vlan)?;
            log::warn!("{ifname}: xdp: {error}; a packet socket takes the frames");
            Ok(Box::new(
                port.with_mode(format!("packet socket, xdp: {error}")),
            ))
        }
    }
}

impl Device for XdpPort {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn interface(&self) -> Option<(&str, Option<u16>)> {
        Some((&self.ifname, self.vlan))
    }

    fn far_end(&self) -> FarEnd {
        far_end(&self.ifname, self.index)
    }

    fn reopening(&self) -> Option<Reopening> {
        let (ifname, vlan, mtu) = (self.ifname.clone(), self.vlan, self.mtu);
        Some(Reopening {
            ifname: ifname.clone(),
            index: self.index,
            open: Box::new(move || by_xdp(&ifname, vlan, mtu)),
        })
    }

    fn mode(&self) -> Option<&str> {
        Some(&self.mode)
    }

    /// The rings show new frames without a system call.
    fn is_of_kernel(&self) -> bool {
        false
    }

    fn take_event(&mut self) {
        self.event = true;
    }

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        let count = self.socket.receive(&mut burst.host);
        if std::mem::take(&mut self.event) {
            match self.socket.take_error() {
                Some(error) => self.failures.report(&self.ifname, &error),
                None => self.failures.end_if(count > 0),
            }
        }
        count
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
        out.finish(&mut buffers.segment, |head, rest| {
            if !self.queue(head, rest) {
                self.send(counters);
                if !self.queue(head, rest) {
                    counters.dropped_full += 1;
                }
            }
        });
    }

    fn flush(&mut self, counters: &mut Counters) {
        self.send(counters);
    }

    fn sleep_prepare(&mut self) -> bool {
        self.event || self.socket.has_frames()
    }
}
