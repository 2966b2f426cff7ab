// SPDX-License-Identifier: Apache-2.0
//! Sends TCP packets without text when asked to.
//!
//! # Synopsis
//! `TCPIPSend`
//! # Ports
//! 0/1, push.
//! # Handlers
//! * `send` (write): `SADDR SPORT DADDR DPORT SEQNO ACKNO FLAGS [COUNT [STOP]]`: sends COUNT (default 1, at most 1,024) packets whose six flags
//!   are the bits of FLAGS, and then stops the router if STOP (default false).
//! # Differences from Click
//! At most 1,024 packets a call.
//! # Example
//! `s :: TCPIPSend -> EtherEncap(0x0800, vif0, 02:00:00:00:01:09) -> Queue -> ToDevice(0);`
use click_core::text::split_words;
use click_wire::{ipv4, tcp};

use crate::numbers::TcpPort;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "TCPIPSend",
    ports: "0/1",
    processing: "h/h",
    handlers: &[command("send", TCPIPSend::send)],
    build: |_| Some(Box::new(TCPIPSend)),
    ..Class::DEFAULT
};

const MAX: u32 = 1024;
const WINDOW: u16 = 32_120;

struct TCPIPSend;

/// The packet to send.
#[derive(Clone, Copy)]
struct Order {
    addresses: [Ipv4Addr; 2],
    ports: [u16; 2],
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    count: u32,
    stop: bool,
}

fn order(view: &View<'_>, value: &str) -> Result<Order, HandlerError> {
    let words = split_words(value);
    let (needed, rest) = words.split_at(words.len().min(7));
    let (
        [
            source,
            sport,
            destination,
            dport,
            sequence,
            acknowledged,
            flags,
        ],
        [] | [_] | [_, _],
    ) = (needed, rest)
    else {
        let form = "SADDR SPORT DADDR DPORT SEQNO ACKNO FLAGS [COUNT [STOP]]";
        return Err(HandlerError::rejected(expected(form, value)));
    };
    let port = |word: &str| view.parse::<TcpPort>(word).map(|port| port.0);
    let count = rest.first().map_or(Ok(1), |word| view.parse(word))?;
    if count > MAX {
        return Err(HandlerError::rejected(format!(
            "{count} is out of range, the most is {MAX}"
        )));
    }
    Ok(Order {
        addresses: [view.parse(source)?, view.parse(destination)?],
        ports: [port(sport)?, port(dport)?],
        sequence: view.parse(sequence)?,
        acknowledged: view.parse(acknowledged)?,
        flags: view.parse(flags)?,
        count,
        stop: rest.get(1).map_or(Ok(false), |word| view.parse(word))?,
    })
}

fn write_packet(bytes: &mut [u8], order: &Order) {
    let [source, destination] = order.addresses;
    let length = u16::try_from(tcp::HEADER).expect("20");
    ipv4::Repr {
        tos: 0,
        id: 0,
        fragment: ipv4::DONT_FRAGMENT,
        ttl: 255,
        protocol: ipv4::TCP,
        source,
        destination,
        payload_len: length,
    }
    .emit(bytes);
    tcp::Repr {
        source: order.ports[0],
        destination: order.ports[1],
        sequence: order.sequence,
        acknowledgement: order.acknowledged,
        flags: order.flags,
        window: WINDOW,
    }
    .emit(&mut bytes[ipv4::HEADER..], source, destination);
}

impl TCPIPSend {
    fn send(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let order = order(view, value)?;
        on_write(self, move |_, ctx| {
            for _ in 0..order.count {
                let Some(mut packet) = ctx.pool().alloc(ipv4::HEADER + tcp::HEADER) else {
                    break;
                };
                write_packet(packet.data_mut(), &order);
                packet.set_network(0, ipv4::HEADER);
                ctx.push_one(0, packet);
            }
            if order.stop {
                ctx.stop();
            }
        })
    }
}

impl Element for TCPIPSend {}
