// SPDX-License-Identifier: Apache-2.0
//! KernelTun, KernelTap and FromHost: an interface that is made for an element, by which the machine's own
//! network and the router exchange packets.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use click_core::class::Arg;
use click_core::{Device, HEADROOM, Tun, TunRequest};

use click_elements::mark_ip;
use click_elements::prelude::*;

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

/// The handler `dev_name`.
pub const DEV_NAME: Handler<KernelInterface> = read("dev_name", |me, _| {
    text(me.tun.as_ref().map_or("", |tun| &tun.name))
});
/// The handler `packets`.
pub const PACKETS: Handler<KernelInterface> = read("packets", |me, _| text(me.packets));
/// The handler `selected_calls`.
pub const SELECTED_CALLS: Handler<KernelInterface> = read("selected_calls", |me, _| text(me.looks));

/// Handlers of elements that also send packets.
pub const HANDLERS: [Handler<KernelInterface>; 4] = [
    DEV_NAME,
    PACKETS,
    SELECTED_CALLS,
    read("drops", |me, _| text(me.drops)),
];

/// The Ethernet address of interfaces that are given none.
const MAC: EtherAddr = EtherAddr([0, 1, 2, 3, 4, 5]);
/// Octets of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Octets of the shortest IP header.
const IP_HEADER: u16 = 20;

/// What the arguments `ARGS` ask for.
pub fn build(a: &mut Args<'_>, ethernet: bool) -> Built {
    let (request, burst) = (request(a, ethernet), a.or("BURST", 1usize));
    check_headroom(a)?;
    // what cannot be written is counted, not told of, so there is nothing to be quiet about
    a.or("IGNORE_QUEUE_OVERFLOWS", false)?;
    if burst == Some(0) {
        a.error("BURST", "expected a number of at least 1, got 0");
    }
    Some(Box::new(KernelInterface::new(request?, burst?)))
}

fn request(a: &mut Args<'_>, ethernet: bool) -> Option<TunRequest> {
    let (address, name) = (a.need::<Prefix>("ADDR"), a.opt("DEVNAME"));
    let mac = a.or("ETHER", MAC);
    let address = address?;
    let (gateway, mtu) = (gateway(a, "ADDR", Some(address)), mtu(a));
    Some(TunRequest {
        name: name?,
        ethernet,
        address: Some((address.address, prefix_len(address))),
        gateway: gateway?,
        mac: Some(mac?.0),
        mtu: mtu?,
    })
}

/// HEADROOM, which is there anyway.
pub fn check_headroom(a: &mut Args<'_>) -> Option<()> {
    let octets = a.or("HEADROOM", 0usize)?;
    if octets > HEADROOM {
        let message = format!("expected at most {HEADROOM}, which all packets have, got {octets}");
        a.error("HEADROOM", message);
    }
    Some(())
}

/// GATEWAY, which is in the network that argument `of` gives.
pub fn gateway(a: &mut Args<'_>, of: &str, network: Option<Prefix>) -> Option<Option<Ipv4Addr>> {
    let gateway = a.opt::<Ipv4Addr>("GATEWAY")?;
    let inside = |address: Ipv4Addr| network.is_none_or(|network| network.contains(address));
    if let Some(outside) = gateway.filter(|address| !inside(*address)) {
        a.error(
            "GATEWAY",
            format!("{outside} is not in the network of {of}"),
        );
    }
    Some(gateway)
}

/// MTU.
pub fn mtu(a: &mut Args<'_>) -> Option<u16> {
    let mtu = a.or("MTU", 1500u16)?;
    if mtu < IP_HEADER {
        a.error("MTU", format!("expected at least {IP_HEADER}, got {mtu}"));
    }
    Some(mtu)
}

pub fn prefix_len(network: Prefix) -> u8 {
    let ones = u32::from(network.mask).leading_ones();
    u8::try_from(ones).expect("at most 32")
}

/// The interfaces that were made under names, for those who send to them.
#[derive(Default)]
pub struct Named(pub BTreeMap<String, Rc<RefCell<dyn Device>>>);

pub struct KernelInterface {
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
    pub fn new(request: TunRequest, burst: usize) -> Self {
        Self {
            request,
            burst,
            tun: None,
            packets: 0,
            looks: 0,
            drops: 0,
        }
    }

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
            let right = self.request.ethernet || mark_ip(&mut packet);
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
        let tun = host.open_tun(&self.request)?;
        let named: Rc<RefCell<Named>> = ctx.shared();
        let device = tun.device.clone();
        named.borrow_mut().0.insert(tun.name.clone(), device);
        self.tun = Some(tun);
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
}
