// SPDX-License-Identifier: Apache-2.0
//! Rules that decide packets to the guest, as of valed's `offload-set`. A program reads a frame as
//! interfaces/clickos-offload does (`view.rs`), which differs from the guard's view.
use clickos_offload::{Action, HEAD, Rule};

use crate::asm::{If, Label, R0, R1, R2, R3, R4, R10, Reg, Size};
use crate::emit::{AT, ETHERNET, Emitter, FRAGMENT, LOCAL, PROTOCOL, slot};
use crate::packet::{IPV4, IPV6};

/// A port that a packet has not.
const NO_PORT: i32 = 0x1_0000;
/// The type of service or the traffic class.
const TOS: Reg = LOCAL;
const IPV4_FIXED: i32 = 20;
const IPV4_LONGEST: i16 = 60;
const IPV6_FIXED: i32 = 40;
const MAX_EXTENSIONS: usize = 8;
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
const NOTHING: u8 = 59;

/// Decides the frame by the first rule that matches it.
pub fn decide<'a>(e: &mut Emitter, rules: impl Iterator<Item = &'a Rule>, first_counter: usize) {
    let passed = e.asm.label();
    view(e);
    for (counter, rule) in (first_counter..).zip(rules) {
        let next = e.asm.label();
        test(e, rule, next);
        match rule.action {
            Action::Drop => e.drop_for(counter),
            Action::Pass | Action::Redirect(_) => {
                e.asm.set(R1, counter as i32);
                e.asm.jump(passed);
            }
        }
        e.asm.place(next);
    }
    e.asm.jump(e.pass());
    e.asm.place(passed);
    e.count();
    e.asm.jump(e.pass());
}

/// Reads the packet. `slot::VERSION` is 0 if rules see none.
fn view(e: &mut Emitter) {
    let (v4, v6, other, done) = (e.asm.label(), e.asm.label(), e.asm.label(), e.asm.label());
    e.asm.set(PROTOCOL, 0);
    e.asm.set(TOS, 0);
    for slot in [slot::SOURCE_PORT, slot::DESTINATION_PORT] {
        e.asm.store_value(Size::Double, R10, slot, NO_PORT);
    }
    for half in (0..40).step_by(8) {
        e.asm.store_value(Size::Double, R10, slot::HEADER + half, 0);
    }
    e.jump_if_kind(If::Equal, IPV4, v4);
    e.jump_if_kind(If::Equal, IPV6, v6);
    e.asm.jump(other);
    e.asm.place(v4);
    ipv4(e, other);
    e.asm.store_value(Size::Double, R10, slot::VERSION, 4);
    e.asm.jump(done);
    e.asm.place(v6);
    ipv6(e, other);
    e.asm.store_value(Size::Double, R10, slot::VERSION, 6);
    e.asm.jump(done);
    e.asm.place(other);
    e.asm.store_value(Size::Double, R10, slot::VERSION, 0);
    e.asm.place(done);
}

fn ipv4(e: &mut Emitter, invalid: Label) {
    let later = e.asm.label();
    e.read_at(ETHERNET, slot::HEADER, IPV4_FIXED, invalid);
    e.load(Size::Byte, AT, slot::HEADER);
    e.asm.copy(R1, AT);
    e.asm.shift_right(R1, 4);
    e.asm.jump_if(R1, If::NotEqual, 4, invalid);
    e.asm.and(AT, 15);
    e.asm.shift_left(AT, 2);
    e.asm.jump_if(AT, If::Less, IPV4_FIXED, invalid);
    e.load_be16(R3, slot::HEADER + 2);
    e.asm.jump_if_reg(R3, If::Less, AT, invalid);
    e.asm.add(R3, ETHERNET);
    e.frame_length(R4);
    e.asm.jump_if_reg(R3, If::Greater, R4, invalid);
    e.store(Size::Double, slot::END, R3);
    header_sum(e, invalid);
    e.load(Size::Byte, PROTOCOL, slot::HEADER + 9);
    e.load(Size::Byte, TOS, slot::HEADER + 1);
    e.asm.add(AT, ETHERNET);
    e.load_be16(R1, slot::HEADER + 6);
    e.asm.and(R1, 0x1fff);
    e.asm.jump_if(R1, If::NotEqual, 0, later);
    port(e, 0, slot::SOURCE_PORT, later);
    port(e, 2, slot::DESTINATION_PORT, later);
    e.asm.place(later);
}

/// The sum of a valid header is 0xffff. The header has `AT` bytes.
fn header_sum(e: &mut Emitter, invalid: Label) {
    for double in 0..=IPV4_LONGEST / 8 {
        e.asm
            .store_value(Size::Double, R10, slot::SCRATCH + 8 * double, 0);
    }
    e.asm.jump_if(AT, If::Greater, IPV4_LONGEST.into(), invalid);
    e.asm.set(R2, ETHERNET);
    e.asm.copy(R1, crate::emit::CONTEXT);
    e.stack(R3, slot::SCRATCH);
    e.asm.copy(R4, AT);
    e.asm.call(crate::asm::Helper::LoadBytes);
    e.asm.jump_if(R0, If::NotEqual, 0, invalid);
    e.asm.set(R2, IPV4_LONGEST.into());
    e.checksum(slot::SCRATCH);
    e.asm.jump_if(R0, If::NotEqual, 0xffff, invalid);
}

/// Reads a port of a packet that has it.
fn port(e: &mut Emitter, more: i32, slot: i16, lacking: Label) {
    e.read_body(more, slot::SCRATCH, 2, lacking);
    e.load_be16(R1, slot::SCRATCH);
    e.store(Size::Double, slot, R1);
}

fn ipv6(e: &mut Emitter, invalid: Label) {
    let (has_length, head) = (e.asm.label(), e.asm.label());
    e.read_at(ETHERNET, slot::HEADER, IPV6_FIXED, invalid);
    e.load(Size::Byte, R1, slot::HEADER);
    e.asm.copy(TOS, R1);
    e.asm.shift_right(R1, 4);
    e.asm.jump_if(R1, If::NotEqual, 6, invalid);
    e.asm.and(TOS, 15);
    e.asm.shift_left(TOS, 4);
    e.load(Size::Byte, R1, slot::HEADER + 1);
    e.asm.shift_right(R1, 4);
    e.asm.or_reg(TOS, R1);
    e.load(Size::Byte, PROTOCOL, slot::HEADER + 6);
    e.load_be16(R3, slot::HEADER + 4);
    e.asm.jump_if(R3, If::NotEqual, 0, has_length);
    e.jump_if_protocol(If::NotEqual, NOTHING, invalid);
    e.asm.place(has_length);
    e.asm.add(R3, ETHERNET + IPV6_FIXED);
    e.frame_length(R4);
    e.asm.jump_if_reg(R3, If::Greater, R4, invalid);
    e.store(Size::Double, slot::END, R3);
    e.asm.copy(R1, R4);
    e.asm.jump_if(R1, If::Less, HEAD as i32, head);
    e.asm.set(R1, HEAD as i32);
    e.asm.place(head);
    e.store(Size::Double, slot::HEAD, R1);
    e.asm.set(AT, ETHERNET + IPV6_FIXED);
    chain(e, invalid);
}

/// Reads the extension headers and the ports; an invalid packet has its headers out of sight.
fn chain(e: &mut Emitter, invalid: Label) {
    let (upper, later) = (e.asm.label(), e.asm.label());
    for _ in 0..MAX_EXTENSIONS {
        let is_extension = e.asm.label();
        for protocol in EXTENSIONS {
            e.jump_if_protocol(If::Equal, protocol, is_extension);
        }
        e.asm.jump(upper);
        e.asm.place(is_extension);
        extension(e, later, invalid);
    }
    for protocol in EXTENSIONS {
        e.jump_if_protocol(If::Equal, protocol, invalid);
    }
    e.asm.place(upper);
    e.need(4, later);
    in_sight(e, 4, invalid);
    port(e, 0, slot::SOURCE_PORT, invalid);
    port(e, 2, slot::DESTINATION_PORT, invalid);
    e.asm.place(later);
}

/// Jumps unless the packet's bytes up to `AT + more` lie in the head of the frame.
fn in_sight(e: &mut Emitter, more: i32, invalid: Label) {
    e.asm.copy(R1, AT);
    e.asm.add(R1, more);
    e.load(Size::Double, R2, slot::HEAD);
    e.asm.jump_if_reg(R1, If::Greater, R2, invalid);
}

fn extension(e: &mut Emitter, later: Label, invalid: Label) {
    let first = e.asm.label();
    in_sight(e, 2, invalid);
    e.read_body(0, slot::SCRATCH, 2, invalid);
    e.load(Size::Byte, R3, slot::SCRATCH + 1);
    e.extension_length(R3);
    let (old, kind) = (slot::NOW, slot::TARGET);
    e.store(Size::Double, old, AT);
    e.store(Size::Double, kind, PROTOCOL);
    e.asm.add_reg(AT, R3);
    in_sight(e, 0, invalid);
    e.need(0, invalid);
    e.load(Size::Byte, PROTOCOL, slot::SCRATCH);
    e.load(Size::Double, R1, kind);
    e.asm.jump_if(R1, If::NotEqual, FRAGMENT.into(), first);
    e.load(Size::Double, R1, old);
    e.read(R1, 2, slot::SCRATCH, 2, invalid);
    e.load_be16(R1, slot::SCRATCH);
    e.asm.shift_right(R1, 3);
    e.asm.jump_if(R1, If::NotEqual, 0, later);
    e.asm.place(first);
}

/// Jumps unless the rule matches.
fn test(e: &mut Emitter, rule: &Rule, next: Label) {
    if let Some(mac) = rule.ether_destination {
        e.jump_unless_mac(slot::ETHERNET, mac, next);
    }
    if let Some(mac) = rule.ether_source {
        e.jump_unless_mac(slot::SOURCE, mac, next);
    }
    if let Some(kind) = rule.ether_type {
        e.jump_if_kind(If::NotEqual, kind, next);
    }
    if let Some(ip) = rule.ip {
        version(e, 4, next);
        addresses(
            e,
            12,
            16,
            &ip.source,
            &ip.destination,
            u32::to_be_bytes,
            next,
        );
        fields(e, &ip, next);
    }
    if let Some(ip) = rule.ip6 {
        version(e, 6, next);
        addresses(
            e,
            8,
            24,
            &ip.source,
            &ip.destination,
            u128::to_be_bytes,
            next,
        );
        fields(e, &ip, next);
    }
}

fn version(e: &mut Emitter, version: i32, next: Label) {
    e.load(Size::Double, R1, slot::VERSION);
    e.asm.jump_if(R1, If::NotEqual, version, next);
}

fn addresses<A: Copy, const N: usize>(
    e: &mut Emitter,
    source_at: i16,
    destination_at: i16,
    source: &clickos_offload::Range<A>,
    destination: &clickos_offload::Range<A>,
    octets: fn(A) -> [u8; N],
    next: Label,
) {
    for (at, range) in [(source_at, source), (destination_at, destination)] {
        let (first, last) = (octets(range.first), octets(range.last));
        e.jump_unless_within(slot::HEADER + at, &first, &last, next);
    }
}

fn fields<A>(e: &mut Emitter, pattern: &clickos_offload::Pattern<A>, next: Label) {
    for (reg, range) in [(PROTOCOL, &pattern.protocol), (TOS, &pattern.tos)] {
        e.asm.jump_if(reg, If::Less, range.first.into(), next);
        e.asm.jump_if(reg, If::Greater, range.last.into(), next);
    }
    let ports = [
        (slot::SOURCE_PORT, &pattern.source_port),
        (slot::DESTINATION_PORT, &pattern.destination_port),
    ];
    for (slot, range) in ports {
        let Some(range) = range else { continue };
        e.load(Size::Double, R1, slot);
        e.asm.jump_if(R1, If::Less, range.first.into(), next);
        e.asm.jump_if(R1, If::Greater, range.last.into(), next);
    }
}
