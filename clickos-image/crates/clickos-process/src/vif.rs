// SPDX-License-Identifier: Apache-2.0
//! A vif: the guest's side of a switch port as the engine's device.
use crate::arguments::{self, mac};
use crate::inherited::VifResources;
use click_core::{Batch, Device, PacketPool};
use click_packet::Region;
use clickos_vif::{InPlace, copying};
use ring::{Blocks, GuestPort, InPlacePort, Mapping, RingError};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// The rings of a port in the version that the switch has made.
enum Port {
    Copying(GuestPort),
    InPlace(InPlace<Mapping>),
}

/// A switch port and its events.
pub(crate) struct VifDevice {
    port: Port,
    kick: OwnedFd,
    mac: [u8; 6],
    mtu: u16,
}

/// A device shared between the engine and the guest's loop, and what wakes it.
pub(crate) struct Vif {
    pub devid: u32,
    pub device: Rc<RefCell<VifDevice>>,
    wake: OwnedFd,
    /// The rings, and what keeps the pipe open, for the next switch (adr/0050).
    _kept: [OwnedFd; 2],
}

/// Maps the rings of all vifs.
pub(crate) fn map_all(
    vifs: &[arguments::Vif],
    resources: Vec<VifResources>,
) -> Result<Vec<Vif>, String> {
    vifs.iter()
        .zip(resources)
        .map(|(vif, resources)| map(vif.devid, mac(&vif.mac)?, vif.mtu, resources))
        .collect()
}

/// Maps the rings of a vif.
pub(crate) fn map(
    devid: u32,
    mac: [u8; 6],
    mtu: u16,
    resources: VifResources,
) -> Result<Vif, String> {
    let port = Port::map(&resources.memfd).map_err(|e| format!("vif {devid}: {e}"))?;
    let device = VifDevice {
        port,
        kick: resources.kick,
        mac,
        mtu,
    };
    Ok(Vif {
        devid,
        device: Rc::new(RefCell::new(device)),
        wake: resources.wake,
        _kept: [resources.memfd, resources.keep],
    })
}

impl Port {
    fn map(memfd: &OwnedFd) -> Result<Self, RingError> {
        match InPlacePort::map(memfd) {
            Ok((port, blocks)) => Self::in_place(port, blocks),
            Err(RingError::BadVersion(1)) => Ok(Self::Copying(GuestPort::map(memfd)?)),
            Err(e) => Err(e),
        }
    }

    #[allow(unsafe_code)]
    fn in_place(port: InPlacePort, blocks: Blocks) -> Result<Self, RingError> {
        const { assert!(Region::BLOCK == Blocks::SIZE) };
        let (first, count) = (blocks.first(), blocks.count());
        let slots = port.layout().slots();
        let color = InPlace::<Mapping>::color;
        // SAFETY: `Blocks` says all that is needed of its memory until it is dropped.
        let region = unsafe { Region::new(first, count, color, Box::new(blocks)) };
        let rings = InPlace::new(port, region).ok_or(RingError::Slots(slots))?;
        Ok(Self::InPlace(rings))
    }

    fn publish(&mut self) -> bool {
        match self {
            Self::Copying(port) => port.publish(),
            Self::InPlace(rings) => rings.publish(),
        }
    }

    fn sleep_prepare(&mut self) -> bool {
        match self {
            Self::Copying(port) => port.sleep_prepare(),
            Self::InPlace(rings) => rings.port().sleep_prepare(),
        }
    }

    fn wake_done(&mut self) {
        match self {
            Self::Copying(port) => port.wake_done(),
            Self::InPlace(rings) => {
                rings.port().wake_done();
                rings.reclaim();
            }
        }
    }
}

impl VifDevice {
    /// Publishes what was sent and received; at most one notification.
    fn publish(&mut self) {
        if self.port.publish() {
            // A failure means that the switch is gone; it needs no event then.
            let _ = rustix::io::write(&self.kick, &1_u64.to_ne_bytes());
        }
    }
}

impl Vif {
    /// To be called after the routers ran: gives back the slots of received frames.
    pub(crate) fn publish(&self) {
        self.device.borrow_mut().publish();
    }

    /// Asks for a wake-up; true if there is something to do already.
    pub(crate) fn sleep_prepare(&self) -> bool {
        self.device.borrow_mut().port.sleep_prepare()
    }

    /// Ends what `sleep_prepare` began.
    pub(crate) fn wake_done(&self) {
        self.device.borrow_mut().port.wake_done();
    }

    /// The descriptor to wait for.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes the wake-up; to be called when it is readable.
    pub(crate) fn drain(&self) {
        // Nothing is there after a spurious wake-up, and the pipe does not end.
        let _ = rustix::io::read(&self.wake, &mut [0; 64]);
    }
}

impl Device for VifDevice {
    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize {
        match &mut self.port {
            Port::Copying(port) => copying::receive(max, pool, out, port, |_| {}),
            Port::InPlace(rings) => rings.receive(max, pool, out, |_| {}),
        }
    }

    fn transmit(&mut self, batch: &mut Batch, _pool: &mut PacketPool) -> usize {
        let mut sent = 0;
        match &mut self.port {
            Port::Copying(port) => sent = copying::transmit(batch, |frame| port.push(frame)),
            Port::InPlace(rings) => {
                rings.transmit(batch, |_, result| sent += usize::from(result.is_ok()));
            }
        }
        sent
    }

    fn flush(&mut self) {
        self.publish();
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }
}

#[cfg(test)]
#[path = "vif_tests.rs"]
mod tests;
