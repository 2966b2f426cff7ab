// SPDX-License-Identifier: Apache-2.0
//! Receives packets from a device.
//!
//! # Synopsis
//! `FromDevice([DEVID, BURST, keywords])`: DEVID is the number of the device (vif; default 0), or in the program `click` the name
//! of a network interface, which may be a number, too; at most BURST packets at a time (default 32). Keywords: ACTIVE (default true). For a
//! network interface: PROMISC (default false) also receives frames for other addresses. OUTBOUND (default false) also
//! receives what this machine sends. SNAPLEN is the most octets of a frame (default 65535). SNIFFER (default true):
//! with false, a rule of iptables keeps the machine itself from IP packets that come in by the interface. METHOD is
//! LINUX or PCAP, which are the same here.
//! # Ports
//! 0/1-2, push. Output 1 gets nothing, as in Click without FORCE_IP. Packets begin with the Ethernet header; timestamp and packet type annotations are set.
//! # Handlers
//! * `count` (read): packets received. `reset_counts` (write): sets it to 0.
//! * `active` (read, write): ACTIVE. `mac` (read): the device's address.
//! # Differences from Click
//! The default BURST is 32. In a guest the argument is the number of a vif, 0 by default; in the
//! program a network interface, opened as a packet socket. METHOD is LINUX or PCAP, which are the
//! same here; DEBUG has no effect. BPF_FILTER, FORCE_IP, ENCAP and HEADROOM are missing, so nothing
//! leaves by output 1. Frames of local senders may exceed the MTU and lack checksums unless
//! offloads are switched off.
//! # Example
//! `FromDevice(0) -> Counter -> Discard;`
use click_core::DeviceRequest;
use click_core::anno::PacketType;
use click_wire::ether;

use crate::interface::{Interface, check_method};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromDevice",
    aliases: &["FromClickOS"],
    ports: "0/1-2",
    processing: "h/h",
    args: &[
        optional("DEVID"),
        optional("BURST"),
        keyword("ACTIVE"),
        keyword("PROMISC"),
        keyword("OUTBOUND"),
        keyword("SNAPLEN"),
        keyword("SNIFFER"),
        keyword("METHOD"),
    ],
    handlers: &[
        read("count", |me: &mut FromDevice, _| text(me.count)),
        command("reset_counts", run!(|me, _| me.count = 0)),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                ctx.schedule();
            }),
        ),
        read("mac", |me, _| text(me.mac)),
    ],
    build: |a| {
        let (name, burst) = (a.or("DEVID", "0".to_string()), a.or("BURST", 32usize));
        let (active, promiscuous) = (a.or("ACTIVE", true), a.or("PROMISC", false));
        let (outbound, snaplen) = (a.or("OUTBOUND", false), a.or("SNAPLEN", 65_535usize));
        let sniffer = a.or("SNIFFER", true);
        check_method(a)?;
        let request = DeviceRequest {
            name: name?,
            receives: true,
            promiscuous: promiscuous?,
            outbound: outbound?,
            exclusive: !sniffer?,
            snaplen: snaplen?,
        };
        let interface = Interface::from_args(a, request)?;
        Some(Box::new(FromDevice {
            mac: interface.mac(),
            interface,
            burst: burst?.max(1),
            active: active?,
            count: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

struct FromDevice {
    interface: Interface,
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
        self.interface.open(ctx)?;
        self.mac = self.interface.mac();
        ctx.schedule();
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.active {
            return false;
        }
        ctx.schedule();
        let mut batch = ctx.batch();
        let received = match self.interface.device() {
            Some(device) => device
                .borrow_mut()
                .receive(self.burst, ctx.pool(), &mut batch),
            None => 0,
        };
        let now = ctx.now_ns();
        for packet in batch.iter_mut() {
            packet.set_timestamp_ns(now);
            packet.set_mac_offset(0);
            let packet_type = self.packet_type(packet.data());
            packet.anno_mut().set_packet_type(packet_type);
        }
        self.count += batch.len() as u64;
        ctx.push(0, batch);
        received > 0
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.count = old.count;
        }
    }
}
