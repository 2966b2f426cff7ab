// SPDX-License-Identifier: Apache-2.0
//! The guest's network devices as the engine's.
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use click_core::{Batch, Device, PacketPool};
use core::cell::RefCell;
use xen_net::{NetDevice, Vif};

/// The engine's devices by vif number.
pub type Devices = BTreeMap<u32, Rc<RefCell<dyn Device>>>;

/// Those that configurations can use.
pub fn devices(vifs: &[Vif]) -> Devices {
    let usable = vifs.iter().filter(|vif| vif.is_usable());
    let device = |vif: &Vif| Rc::new(RefCell::new(VifDevice(Rc::clone(&vif.device))));
    let mut devices = Devices::new();
    devices.extend(usable.map(|vif| (vif.devid, device(vif) as Rc<RefCell<dyn Device>>)));
    devices
}

struct VifDevice(Rc<RefCell<dyn NetDevice>>);

impl Device for VifDevice {
    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize {
        self.0.borrow_mut().receive(max, pool, out)
    }

    fn transmit(&mut self, batch: &mut Batch, _pool: &mut PacketPool) -> usize {
        self.0.borrow_mut().transmit(batch)
    }

    fn flush(&mut self) {
        self.0.borrow_mut().publish();
    }

    fn mac(&self) -> [u8; 6] {
        self.0.borrow().mac()
    }

    fn mtu(&self) -> u16 {
        self.0.borrow().mtu()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.0.borrow().counters().list().into()
    }
}
