// SPDX-License-Identifier: Apache-2.0
//! Reads IPv4 and IPv6 packets as valed's guard does (vale/valed/src/frame/packet.rs): `PROTOCOL`, `AT`,
//! `slot::END` and `slot::PART` tell what comes after all headers of IP.
use crate::asm::{If, Label, R1, R2, R3, R4, R10, Size};
use crate::emit::{
    AT, AUTHENTICATION, ETHERNET, Emitter, FIRST, FRAGMENT, LATER, LOCAL, PROTOCOL, WHOLE, slot,
};

pub const ICMP: u8 = 1;
pub const IGMP: u8 = 2;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const DCCP: u8 = 33;
pub const ICMPV6: u8 = 58;
pub const SCTP: u8 = 132;
pub const UDP_LITE: u8 = 136;
pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
/// Destination options, mobility, HIP, Shim6: their form is that of hop-by-hop options.
const OTHERS: [u8; 4] = [60, 135, 139, 140];
/// Experimental headers have no fixed form, so no guard can judge a packet behind them.
const EXPERIMENTS: [u8; 2] = [253, 254];
const MAX_EXTENSIONS: usize = 8;
/// The first fragment must hold this many bytes of its packet, and no later one may replace them.
const TRANSPORT: i32 = 24;
/// Loose and strict source route.
const SOURCE_ROUTES: [i32; 2] = [131, 137];
const IPV4_FIXED: i32 = 20;
const IPV6_FIXED: i32 = 40;
/// Options of one byte are the most that a header of IPv4 can have.
const MAX_OPTIONS: usize = 40;

/// Where the program continues with a packet that is not sound.
#[derive(Clone, Copy)]
pub struct Unsound {
    pub malformed: Label,
    pub rogue: Label,
    pub hidden: Label,
}

/// The headers that may lie between that of IP and the transport's.
#[derive(Clone, Copy, PartialEq)]
enum Extensions {
    V4,
    V6,
}

pub fn ipv4(e: &mut Emitter, to: Unsound) {
    let (no_options, is_fragment, placed) = (e.asm.label(), e.asm.label(), e.asm.label());
    e.read_at(ETHERNET, slot::HEADER, IPV4_FIXED, to.malformed);
    ipv4_lengths(e, to.malformed);
    e.asm
        .jump_if(AT, If::Equal, ETHERNET + IPV4_FIXED, no_options);
    options(e, to);
    e.asm.place(no_options);
    e.load_be16(R1, slot::HEADER + 6);
    e.asm.copy(R2, R1);
    e.asm.and(R2, 0x3fff);
    e.asm.jump_if(R2, If::NotEqual, 0, is_fragment);
    e.asm.store_value(Size::Double, R10, slot::PART, WHOLE);
    e.asm.jump(placed);
    e.asm.place(is_fragment);
    e.asm.copy(R3, R1);
    e.asm.and(R3, 0x2000);
    e.asm.and(R1, 0x1fff);
    e.asm.shift_left(R1, 3);
    part(e, to.hidden);
    e.asm.place(placed);
    e.load(Size::Byte, PROTOCOL, slot::HEADER + 9);
    behind(e, Extensions::V4, to);
}

/// Checks version and lengths; sets `AT` after the header, and the end.
fn ipv4_lengths(e: &mut Emitter, malformed: Label) {
    e.load(Size::Byte, AT, slot::HEADER);
    e.asm.copy(R1, AT);
    e.asm.shift_right(R1, 4);
    e.asm.jump_if(R1, If::NotEqual, 4, malformed);
    e.asm.and(AT, 15);
    e.asm.shift_left(AT, 2);
    e.asm.jump_if(AT, If::Less, IPV4_FIXED, malformed);
    e.load_be16(R3, slot::HEADER + 2);
    e.asm.jump_if_reg(R3, If::Less, AT, malformed);
    e.asm.add(AT, ETHERNET);
    end_at(e, ETHERNET, malformed);
}

/// Sets the end of the packet to `R3 + more`, which must lie in the frame.
fn end_at(e: &mut Emitter, more: i32, malformed: Label) {
    e.asm.add(R3, more);
    e.frame_length(R4);
    e.asm.jump_if_reg(R3, If::Greater, R4, malformed);
    e.store(Size::Double, slot::END, R3);
}

/// Options of IPv4 are (type, length, body), but for their end (0) and padding (1).
fn options(e: &mut Emitter, to: Unsound) {
    let done = e.asm.label();
    e.asm.set(LOCAL, ETHERNET + IPV4_FIXED);
    for _ in 0..MAX_OPTIONS {
        let (padding, next) = (e.asm.label(), e.asm.label());
        let end = e.asm.label();
        e.asm.jump_if_reg(LOCAL, If::Less, AT, end);
        e.asm.jump(done);
        e.asm.place(end);
        e.read(LOCAL, 0, slot::SCRATCH, 1, to.malformed);
        e.load(Size::Byte, R1, slot::SCRATCH);
        e.asm.jump_if(R1, If::Equal, 0, done);
        e.asm.jump_if(R1, If::Equal, 1, padding);
        option_length(e, to);
        e.asm.jump(next);
        e.asm.place(padding);
        e.asm.add(LOCAL, 1);
        e.asm.place(next);
    }
    e.asm.place(done);
}

/// Skips an option, whose type is in the scratch.
fn option_length(e: &mut Emitter, to: Unsound) {
    e.asm.copy(R1, LOCAL);
    e.asm.add(R1, 1);
    let has_length = e.asm.label();
    e.asm.jump_if_reg(R1, If::Less, AT, has_length);
    e.asm.jump(to.malformed);
    e.asm.place(has_length);
    e.load(Size::Byte, R1, slot::SCRATCH);
    for route in SOURCE_ROUTES {
        e.asm.jump_if(R1, If::Equal, route, to.rogue);
    }
    e.read(LOCAL, 1, slot::SCRATCH, 1, to.malformed);
    e.load(Size::Byte, R1, slot::SCRATCH);
    e.asm.jump_if(R1, If::Less, 2, to.malformed);
    e.asm.add_reg(LOCAL, R1);
    e.asm.jump_if_reg(LOCAL, If::Greater, AT, to.malformed);
}

pub fn ipv6(e: &mut Emitter, to: Unsound) {
    e.read_at(ETHERNET, slot::HEADER, IPV6_FIXED, to.malformed);
    e.load(Size::Byte, R1, slot::HEADER);
    e.asm.shift_right(R1, 4);
    e.asm.jump_if(R1, If::NotEqual, 6, to.malformed);
    e.load_be16(R3, slot::HEADER + 4);
    end_at(e, ETHERNET + IPV6_FIXED, to.malformed);
    e.asm.store_value(Size::Double, R10, slot::PART, WHOLE);
    e.load(Size::Byte, PROTOCOL, slot::HEADER + 6);
    e.asm.set(AT, ETHERNET + IPV6_FIXED);
    behind(e, Extensions::V6, to);
}

/// Skips extension headers. The first fragment must hold the whole chain, and a fragment header must be
/// its last.
fn behind(e: &mut Emitter, headers: Extensions, to: Unsound) {
    let done = e.asm.label();
    for n in 0..=MAX_EXTENSIONS {
        e.jump_if_part(If::Equal, LATER, done);
        jump_unless_extension(e, headers, done);
        e.jump_if_part(If::NotEqual, WHOLE, to.hidden);
        if headers == Extensions::V6 {
            for protocol in EXPERIMENTS {
                e.jump_if_protocol(If::Equal, protocol, to.hidden);
            }
            if n > 0 {
                e.jump_if_protocol(If::Equal, HOP_BY_HOP, to.hidden);
            }
        }
        extension(e, headers, to);
    }
    e.asm.jump(to.hidden);
    e.asm.place(done);
}

fn jump_unless_extension(e: &mut Emitter, headers: Extensions, done: Label) {
    if headers == Extensions::V4 {
        return e.jump_if_protocol(If::NotEqual, AUTHENTICATION, done);
    }
    let is_extension = e.asm.label();
    let known = [HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION];
    for protocol in known.into_iter().chain(OTHERS).chain(EXPERIMENTS) {
        e.jump_if_protocol(If::Equal, protocol, is_extension);
    }
    e.asm.jump(done);
    e.asm.place(is_extension);
}

/// Skips an extension header.
fn extension(e: &mut Emitter, headers: Extensions, to: Unsound) {
    e.read_body(0, slot::SCRATCH, 8, to.hidden);
    e.load(Size::Byte, R2, slot::SCRATCH + 1);
    e.extension_length(R2);
    e.asm.add_reg(AT, R2);
    e.need(0, to.hidden);
    if headers == Extensions::V6 {
        routes_and_fragments(e, to);
    }
    e.load(Size::Byte, PROTOCOL, slot::SCRATCH);
}

fn routes_and_fragments(e: &mut Emitter, to: Unsound) {
    let (no_route, done) = (e.asm.label(), e.asm.label());
    e.jump_if_protocol(If::NotEqual, ROUTING, no_route);
    e.load(Size::Byte, R1, slot::SCRATCH + 3);
    e.asm.jump_if(R1, If::NotEqual, 0, to.rogue);
    e.asm.place(no_route);
    e.jump_if_protocol(If::NotEqual, FRAGMENT, done);
    e.load_be16(R1, slot::SCRATCH + 2);
    e.asm.copy(R3, R1);
    e.asm.and(R3, 1);
    e.asm.and(R1, 0xfff8);
    part(e, to.hidden);
    e.asm.place(done);
}

/// The part of a fragment that begins at byte R1. More follow if R3 is not 0.
fn part(e: &mut Emitter, hidden: Label) {
    let (later, first, done) = (e.asm.label(), e.asm.label(), e.asm.label());
    e.load(Size::Double, R4, slot::END);
    e.asm.subtract_reg(R4, AT);
    e.asm.jump_if(R1, If::NotEqual, 0, later);
    e.asm.jump_if(R3, If::Equal, 0, first);
    e.asm.jump_if(R4, If::Less, TRANSPORT, hidden);
    e.asm.place(first);
    e.asm.store_value(Size::Double, R10, slot::PART, FIRST);
    e.asm.jump(done);
    e.asm.place(later);
    e.asm.jump_if(R1, If::Less, TRANSPORT, hidden);
    e.asm.add_reg(R4, R1);
    e.asm.jump_if(R4, If::Greater, 0xffff, hidden);
    e.asm.store_value(Size::Double, R10, slot::PART, LATER);
    e.asm.place(done);
}
