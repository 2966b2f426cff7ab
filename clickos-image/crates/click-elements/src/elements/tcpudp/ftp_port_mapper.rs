// SPDX-License-Identifier: Apache-2.0
//! Lets FTP through rewriters: opens the flow that a `PORT` command announces and puts its new address into the command.
//!
//! # Synopsis
//! `FTPPortMapper(CONTROL_REWRITER, DATA_REWRITER, DATA_REWRITER_INPUT)`: CONTROL_REWRITER is the TCPRewriter or IPRewriter the packets
//! go through next; it moves sequence numbers by what the command has become longer or shorter. The flow is opened in DATA_REWRITER as
//! if its first packet had come in at DATA_REWRITER_INPUT.
//! # Ports
//! 1/1, agnostic. TCP packets of control connections with a marked IP header. The command must be alone in its packet, and the
//! connection known to CONTROL_REWRITER, and the address its client's, with a port of 1,024 or more (RFC 2577, section 3); other packets
//! pass unchanged.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! The connection must be known before the batch with the command; the text ends with the IP
//! packet, not with padding. No flow is opened to another host than the client, or to a lower port.
//! # Example
//! `rw :: TCPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop); in -> FTPPortMapper(rw, rw, 0) -> [0] rw;`
use click_wire::{checksum, ipv4, tcp};

use crate::flows::{At, FlowId};
use crate::ip_packet::header;
use crate::prelude::*;
use crate::rewrite::flow_lookup::FlowLookup;
use crate::rewrite::rewriter::Rewriter;

/// The first port that is no service's (RFC 2577, section 3).
const FIRST_PORT: u16 = 1024;

pub static ELEMENT: Class = Class {
    name: "FTPPortMapper",
    args: &[
        mandatory("CONTROL_REWRITER"),
        mandatory("DATA_REWRITER"),
        mandatory("DATA_REWRITER_INPUT"),
    ],
    build: |a| {
        let (control, data) = (a.need("CONTROL_REWRITER"), a.need("DATA_REWRITER"));
        let input = a.need("DATA_REWRITER_INPUT");
        Some(Box::new(FTPPortMapper {
            control: control?,
            data: data?,
            input: input?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct FTPPortMapper {
    control: String,
    data: String,
    input: usize,
}

/// A `PORT` command in a packet.
struct Command {
    /// The connection it is sent on.
    control: FlowId,
    /// The address and port in the command.
    address: Ipv4Addr,
    port: u16,
    sequence: u32,
    /// Where the TCP header and the text begin in the IP packet, where the address in the text is, and where all ends.
    transport: usize,
    text: usize,
    place: core::ops::Range<usize>,
    end: usize,
}

/// Six numbers with commas between them and a line end behind; and how long they are.
fn six_numbers(text: &[u8]) -> Option<([u8; 6], usize)> {
    let end = text
        .iter()
        .position(|c| !c.is_ascii_digit() && *c != b',')?;
    let line = core::str::from_utf8(&text[..end]).ok()?;
    let mut numbers = [0; 6];
    let mut words = line.split(',');
    for number in &mut numbers {
        let word = words.next()?;
        *number = if word.is_empty() {
            0
        } else {
            word.parse().ok()?
        };
    }
    let ends = words.next().is_none() && matches!(text[end], b'\r' | b'\n');
    ends.then_some((numbers, end))
}

fn command(packet: &Packet) -> Option<Command> {
    let ip = header(packet)?;
    let (bytes, transport) = (packet.network()?, ip.header_len());
    let end = ip.total_len().min(bytes.len());
    let segment = bytes
        .get(transport..end)
        .filter(|b| b.len() >= tcp::HEADER)?;
    if ip.protocol() != ipv4::TCP || !ip.is_first() {
        return None;
    }
    let length = usize::from(segment[12] >> 4) * 4;
    let text = segment.get(length.max(tcp::HEADER)..)?;
    let name = text.get(..5)?;
    if !name.eq_ignore_ascii_case(b"PORT ") {
        return None;
    }
    let blanks = text[5..].iter().take_while(|c| **c == b' ').count();
    let (numbers, count) = six_numbers(&text[5 + blanks..])?;
    let [a, b, c, d, high, low] = numbers;
    let word = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    let first = transport + length + 5 + blanks;
    Some(Command {
        control: FlowId {
            source: ip.source(),
            destination: ip.destination(),
            sport: word(0),
            dport: word(2),
        },
        address: Ipv4Addr::new(a, b, c, d),
        port: u16::from_be_bytes([high, low]),
        sequence: u32::from(word(4)) << 16 | u32::from(word(6)),
        transport,
        text: transport + length,
        place: first..first + count,
        end,
    })
}

/// Replaces a part of an IP packet and makes its lengths and checksums right; false if it would become too long.
#[must_use]
fn replace(packet: &mut Packet, command: &Command, new: &[u8]) -> bool {
    let (start, old_end) = (command.place.start, command.place.end);
    let Some(length) = packet.network().map(<[u8]>::len) else {
        return false;
    };
    // no padding after the text
    packet.take(length - command.end);
    let (old, tail) = (old_end - start, command.end - old_end);
    if new.len() > old && !packet.put(new.len() - old) {
        return false;
    }
    if let Some(bytes) = packet.network_mut() {
        bytes.copy_within(old_end..old_end + tail, start + new.len());
        bytes[start..start + new.len()].copy_from_slice(new);
    }
    packet.take(old.saturating_sub(new.len()));
    packet
        .network_mut()
        .is_some_and(|bytes| finish(bytes, command.transport))
}

/// Sets the lengths and checksums of a TCP packet; false if it is too long.
fn finish(bytes: &mut [u8], transport: usize) -> bool {
    let (Ok(total), Ok(length)) = (
        u16::try_from(bytes.len()),
        u16::try_from(bytes.len() - transport),
    ) else {
        return false;
    };
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    let mut ip = ipv4::View::new_unchecked(&mut *bytes);
    ip.fill_checksum();
    let pseudo = checksum::pseudo(ip.source(), ip.destination(), ipv4::TCP, length);
    let segment = &mut bytes[transport..];
    segment[16..18].fill(0);
    let sum = checksum::finish(checksum::add(pseudo, segment));
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    true
}

impl FTPPortMapper {
    fn control(&self, ctx: &mut Context<'_>) -> Option<FlowLookup> {
        let flow_lookup = |element: &mut dyn Element| {
            let rewriter = element.as_any_mut().downcast_ref::<Rewriter>();
            rewriter.filter(|r| r.is_tcp()).map(Rewriter::flow_lookup)
        };
        ctx.peer(&self.control, flow_lookup).flatten()
    }

    /// The flow a command announces, as it will be, and where it is remembered.
    fn announced(
        &self,
        ctx: &mut Context<'_>,
        command: &Command,
    ) -> Option<(FlowId, FlowLookup, At)> {
        let id = FlowId {
            source: command.address,
            destination: command.control.destination,
            sport: command.port,
            dport: command.control.dport.wrapping_sub(1),
        };
        let (input, random, now_ns) = (self.input, ctx.random() >> 32, ctx.now_ns());
        let mut draw = |most| (random % (u64::from(most) + 1)) as u32;
        let entry = |element: &mut dyn Element| {
            let rewriter = element.as_any_mut().downcast_mut::<Rewriter>()?;
            let at = rewriter.entry(input, id, now_ns, &mut draw)?;
            let flow_lookup = rewriter.flow_lookup();
            let to = flow_lookup.flows.borrow().flow(at).rewritten(at.is_reply());
            let to = flow_lookup.kind.complete(id, to, at.is_reply());
            Some((to, flow_lookup, at))
        };
        ctx.peer(&self.data, entry).flatten()
    }

    fn translate(&self, ctx: &mut Context<'_>, packet: &mut Packet) -> Option<()> {
        let command = command(packet)?;
        // a server would reach another host, or a service of this one
        let is_own = command.address == command.control.source && command.port >= FIRST_PORT;
        is_own.then_some(())?;
        let control = self.control(ctx)?;
        let known = control.find(&control.flows.borrow(), ipv4::TCP, &command.control)?;
        let (to, data, at) = self.announced(ctx, &command)?;
        let ([a, b, c, d], [high, low]) = (to.source.octets(), to.sport.to_be_bytes());
        let new = format!("{a},{b},{c},{d},{high},{low}");
        // the command's flow may have gone to make room
        let control_table = control.flows.borrow();
        let again = control.find(&control_table, ipv4::TCP, &command.control);
        let anno = control_table.flow(known).reply_anno;
        drop(control_table);
        again.filter(|at| *at == known && replace(packet, &command, new.as_bytes()))?;
        data.flows.borrow_mut().flow_mut(at).reply_anno = anno;
        let longer = new.len() as i32 - command.place.len() as i32;
        let text = u32::try_from(command.end - command.text).ok()?;
        let end = command.sequence.wrapping_add(text);
        control.flows.borrow_mut().move_sequence(known, end, longer);
        Some(())
    }
}

impl InPlace for FTPPortMapper {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        // what is no command, or cannot be translated, passes as it is
        let _ = self.translate(ctx, packet);
        0
    }
}

impl Element for FTPPortMapper {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        if self.control(ctx).is_none() {
            let name = &self.control;
            return Err(format!("CONTROL_REWRITER: {name} is not a TCPRewriter"));
        }
        let inputs = |element: &mut dyn Element| {
            let rewriter = element.as_any_mut().downcast_ref::<Rewriter>();
            rewriter.map(Rewriter::inputs)
        };
        match ctx.peer(&self.data, inputs).flatten() {
            None => Err(format!("DATA_REWRITER: {} is not a rewriter", self.data)),
            Some(inputs) if self.input >= inputs => Err(format!(
                "DATA_REWRITER_INPUT: no input {}, {} has {inputs}",
                self.input, self.data
            )),
            Some(_) => Ok(()),
        }
    }
}
