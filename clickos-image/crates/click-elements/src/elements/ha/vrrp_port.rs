// SPDX-License-Identifier: Apache-2.0
//! Where a router of a pair meets a network: takes VRRP's messages out of what arrives, and sends its own.
//!
//! # Synopsis
//! `VRRPPort(VRRP, SIDE)`: VRRP is the element with the router's state, and SIDE the number of its network there, from 0.
//! # Ports
//! 1/2, push. Input 0 takes the frames of a device. Output 0 sends frames for the function while the router is active:
//! those to the virtual Ethernet address, and to groups. Output 1 sends frames of VRRP; they go to the device without
//! a queue. A frame to the own address is dropped, unless it is for VRRP or asks for IP.
//! # Handlers
//! * `count` (read): frames of VRRP that arrived. `drops` (read): frames that were dropped, since the router is not active
//!   or they are for others.
//! * `flush` (write): sends the frames that wait; `VRRP` uses it.
//! # Example
//! `FromDevice(0) -> in :: VRRPPort(vrrp, 0) -> Discard; in[1] -> ToDevice(0);`
use alloc::rc::Rc;
use core::net::IpAddr;

use click_core::anno::PacketType;
use click_wire::ether;

use crate::prelude::*;
use crate::vrrp::frame::{self, Own, Station};
use crate::vrrp::group::Shared;
use crate::vrrp::router::group_of;

pub static ELEMENT: Class = Class {
    name: "VRRPPort",
    ports: "1/2",
    processing: "h/h",
    flow: "x/xy",
    args: &[mandatory("VRRP"), mandatory("SIDE")],
    handlers: &[
        read("count", |me: &mut VRRPPort, _| text(me.count)),
        read("drops", |me, _| text(me.drops)),
        command("flush", run!(|me, ctx| me.flush(ctx))),
    ],
    build,
    ..Class::DEFAULT
};

struct VRRPPort {
    vrrp: String,
    side: usize,
    group: Option<Shared>,
    own: Station,
    peer: Option<Station>,
    virtual_mac: [u8; 6],
    count: u64,
    drops: u64,
}

const NOWHERE: Station = Station {
    ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    mac: [0; 6],
};

fn build(a: &mut Args<'_>) -> Built {
    let (vrrp, side) = (a.need("VRRP"), a.need("SIDE"));
    Some(Box::new(VRRPPort {
        vrrp: vrrp?,
        side: side?,
        group: None,
        own: NOWHERE,
        peer: None,
        virtual_mac: [0; 6],
        count: 0,
        drops: 0,
    }))
}

impl VRRPPort {
    fn shared(&self) -> &Shared {
        self.group
            .as_ref()
            .expect("initialized before packets move")
    }

    /// Sends the frames that wait.
    fn flush(&self, ctx: &mut Context<'_>) {
        let frames = self.shared().borrow_mut().sides[self.side].take_frames();
        for frame in frames {
            let Some(mut packet) = ctx.pool().alloc(frame.len()) else {
                return;
            };
            packet.data_mut().copy_from_slice(&frame);
            packet.set_mac_offset(0);
            packet.set_network(ether::HEADER, frame.len() - ether::HEADER);
            ctx.push_one(1, packet);
        }
    }

    /// Takes a frame for the router itself; false if it is not one.
    fn take(&mut self, ctx: &mut Context<'_>, frame: &[u8]) -> bool {
        let Some(found) = frame::parse(frame, self.own, self.peer) else {
            return false;
        };
        let shared = Rc::clone(self.shared());
        let group = &mut *shared.borrow_mut();
        match found {
            Own::Advertisement(from, message) => {
                group.receive(self.side, from, &message, ctx.now_ns());
            }
            Own::Copy(message) => group.keep(message),
            Own::Bad => self.drops += 1,
            Own::Asked(answer) => group.sides[self.side].send(answer),
        }
        true
    }

    /// The output of a frame that is for the function, or for others.
    fn decide(&self, to: [u8; 6], is_active: bool) -> usize {
        kept_if(is_active && (to == self.virtual_mac || ether::is_group(to)))
    }
}

impl Element for VRRPPort {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let group = group_of(ctx, &self.vrrp).map_err(|text| format!("VRRP: {text}"))?;
        {
            let sides = &mut group.borrow_mut().sides;
            let most = sides.len().saturating_sub(1);
            let Some(side) = sides.get_mut(self.side) else {
                return Err(format!(
                    "SIDE: {} is out of range, the most is {most}",
                    self.side
                ));
            };
            if !side.name.is_empty() {
                return Err(format!(
                    "SIDE: {} is of \"{}\" already",
                    self.side, side.name
                ));
            }
            side.name = ctx.name().to_string();
            (self.own, self.peer) = (side.own, side.peer);
            self.virtual_mac = side.mac();
        }
        self.group = Some(group);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        let is_active = self.shared().borrow().is_active();
        let (mut ports, mut taken) = (ctx.take_ports(), 0);
        batch.prefetch();
        for packet in batch.iter_mut() {
            let to: [u8; 6] = packet.data().first_chunk().copied().unwrap_or_default();
            let is_virtual = to == self.virtual_mac;
            let is_own = !is_virtual && self.take(ctx, packet.data());
            taken += u64::from(is_own);
            let port = if is_own {
                DROPPED
            } else {
                self.decide(to, is_active)
            };
            if is_virtual {
                packet.anno_mut().set_packet_type(PacketType::Host);
            }
            self.drops += u64::from(port == DROPPED && !is_own);
            ports.push(port);
        }
        ctx.push_runs(batch, &ports);
        ctx.recycle_ports(ports);
        if taken > 0 {
            self.count += taken;
            let wake = format!("{}.wake", self.vrrp);
            ctx.call_later(&wake, "");
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.count, self.drops) = (old.count, old.drops);
        }
    }
}
