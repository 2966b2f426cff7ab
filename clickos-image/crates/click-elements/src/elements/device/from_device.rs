// SPDX-License-Identifier: Apache-2.0
//! Receives packets from a device.
//!
//! # Synopsis
//! `FromDevice(DEVID [, BURST, ACTIVE])`: DEVID is the number of the device (vif), mandatory; at most BURST packets
//! at a time (default 32), only while ACTIVE (default true).
//! # Ports
//! 0/1, push. Packets begin with the Ethernet header; timestamp and packet type annotations are set.
//! # Handlers
//! * `count` (read): packets received. `reset_counts` (write): sets it to 0.
//! * `active` (read, write): ACTIVE. `mac` (read): the device's address.
//! # Example
//! `FromDevice(0) -> Counter -> Discard;`
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::Device;
use click_core::anno::PacketType;
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromDevice",
    aliases: &["FromClickOS"],
    ports: "0/1",
    processing: "h/h",
    args: &[mandatory("DEVID"), optional("BURST"), keyword("ACTIVE")],
    handlers: &[
        read("count"),
        write("reset_counts"),
        read_write("active"),
        read("mac"),
    ],
    build: |a| {
        let (id, burst, active) = (
            a.need::<DeviceId>("DEVID"),
            a.or("BURST", 32usize),
            a.or("ACTIVE", true),
        );
        let device = a.environment().devices.get(&id?.0)?.clone();
        let mac = EtherAddr(device.try_borrow().ok()?.mac());
        Some(Box::new(FromDevice {
            device,
            mac,
            burst: burst?.max(1),
            active: active?,
            count: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

struct FromDevice {
    device: Rc<RefCell<dyn Device>>,
    mac: EtherAddr,
    burst: usize,
    active: bool,
    count: u64,
}

impl FromDevice {
    fn packet_type(&self, frame: &[u8]) -> PacketType {
        match frame.first_chunk::<6>() {
            Some(to) if *to == self.mac.0 => PacketType::Host,
            Some(to) if *to == ether::BROADCAST => PacketType::Broadcast,
            Some(to) if ether::is_group(*to) => PacketType::Multicast,
            _ => PacketType::OtherHost,
        }
    }
}

impl Element for FromDevice {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.active {
            return false;
        }
        ctx.schedule();
        let mut batch = ctx.batch();
        let received = self
            .device
            .borrow_mut()
            .receive(self.burst, ctx.pool(), &mut batch);
        let now = ctx.now_ns();
        for packet in batch.iter_mut() {
            packet.set_timestamp_ns(now);
            packet.set_mac_offset(0);
            let packet_type = self.packet_type(packet.data());
            packet.anno_mut().packet_type = packet_type;
        }
        self.count += batch.len() as u64;
        ctx.push(0, batch);
        received > 0
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "count" => text(self.count),
            "active" => text(self.active),
            "mac" => text(self.mac),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "reset_counts" => on_write(|me: &mut Self, _| me.count = 0),
            "active" => on_value(view, value, |me: &mut Self, active, ctx| {
                me.active = active;
                ctx.schedule();
            }),
            _ => undeclared(handler),
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.count = old.count;
        }
    }
}
