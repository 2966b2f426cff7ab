// SPDX-License-Identifier: Apache-2.0
//! An interface of this machine whose other end is a router: `/dev/net/tun`.
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;

use click_core::{Batch, Device, PacketPool, TunRequest};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::host::Watched;

/// Octets of an Ethernet header with a tag.
const ETHERNET: usize = 18;

/// Such an interface; it goes with this.
pub struct KernelTun {
    device: SyncDevice,
    /// Its name.
    pub name: String,
    mac: [u8; 6],
    mtu: u16,
    buffer: Vec<u8>,
}

impl KernelTun {
    /// Makes it, gives it its address, and brings it up.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn open(request: &TunRequest) -> Result<Self, String> {
        let opened = Self::try_open(request).map_err(|e| format!("/dev/net/tun: {e}"))?;
        if let Some(gateway) = request.gateway {
            let words = ["route", "add", "default", "via", &gateway.to_string()];
            let status = Command::new("ip").args(words).status();
            match status {
                Ok(status) if status.success() => {}
                Ok(status) => return Err(format!("ip {}: {status}", words.join(" "))),
                Err(error) => return Err(format!("ip: {error}")),
            }
        }
        Ok(opened)
    }

    fn try_open(request: &TunRequest) -> io::Result<Self> {
        let mut builder = DeviceBuilder::new()
            .layer(if request.ethernet {
                Layer::L2
            } else {
                Layer::L3
            })
            .mtu(request.mtu);
        if let Some((address, prefix)) = request.address {
            builder = builder.ipv4(address, prefix, None);
        }
        if let Some(name) = &request.name {
            builder = builder.name(name);
        }
        if let Some(mac) = request.mac.filter(|_| request.ethernet) {
            builder = builder.mac_addr(mac);
        }
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Self {
            name: device.name()?,
            mac: request.mac.unwrap_or_default(),
            mtu: request.mtu,
            buffer: vec![0; usize::from(request.mtu) + ETHERNET],
            device,
        })
    }
}

impl Watched for KernelTun {
    fn file(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Device for KernelTun {
    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize {
        let mut received = 0;
        while received < max {
            let Ok(length) = self.device.recv(&mut self.buffer) else {
                break;
            };
            let Some(packet) = pool.packet_from(&self.buffer[..length]) else {
                break;
            };
            out.push_back(packet);
            received += 1;
        }
        received
    }

    fn transmit(&mut self, batch: &mut Batch, _pool: &mut PacketPool) -> usize {
        let mut done = 0;
        for packet in batch.iter_mut() {
            match self.device.send(packet.data()) {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    break;
                }
                // a packet that cannot be sent at all does not block those behind it
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
