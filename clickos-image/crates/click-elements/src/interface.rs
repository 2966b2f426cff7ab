// SPDX-License-Identifier: Apache-2.0
//! The device an element means: a vif of the guest by its number, or an interface of the machine by
//! its name, which is opened when the router starts.
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::{Device, DeviceRequest};

use crate::prelude::*;

/// A device that is there, or that is to be opened.
pub enum Interface {
    Open(Rc<RefCell<dyn Device>>),
    Wanted(DeviceRequest),
}

impl Interface {
    /// The interface that DEVID names. A machine without vifs has only names: `0` is one, too, so that a
    /// guest's configuration runs where interfaces have its numbers.
    pub fn from_args(a: &mut Args<'_>, request: DeviceRequest) -> Option<Self> {
        let number = request.name.bytes().all(|b| b.is_ascii_digit());
        let vifs = !a.environment().devices.is_empty();
        if a.environment().host.is_some() && !(number && vifs) {
            return Some(Self::Wanted(request));
        }
        let id = a.parse::<DeviceId>("DEVID", &request.name)?;
        let device = a.environment().devices.get(&id.0)?;
        Some(Self::Open(device.clone()))
    }

    /// Opens it if it is not open.
    pub fn open(&mut self, ctx: &Context<'_>) -> Result<(), String> {
        if let Self::Wanted(request) = self {
            let host = ctx.host().ok_or("there are no network interfaces here")?;
            *self = Self::Open(host.open_device(request)?);
        }
        Ok(())
    }

    /// The device, once it is open.
    pub fn device(&self) -> Option<&Rc<RefCell<dyn Device>>> {
        match self {
            Self::Open(device) => Some(device),
            Self::Wanted(_) => None,
        }
    }

    /// The device's address; zeros before it is open.
    pub fn mac(&self) -> EtherAddr {
        let device = self.device().and_then(|d| d.try_borrow().ok());
        EtherAddr(device.map_or([0; 6], |d| d.mac()))
    }
}

/// METHOD: frames go through packet sockets only.
pub fn check_method(a: &mut Args<'_>) -> Option<()> {
    let method = a.or("METHOD", "LINUX".to_string())?;
    if !["LINUX", "PCAP"].contains(&method.to_ascii_uppercase().as_str()) {
        let got = method.shown();
        a.error("METHOD", format!("expected LINUX or PCAP, got \"{got}\""));
    }
    Some(())
}
