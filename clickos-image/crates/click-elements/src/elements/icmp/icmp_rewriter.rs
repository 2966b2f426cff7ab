// SPDX-License-Identifier: Apache-2.0
//! Lets ICMP errors through a rewriter: they become answers to the packets as they were before.
//!
//! # Synopsis
//! `ICMPRewriter(MAPS [, DST_ANNO, REPLY_ANNO])`: MAPS are names of rewriters, whose flows are looked through in this order for the packet
//! that an error quotes. After a name there may be `:PORT`: errors about flows of this rewriter then leave by output PORT plus
//! the output of the flow's answers instead of output 0. DST_ANNO (default true): the destination annotation becomes the new
//! destination. An error that the destination of the quoted packet sent itself gets its new address as source. REPLY_ANNO: errors get this one-byte annotation of the flow's first packet.
//! # Ports
//! 1/1 or more, push. Packets need a marked IP header. What is no error about a known flow, or goes to another host than the sender of
//! the quoted packet, leaves by output 1 if there is one and no name has a PORT; otherwise it is dropped.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! A message about no known flow leaves by output 1, as Click documents (its code drops it), as
//! does one that goes to another host than the sender of the quoted packet.
//! # Example
//! `rw :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop); icmp :: ICMPRewriter(rw); err -> icmp -> Queue -> ToDevice(0);`
use click_core::text::split_words;
use click_core::value::{ByteAnno, number};
use click_wire::ipv4;

use crate::flows::{Delta, FlowId};
use crate::prelude::*;
use crate::rewrite::flow_lookup::FlowLookup;
use crate::rewrite::header::update_transport;
use crate::rewrite::kind::{DCCP, header_len, is_later_fragment};
use crate::rewrite::rewriter::Rewriter;

pub static ELEMENT: Class = Class {
    name: "ICMPRewriter",
    ports: "1/1-",
    processing: "h/h",
    args: &[
        mandatory("MAPS"),
        keyword("DST_ANNO"),
        keyword("REPLY_ANNO"),
    ],
    build,
    ..Class::DEFAULT
};

/// Unreachable, source quench, redirect, time exceeded, parameter problem.
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
const ECHO: u8 = 8;
const HEADER: usize = 8;
/// Bytes of a transport header that an error quotes at least (RFC 792).
const QUOTED: usize = 8;

fn build(a: &mut Args<'_>) -> Built {
    let (maps, set_destination) = (a.need::<String>("MAPS"), a.or("DST_ANNO", true));
    let reply_anno = a.opt::<ByteAnno>("REPLY_ANNO");
    let words = split_words(&maps?);
    let mut parsed = Vec::new();
    for word in &words {
        let Some(name) = name_and_port(word) else {
            a.error(
                "MAPS",
                expected("names of rewriters, NAME or NAME:PORT", word),
            );
            return None;
        };
        parsed.push(name);
    }
    Some(Box::new(ICMPRewriter {
        names: parsed,
        lookups: Vec::new(),
        set_destination: set_destination?,
        reply_anno: reply_anno?.map(|anno| anno.0),
        ways: Vec::new(),
    }))
}

fn name_and_port(word: &str) -> Option<(String, Option<u16>)> {
    match word.split_once(':') {
        None => Some((word.to_string(), None)),
        Some((name, port)) => {
            let port = number(port).and_then(|n| u16::try_from(n).ok())?;
            Some((name.to_string(), Some(port)))
        }
    }
}

struct ICMPRewriter {
    names: Vec<(String, Option<u16>)>,
    /// The rewriters, once packets come.
    lookups: Vec<(FlowLookup, Option<u16>)>,
    set_destination: bool,
    reply_anno: Option<usize>,
    ways: Vec<usize>,
}

/// The packet an error quotes.
struct Quoted {
    /// As its answers would be.
    id: FlowId,
    protocol: u8,
    /// Where its header, and what follows, begin; the latter only if it counts.
    header: usize,
    transport: Option<usize>,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// Finds the packet that an ICMP error quotes.
fn quoted(bytes: &[u8]) -> Option<Quoted> {
    let header = header_len(bytes)? + HEADER;
    let icmp = bytes.get(header - HEADER..header)?;
    let inner = bytes.get(header..)?;
    let length = header_len(inner)?;
    if bytes[9] != ipv4::ICMP || !ERRORS.contains(&icmp[0]) || inner[0] >> 4 != 4 {
        return None;
    }
    let mut id = FlowId {
        source: address(inner, 16),
        destination: address(inner, 12),
        ..FlowId::NONE
    };
    let rest = &inner[length..];
    let whole = rest.len() >= QUOTED && !is_later_fragment(inner);
    let counts = match inner[9] {
        ipv4::TCP | ipv4::UDP | DCCP if whole => {
            (id.sport, id.dport) = (word(rest, 2), word(rest, 0));
            true
        }
        ipv4::ICMP if whole && rest[0] == ECHO => {
            (id.sport, id.dport) = (word(rest, 4).wrapping_add(1), word(rest, 4));
            true
        }
        _ => false,
    };
    Some(Quoted {
        id,
        protocol: inner[9],
        header,
        transport: counts.then_some(header + length),
    })
}

/// Makes the quoted packet what it was, `to` as its answers are, and the error's checksum follow.
fn restore(bytes: &mut [u8], quoted: &Quoted, to: &FlowId) {
    let sum = |bytes: &[u8]| Delta::of_words(&bytes[quoted.header..]);
    let before = sum(bytes);
    let (old, new) = (quoted.id.reverse(), to.reverse());
    let addresses = Delta::of_addresses(&old, &new);
    let inner = &mut bytes[quoted.header..];
    inner[12..16].copy_from_slice(&new.source.octets());
    inner[16..20].copy_from_slice(&new.destination.octets());
    let checksum = addresses.apply(word(inner, 10));
    inner[10..12].copy_from_slice(&checksum.to_be_bytes());
    if let Some(transport) = quoted.transport {
        restore_transport(&mut bytes[transport..], quoted.protocol, &old, &new);
    }
    let delta = before.inverse().and(sum(bytes));
    let at = quoted.header - HEADER + 2;
    let checksum = delta.apply(word(bytes, at));
    bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

fn restore_transport(rest: &mut [u8], protocol: u8, old: &FlowId, new: &FlowId) {
    if protocol == ipv4::ICMP {
        let delta = Delta::between(old.sport.into(), new.sport.into());
        let checksum = delta.apply(word(rest, 2));
        rest[2..4].copy_from_slice(&checksum.to_be_bytes());
        rest[4..6].copy_from_slice(&new.sport.to_be_bytes());
        return;
    }
    rest[0..2].copy_from_slice(&new.sport.to_be_bytes());
    rest[2..4].copy_from_slice(&new.dport.to_be_bytes());
    let delta = Delta::of_addresses(old, new).and(Delta::of_ports(old, new));
    update_transport(rest, protocol, delta);
}

impl ICMPRewriter {
    /// Finds the rewriters, which have to be initialized for that.
    fn open_doors(&mut self, ctx: &mut Context<'_>) {
        for (name, port) in &self.names {
            let flow_lookup = ctx.peer(name, |element| {
                let rewriter = element.as_any_mut().downcast_ref::<Rewriter>();
                rewriter.map(Rewriter::flow_lookup)
            });
            self.lookups.extend(
                flow_lookup
                    .flatten()
                    .map(|flow_lookup| (flow_lookup, *port)),
            );
        }
    }

    /// Rewrites an error; returns its way. An error that does not go to the sender of the packet that it quotes
    /// would bring its bytes to a host without a flow (RFC 5508, REQ-3).
    fn rewrite(&self, packet: &mut Packet) -> Option<u16> {
        let bytes = packet.network()?;
        let quoted = quoted(bytes).filter(|q| address(bytes, 16) == q.id.destination)?;
        let (to, way, reply, anno) = self.lookups.iter().find_map(|(flow_lookup, port)| {
            let table = flow_lookup.flows.borrow();
            let at = flow_lookup.find(&table, quoted.protocol, &quoted.id)?;
            let (flow, reply) = (table.flow(at), at.is_reply());
            let way = port.map_or(0, |port| {
                port.saturating_add(flow.outputs[usize::from(reply)])
            });
            let to = flow_lookup
                .kind
                .complete(quoted.id, flow.rewritten(reply), reply);
            Some((to, way, reply, flow.reply_anno))
        })?;
        let bytes = packet.network_mut()?;
        bytes[16..20].copy_from_slice(&to.destination.octets());
        let delta = Delta::between(
            u32::from(quoted.id.destination).into(),
            u32::from(to.destination).into(),
        );
        let checksum = delta.apply(word(bytes, 10));
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        // an error of the host itself comes from its address (RFC 5508, REQ-5)
        if address(bytes, 12) == quoted.id.source {
            bytes[12..16].copy_from_slice(&to.source.octets());
            let (old, new) = (u32::from(quoted.id.source), u32::from(to.source));
            let checksum = Delta::between(old.into(), new.into()).apply(word(bytes, 10));
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        restore(bytes, &quoted, &to);
        if self.set_destination {
            packet.anno_mut().set_dst_ip(to.destination.octets());
        }
        if let (true, Some(offset)) = (reply, self.reply_anno) {
            packet.anno_mut().set_u8(offset, anno);
        }
        Some(way)
    }
}

impl Element for ICMPRewriter {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        for (name, port) in &self.names {
            let is = |element: &mut dyn Element| element.as_any_mut().is::<Rewriter>();
            if ctx.peer(name, is) != Some(true) {
                return Err(format!("MAPS: \"{name}\" is not a rewriter"));
            }
            if port.is_some_and(|port| usize::from(port) >= ctx.outputs()) {
                return Err(format!(
                    "MAPS: {name}: the element has {} outputs",
                    ctx.outputs()
                ));
            }
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if self.lookups.is_empty() {
            self.open_doors(ctx);
        }
        let plain = self.names.iter().all(|(_, port)| port.is_none());
        let other = if plain && ctx.outputs() > 1 {
            1
        } else {
            DROPPED
        };
        let mut ways = core::mem::take(&mut self.ways);
        ways.clear();
        ways.extend(
            batch
                .iter_mut()
                .map(|packet| self.rewrite(packet).map_or(other, usize::from)),
        );
        ctx.push_runs(batch, &ways);
        self.ways = ways;
    }
}
