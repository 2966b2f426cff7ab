// SPDX-License-Identifier: Apache-2.0
//! Where a router of a pair meets a network: takes VRRP's messages out of what arrives, and sends its own.
//!
//! # Synopsis
//! `VRRPPort(VRRP, VRID, IP, ETH, ADDRESS, ... [, PEER, PEER_ETH])`: VRRP is the element with the router's state. VRID
//! (1 to 255) is the number of the virtual router in this network, and each ADDRESS (at most 16) one of its addresses;
//! its Ethernet address is 00-00-5E-00-01-VRID. IP and ETH are the router's own addresses, PEER and PEER_ETH those of the
//! other router, to which flows are copied.
//! # Ports
//! 1/2, push. Input 0 takes the frames of a device. Output 0 sends frames for the function while the router is active:
//! those to the virtual Ethernet address, and to groups. Output 1 sends frames of VRRP; they go to the device without
//! a queue. A frame to the own address is dropped, unless it is for VRRP or asks by ARP for IP.
//! # Handlers
//! * `count` (read): frames of VRRP that arrived. `drops` (read): frames that were dropped, since the router is not active
//!   or they are for others.
//! * `flush` (write): sends the frames that wait; `VRRP` uses it.
//! # Example
//! `FromDevice(0) -> in :: VRRPPort(vrrp, 1, 10.0.0.2, vif0, 10.0.0.1) -> Discard; in[1] -> ToDevice(0);`
use click_core::anno::PacketType;
use click_wire::ether;

use crate::prelude::*;
use crate::vrrp::advertisement::{MAX_ADDRESSES, virtual_mac};
use crate::vrrp::frame::{self, Own, Station};
use crate::vrrp::group::{MAX_SIDES, Shared, Side};
use crate::vrrp::router::group_of;

pub static ELEMENT: Class = Class {
    name: "VRRPPort",
    ports: "1/2",
    processing: "h/h",
    flow: "x/xy",
    args: &[
        mandatory("VRRP"),
        mandatory("VRID"),
        mandatory("IP"),
        mandatory("ETH"),
        rest("ADDRESS"),
        keyword("PEER"),
        keyword("PEER_ETH"),
    ],
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
    group: Option<Shared>,
    side: usize,
    vrid: u8,
    own: Station,
    peer: Option<Station>,
    addresses: Vec<Ipv4Addr>,
    count: u64,
    drops: u64,
}

fn build(a: &mut Args<'_>) -> Built {
    let (vrrp, vrid) = (a.need::<String>("VRRP"), a.need::<u8>("VRID"));
    let (ip, mac) = (a.need::<Ipv4Addr>("IP"), a.need::<EtherAddr>("ETH"));
    let (peer, peer_mac) = (a.opt::<Ipv4Addr>("PEER"), a.opt::<EtherAddr>("PEER_ETH"));
    let texts = a.rest().to_vec();
    let addresses = texts
        .iter()
        .map(|text| a.parse("ADDRESS", text))
        .collect::<Option<Vec<_>>>();
    let (vrid, addresses, peer, peer_mac) = (vrid?, addresses?, peer?, peer_mac?);
    if vrid == 0 {
        a.error("VRID", "0 is out of range, the least is 1");
    }
    if !(1..=MAX_ADDRESSES).contains(&addresses.len()) {
        let got = addresses.len();
        a.error(
            "ADDRESS",
            format!("{got} addresses, expected 1 to {MAX_ADDRESSES}"),
        );
    }
    if peer.is_some() != peer_mac.is_some() {
        a.error("PEER", "PEER and PEER_ETH belong together");
    }
    let (own, peer) = (
        Station {
            ip: ip?,
            mac: mac?.0,
        },
        peer.zip(peer_mac)
            .map(|(ip, mac)| Station { ip, mac: mac.0 }),
    );
    Some(Box::new(VRRPPort {
        vrrp: vrrp?,
        group: None,
        side: 0,
        vrid,
        own,
        peer,
        addresses,
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

    /// Takes a frame for the router itself; false if it is none.
    fn take(&mut self, ctx: &mut Context<'_>, frame: &[u8]) -> bool {
        let Some(found) = frame::parse(frame, self.own, self.peer) else {
            return false;
        };
        let group = &mut *self.shared().borrow_mut();
        match found {
            Own::Advertisement(from, message) => {
                group.receive(self.side, from, &message, ctx.now_ns());
            }
            Own::Copy(message) => group.keep(message),
            Own::Asked(host) => group.sides[self.side].send(frame::answer(self.own, host)),
        }
        true
    }

    /// The output of a frame while the router is active or not, or `None` to look into it.
    fn decide(&self, to: [u8; 6], is_active: bool) -> usize {
        kept_if(is_active && (to == virtual_mac(self.vrid) || ether::is_group(to)))
    }
}

impl Element for VRRPPort {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let group = group_of(ctx, &self.vrrp).map_err(|text| format!("VRRP: {text}"))?;
        let side = Side::new(
            ctx.name().to_string(),
            self.vrid,
            self.own,
            self.peer,
            self.addresses.clone(),
        );
        {
            let sides = &mut group.borrow_mut().sides;
            if sides.len() == MAX_SIDES {
                return Err(format!("VRRP: too many ports, the most is {MAX_SIDES}"));
            }
            self.side = sides.len();
            sides.push(side);
        }
        self.group = Some(group);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        let is_active = self.shared().borrow().is_active();
        let virtual_mac = virtual_mac(self.vrid);
        let (mut ports, mut taken) = (ctx.take_ports(), 0);
        batch.prefetch();
        for packet in batch.iter_mut() {
            let to: [u8; 6] = packet.data().first_chunk().copied().unwrap_or_default();
            let is_virtual = to == virtual_mac;
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
