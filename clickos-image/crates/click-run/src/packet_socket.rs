// SPDX-License-Identifier: Apache-2.0
//! A network interface of this machine as a device: a packet socket.
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use click_core::{Batch, Device, DeviceRequest, PacketPool};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg, send,
    socket,
};

use crate::host::Watched;
use crate::kernel_filter::KernelFilter;

/// linux/if_packet.h: what this machine itself sent.
const OUTGOING: u8 = 4;
/// Longest frame received.
const MAX_FRAME: usize = 65_535;

/// An open interface.
pub struct PacketSocket {
    socket: OwnedFd,
    /// Keeps the interface promiscuous as long as it is open.
    _promiscuous: Option<OwnedFd>,
    /// Keeps the machine from taking what comes in.
    _filter: Option<KernelFilter>,
    mac: [u8; 6],
    mtu: u16,
    outbound: bool,
    buffer: Vec<u8>,
}

/// The interface's address on its link.
fn link(name: &str) -> io::Result<LinkAddr> {
    let mut all = getifaddrs()?.filter(|a| a.interface_name == name);
    let link = all.find_map(|a| a.address?.as_link_addr().copied());
    link.ok_or_else(|| io::Error::from_raw_os_error(Errno::ENODEV as i32))
}

impl PacketSocket {
    /// Opens an interface.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn open(request: &DeviceRequest) -> Result<Self, String> {
        let opened = Self::try_open(request).map_err(|e| format!("{}: {e}", request.name));
        let mut opened = opened?;
        if request.exclusive {
            opened._filter = Some(KernelFilter::new(&request.name)?);
        }
        Ok(opened)
    }

    fn try_open(request: &DeviceRequest) -> io::Result<Self> {
        let link = link(&request.name)?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        // a socket without a protocol receives nothing
        let protocol = request.receives.then_some(SockProtocol::EthAll);
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, protocol)?;
        bind(socket.as_raw_fd(), &link)?;
        let mut opened = Self {
            socket,
            _promiscuous: None,
            _filter: None,
            mac: link.addr().unwrap_or_default(),
            mtu: mtu(&request.name),
            outbound: request.outbound,
            buffer: vec![0; request.snaplen.clamp(14, MAX_FRAME)],
        };
        if request.promiscuous {
            opened._promiscuous = Some(vale_netdev::open_packet_socket(&request.name)?);
        }
        // frames of other interfaces that came before the socket was bound
        while opened.receive_one().is_some() {}
        Ok(opened)
    }

    /// Receives a frame: its length in the buffer, and whether this machine sent it.
    fn receive_one(&mut self) -> Option<(usize, bool)> {
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let fd = self.socket.as_raw_fd();
        loop {
            return match recvmsg::<LinkAddr>(fd, &mut parts, None, MsgFlags::empty()) {
                Ok(got) => {
                    let outgoing = got.address.is_some_and(|a| a.pkttype() == OUTGOING);
                    Some((got.bytes, outgoing))
                }
                Err(Errno::EINTR) => continue,
                Err(_) => None,
            };
        }
    }
}

/// The MTU that the kernel reports for an interface; Ethernet's usual one without a report.
fn mtu(name: &str) -> u16 {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/mtu"));
    let number = text.ok().and_then(|t| t.trim().parse().ok());
    number.unwrap_or(1500)
}

impl Watched for PacketSocket {
    fn file(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Device for PacketSocket {
    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize {
        let mut received = 0;
        while received < max {
            let Some((len, outgoing)) = self.receive_one() else {
                break;
            };
            received += 1;
            if outgoing && !self.outbound {
                continue;
            }
            let Some(packet) = pool.packet_from(&self.buffer[..len]) else {
                break;
            };
            out.push_back(packet);
        }
        received
    }

    fn transmit(&mut self, batch: &mut Batch, _pool: &mut PacketPool) -> usize {
        let (mut done, fd) = (0, self.socket.as_raw_fd());
        for packet in batch.iter_mut() {
            match send(fd, packet.data(), MsgFlags::empty()) {
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => break,
                // a frame that cannot be sent at all does not block those behind it
                Ok(_) | Err(_) => done += 1,
            }
        }
        batch.drain_front(done).for_each(drop);
        done
    }

    fn flush(&mut self) {}

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }
}
