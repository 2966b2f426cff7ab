// SPDX-License-Identifier: Apache-2.0
//! KernelTun and KernelTap: an interface that is made for an element, by which the machine's own
//! network and the router exchange packets.
use click_core::class::{Arg, Handler};
use click_core::{HEADROOM, Tun, TunRequest};

use crate::dump::link::Link;
use crate::prelude::*;

pub const ARGS: [Arg; 8] = [
    mandatory("ADDR"),
    optional("GATEWAY"),
    keyword("BURST"),
    keyword("HEADROOM"),
    keyword("MTU"),
    keyword("ETHER"),
    keyword("IGNORE_QUEUE_OVERFLOWS"),
    keyword("DEVNAME"),
];

pub const HANDLERS: [Handler; 4] = [
    read("dev_name"),
    read("packets"),
    read("selected_calls"),
    read("drops"),
];

/// The Ethernet address of interfaces that are given none.
const MAC: EtherAddr = EtherAddr([0, 1, 2, 3, 4, 5]);
/// Octets of an Ethernet header.
const ETHERNET: usize = 14;
/// Octets of the shortest IP header.
const IP_HEADER: u16 = 20;

/// What the arguments `ARGS` ask for.
pub fn build(a: &mut Args<'_>, ethernet: bool) -> Built {
    let (request, burst) = (request(a, ethernet), a.or("BURST", 1usize));
    let headroom = a.or("HEADROOM", 0usize);
    // what cannot be written is counted, not told of, so there is nothing to be quiet about
    a.or("IGNORE_QUEUE_OVERFLOWS", false)?;
    if burst == Some(0) {
        a.error("BURST", "expected a number of at least 1, got 0");
    }
    if headroom? > HEADROOM {
        a.error("HEADROOM", format!("every packet has {HEADROOM} octets"));
    }
    Some(Box::new(KernelInterface {
        request: request?,
        burst: burst?,
        tun: None,
        packets: 0,
        looks: 0,
        drops: 0,
    }))
}

fn request(a: &mut Args<'_>, ethernet: bool) -> Option<TunRequest> {
    let (address, gateway) = (a.need::<Prefix>("ADDR"), a.opt::<Ipv4Addr>("GATEWAY"));
    let (mtu, mac) = (a.or("MTU", 1500u16), a.or("ETHER", MAC));
    let name = a.opt("DEVNAME");
    let (address, gateway, mtu) = (address?, gateway?, mtu?);
    if let Some(outside) = gateway.filter(|gateway| !address.contains(*gateway)) {
        a.error(
            "GATEWAY",
            format!("{outside} is not in the network of ADDR"),
        );
    }
    if mtu < IP_HEADER {
        a.error("MTU", format!("expected at least {IP_HEADER}, got {mtu}"));
    }
    Some(TunRequest {
        name: name?,
        ethernet,
        address: (address.address, prefix_len(address)),
        gateway,
        mac: Some(mac?.0),
        mtu,
    })
}

fn prefix_len(network: Prefix) -> u8 {
    let ones = u32::from(network.mask).leading_ones();
    u8::try_from(ones).expect("at most 32")
}

struct KernelInterface {
    request: TunRequest,
    burst: usize,
    tun: Option<Tun>,
    /// Packets received.
    packets: u64,
    /// How often there was something to receive.
    looks: u64,
    drops: u64,
}

impl KernelInterface {
    /// Receives a burst; returns whether there was anything.
    fn receive(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(tun) = &self.tun else {
            return false;
        };
        let mut batch = ctx.batch();
        let mut device = tun.device.borrow_mut();
        let received = device.receive(self.burst, ctx.pool(), &mut batch);
        drop(device);
        self.looks += u64::from(received > 0);
        self.packets += batch.len() as u64;
        let now = ctx.now_ns();
        for mut packet in batch.drain_front(usize::MAX) {
            packet.set_timestamp_ns(now);
            let right = self.request.ethernet || Link::IP.mark_ip(&mut packet);
            ctx.push_one(usize::from(!right), packet);
        }
        ctx.recycle(batch);
        received > 0
    }

    /// The packet as it is written; nothing if it does not fit the interface.
    fn fitting(&self, mut packet: Packet) -> Option<Packet> {
        let mut header = 0;
        if self.request.ethernet {
            header = ETHERNET;
        } else {
            let at = packet
                .network_offset()
                .and_then(|at| usize::try_from(at).ok())?;
            packet.pull(at);
            let version = packet.data().first().map(|b| b >> 4);
            if packet.len() < usize::from(IP_HEADER) || !matches!(version, Some(4 | 6)) {
                return None;
            }
        }
        let fits = (header..=header + usize::from(self.request.mtu)).contains(&packet.len());
        fits.then_some(packet)
    }

    fn transmit(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let mut fitting = ctx.batch();
        let before = batch.len();
        for packet in batch.drain_front(usize::MAX) {
            fitting.extend(self.fitting(packet));
        }
        ctx.recycle(batch);
        let mut sent = 0;
        if let Some(tun) = &self.tun {
            sent = tun.device.borrow_mut().transmit(&mut fitting, ctx.pool());
        }
        self.drops += (before - sent) as u64;
        ctx.recycle(fitting);
    }
}

impl Element for KernelInterface {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let host = ctx.host().ok_or("there are no network interfaces here")?;
        self.tun = Some(host.open_tun(&self.request)?);
        ctx.schedule();
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.transmit(ctx, batch);
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        ctx.schedule();
        let received = self.receive(ctx);
        if !ctx.input_is_pull(0) {
            return received;
        }
        let batch = ctx.pull(0, self.burst);
        let pulled = !batch.is_empty();
        self.transmit(ctx, batch);
        received || pulled
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "dev_name" => text(self.tun.as_ref().map_or("", |tun| &tun.name)),
            "packets" => text(self.packets),
            "selected_calls" => text(self.looks),
            "drops" => text(self.drops),
            _ => undeclared(handler),
        }
    }
}
