// SPDX-License-Identifier: Apache-2.0
//! Answers IP packets with ICMP errors.
//!
//! # Synopsis
//! `ICMPError(SRC, TYPE [, CODE, BADADDRS, MTU, PMTU, SET_FIX_ANNO])`: the answer comes from SRC and has TYPE and CODE
//! (default 0), numbers or names such as `unreachable, host`, `timeexceeded`, `13` (administratively prohibited). It
//! contains the start of the packet and is at most MTU bytes (default 576); PMTU is reported by `unreachable, needfrag`.
//! The way back of a packet that came along a source route is that route (RFC 1812, 4.3.2.6).
//! BADADDRS are further addresses that get no answer. SET_FIX_ANNO (default true) sets the fix IP source annotation.
//! # Ports
//! 1/1, agnostic. Never answered (RFC 1812, 4.3.2.7): ICMP errors, fragments but the first, packets that came or go
//! to a broadcast or multicast address, packets from addresses no host can have; source-routed ones get no redirect. The destination annotation of the answer
//! is set.
//! # Handlers
//! * `src`, `mtu`, `pmtu` (read, write): the arguments. `count` (read): answers sent.
//! # Example
//! `ttl[1] -> ICMPError(10.0.0.1, timeexceeded) -> arp;`
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::anno::{self, PacketType};
use click_core::text::split_words;
use click_wire::ipv4::View as Header;
use click_wire::{icmp, ipv4};

use crate::ip_options::source_route::SourceRoute;
use crate::ip_packet;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ICMPError",
    args: &[
        mandatory("SRC"),
        mandatory("TYPE"),
        optional("CODE"),
        optional("BADADDRS"),
        keyword("MTU"),
        keyword("PMTU"),
        keyword("SET_FIX_ANNO"),
    ],
    handlers: &[
        read_write(
            "src",
            |me: &mut ICMPError, _| text(me.source),
            set!(|me, source, _| me.source = source),
        ),
        read_write("mtu", |me, _| text(me.mtu), ICMPError::set_mtu),
        read_write(
            "pmtu",
            |me, _| text(me.pmtu),
            set!(|me, pmtu, _| me.pmtu = pmtu),
        ),
        read("count", |me, _| text(me.count)),
    ],
    build,
    live: true,
    ..Class::DEFAULT
};

const UNREACHABLE: u8 = 3;
const REDIRECT: u8 = 5;
const PARAMETER_PROBLEM: u8 = 12;
const NEED_FRAGMENT: u8 = 4;
/// Time to live of answers.
const TTL: u8 = 200;

fn build(a: &mut Args<'_>) -> Built {
    let (source, kind) = (a.need::<Ipv4Addr>("SRC"), error_type(a));
    let code = code(a, kind.unwrap_or(0));
    let bad = a
        .or("BADADDRS", String::new())
        .map(|list| split_words(&list))
        .unwrap_or_default();
    let bad_addresses = bad
        .iter()
        .filter_map(|word| a.parse("BADADDRS", word))
        .collect();
    let (mtu, pmtu, fix) = (
        a.or("MTU", 576u16),
        a.or("PMTU", 0u16),
        a.or("SET_FIX_ANNO", true),
    );
    let mtu = checked_mtu(mtu?).map_err(|e| a.error("MTU", e)).ok();
    Some(Box::new(ICMPError {
        source: source?,
        kind: kind?,
        code: code?,
        bad_addresses,
        mtu: mtu?,
        pmtu: pmtu?,
        set_fix_anno: fix?,
        ids: Rc::default(),
        count: 0,
    }))
}

fn checked_mtu(mtu: u16) -> Result<usize, String> {
    let least = ipv4::HEADER + icmp::HEADER;
    let mtu = usize::from(mtu);
    let small = || format!("{mtu} is too small, an answer has at least {least} bytes");
    (mtu >= least).then_some(mtu).ok_or_else(small)
}

fn error_type(a: &mut Args<'_>) -> Option<u8> {
    let word = a.need::<String>("TYPE")?;
    let named = icmp::TYPES
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, kind)| *kind);
    let kind = named.or_else(|| word.parse().ok());
    if kind.is_some_and(icmp::is_error) {
        return kind;
    }
    a.error(
        "TYPE",
        format!("expected the type of an ICMP error, got \"{word}\""),
    );
    None
}

fn code(a: &mut Args<'_>, kind: u8) -> Option<u8> {
    let word = a.or("CODE", "0".to_string())?;
    let code = icmp::code_named(kind, &word).or_else(|| word.parse().ok());
    if code.is_none() {
        a.error(
            "CODE",
            format!("expected a code of ICMP type {kind}, got \"{word}\""),
        );
    }
    code
}

struct ICMPError {
    source: Ipv4Addr,
    kind: u8,
    code: u8,
    bad_addresses: Vec<Ipv4Addr>,
    mtu: usize,
    pmtu: u16,
    set_fix_anno: bool,
    ids: Rc<RefCell<Identifiers>>,
    count: u64,
}

/// The last packet number; all elements of a router that make errors share it.
#[derive(Clone, Copy, Default)]
struct Identifiers(u16);

impl Identifiers {
    fn next(&mut self) -> u16 {
        self.0 = self.0.wrapping_add(1);
        self.0
    }
}

impl ICMPError {
    fn deserves_answer(&self, packet: &Packet, bytes: &[u8], header: &Header<&[u8]>) -> bool {
        let (source, destination) = (header.source(), header.destination());
        let unicast = |a: Ipv4Addr| {
            !a.is_broadcast() && !a.is_multicast() && !self.bad_addresses.contains(&a)
        };
        let sendable = unicast(source)
            && source.octets()[0] != 0
            && !source.is_loopback()
            && source.octets()[0] < 240;
        let link_group = matches!(
            packet.anno().packet_type(),
            PacketType::Broadcast | PacketType::Multicast
        );
        let is_error = header.protocol() == ipv4::ICMP
            && bytes
                .get(header.header_len()..)
                .and_then(|message| message.first_chunk::<4>())
                .is_none_or(|[kind, ..]| icmp::is_error(*kind));
        header.is_first() && unicast(destination) && sendable && !link_group && !is_error
    }

    /// The last four bytes of the ICMP header.
    fn rest(&self, packet: &Packet) -> u32 {
        match (self.kind, self.code) {
            (PARAMETER_PROBLEM, 0) => u32::from(packet.anno().u8(anno::ICMP_PARAMPROB)) << 24,
            (REDIRECT, _) => u32::from(Ipv4Addr::from(packet.anno().dst_ip())),
            (UNREACHABLE, NEED_FRAGMENT) => u32::from(self.pmtu),
            _ => 0,
        }
    }

    /// Options of the answer: the source route of the packet with this header, reversed. `None` if there is no
    /// answer because of it.
    fn way_back(&self, packet: &Packet, header: &[u8]) -> Option<Vec<u8>> {
        let Some(route) = SourceRoute::find(header) else {
            return Some(Vec::new());
        };
        let pointer = usize::from(packet.anno().u8(anno::ICMP_PARAMPROB));
        match self.kind {
            REDIRECT => None,
            PARAMETER_PROBLEM if self.code == 0 && route.contains(pointer) => Some(Vec::new()),
            _ => Some(route.reversed()),
        }
    }

    fn answer(&mut self, ctx: &mut Context<'_>, packet: &Packet) -> Option<Packet> {
        let original = packet.network()?;
        let header = ip_packet::header(packet)?;
        let whole = (ipv4::HEADER..=original.len()).contains(&header.header_len());
        if !whole || !self.deserves_answer(packet, original, &header) {
            return None;
        }
        let options = self.way_back(packet, &original[..header.header_len()])?;
        let header_len = ipv4::HEADER + options.len();
        let headers = header_len + icmp::HEADER;
        let quoted = &original[..original.len().min(self.mtu.saturating_sub(headers))];
        let mut answer = ctx.pool().alloc(headers + quoted.len())?;
        let bytes = answer.data_mut();
        bytes[ipv4::HEADER..header_len].copy_from_slice(&options);
        bytes[headers..].copy_from_slice(quoted);
        icmp::Repr {
            kind: self.kind,
            code: self.code,
            rest: self.rest(packet),
        }
        .emit(&mut bytes[header_len..]);
        let ip = ipv4::Repr {
            tos: 0,
            id: self.ids.borrow_mut().next(),
            fragment: 0,
            ttl: TTL,
            protocol: ipv4::ICMP,
            source: self.source,
            destination: header.source(),
            payload_len: u16::try_from(bytes.len() - ipv4::HEADER).expect("at most MTU, 16 bits"),
        };
        ip.emit(bytes);
        bytes[0] = 0x40 | u8::try_from(header_len / 4).expect("at most 60 bytes");
        Header::new_unchecked(&mut bytes[..header_len]).fill_checksum();
        answer.set_network(0, header_len);
        answer.set_timestamp_ns(ctx.now_ns());
        answer.anno_mut().set_dst_ip(ip.destination.octets());
        answer
            .anno_mut()
            .set_u8(anno::FIX_IP_SRC, u8::from(self.set_fix_anno));
        self.count += 1;
        Some(answer)
    }
}

impl InPlace for ICMPError {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        replace(self.answer(ctx, packet), packet)
    }
}

impl ICMPError {
    fn set_mtu(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let mtu = checked_mtu(view.parse(value)?).map_err(HandlerError::rejected)?;
        Ok(Change::of(move |me: &mut Self, _| me.mtu = mtu))
    }
}

impl Element for ICMPError {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.ids = ctx.shared();
        Ok(())
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            // under a new configuration both have the same
            let ids = *old.ids.borrow();
            *self.ids.borrow_mut() = ids;
            self.count = old.count;
        }
    }
}
