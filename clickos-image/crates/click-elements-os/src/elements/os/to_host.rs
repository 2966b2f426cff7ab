// SPDX-License-Identifier: Apache-2.0
//! Gives the machine Ethernet frames, as if they came in by an interface that a `FromHost` made.
//!
//! # Synopsis
//! `ToHost(DEVNAME)`: the name that the FromHost was given.
//! # Ports
//! 1/0, push.
//! # Handlers
//! * `dev_name` (read): DEVNAME. `drops` (read): packets without a whole Ethernet header, and those the machine did not
//!   take.
//! # Differences from Click
//! See `KernelTun`.
//! # Example
//! `FromHost(fake0, 10.1.0.1/24) -> Classifier(12/0806) -> ARPResponder(0.0.0.0/0 1:1:1:1:1:1) -> ToHost(fake0);`
use std::cell::RefCell;
use std::rc::Rc;

use click_core::Device;

use crate::kernel_interface::{ETHERNET, Named};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ToHost",
    ports: "1/0",
    processing: "h/h",
    args: &[mandatory("DEVNAME")],
    handlers: &[
        read("dev_name", |me: &mut ToHost, _| text(&me.name)),
        read("drops", |me, _| text(me.drops)),
    ],
    quiet: true,
    build: |a| {
        Some(Box::new(ToHost {
            name: a.need("DEVNAME")?,
            device: None,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

struct ToHost {
    name: String,
    device: Option<Rc<RefCell<dyn Device>>>,
    drops: u64,
}

impl Element for ToHost {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let named: Rc<RefCell<Named>> = ctx.shared();
        let device = named.borrow().0.get(&self.name).cloned();
        let missing = || format!("DEVNAME: no FromHost makes an interface \"{}\"", self.name);
        self.device = Some(device.ok_or_else(missing)?);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        let before = batch.len();
        let mut frames = ctx.batch();
        let whole = |packet: &Packet| packet.len() >= ETHERNET;
        frames.extend(batch.drain_front(usize::MAX).filter(whole));
        let device = self.device.as_ref().map(|device| device.borrow_mut());
        let sent = device.map_or(0, |mut device| device.transmit(&mut frames, ctx.pool()));
        self.drops += (before - sent) as u64;
        ctx.recycle(batch);
        ctx.recycle(frames);
    }
}
