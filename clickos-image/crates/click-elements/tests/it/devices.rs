// SPDX-License-Identifier: Apache-2.0
//! Devices in memory for the routers of tests.
use std::cell::RefCell;
use std::rc::Rc;

use click_core::{Device, Environment, MemoryDevice};

pub type Memory = Rc<RefCell<MemoryDevice>>;

/// The devices 0 to `N` - 1; the last octet of an address is the device's number.
pub fn devices<const N: usize>() -> [Memory; N] {
    let device = |n| MemoryDevice::new([2, 0, 0, 0, 0, n as u8]);
    std::array::from_fn(|n| Rc::new(RefCell::new(device(n))))
}

/// An environment that has the devices, by their places.
pub fn environment(devices: &[Memory]) -> Environment {
    let dynamic = devices.iter().map(|d| d.clone() as Rc<RefCell<dyn Device>>);
    Environment {
        devices: (0..).zip(dynamic).collect(),
        ..Environment::new()
    }
}
