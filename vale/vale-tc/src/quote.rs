// SPDX-License-Identifier: Apache-2.0
//! The packet that an ICMP error quotes, as valed's filter reads it (vale/valed/src/frame/quote.rs).
use vale_proto::Family;

use crate::asm::{If, Label, R1, R2, R10, Size};
use crate::connection::{
    KEY_FAMILY, KEY_PROTOCOL, LOCAL_ADDRESS, LOCAL_PORT, REMOTE_ADDRESS, REMOTE_PORT, empty_key,
    kind, lookup,
};
use crate::emit::{AT, Emitter, slot};
use crate::packet::{DCCP, ICMP, ICMPV6, SCTP, TCP, UDP, UDP_LITE};

/// Bytes of an ICMP error before the packet that it quotes.
const ERROR_HEADER: i32 = 8;

/// The fields of the header of a family, and its errors.
struct Form {
    protocol: u8,
    errors: &'static [i32],
    version: i32,
    header: i32,
    source: i16,
    destination: i16,
    transport: i16,
    words: i16,
    family: i32,
}

fn form(family: Family) -> Form {
    match family {
        Family::Ipv4 => Form {
            protocol: ICMP,
            errors: &[3, 11, 12],
            version: 4,
            header: 20,
            source: 12,
            destination: 16,
            transport: 9,
            words: 1,
            family: 4,
        },
        Family::Ipv6 => Form {
            protocol: ICMPV6,
            errors: &[1, 2, 3, 4],
            version: 6,
            header: 40,
            source: 8,
            destination: 24,
            transport: 6,
            words: 4,
            family: 6,
        },
    }
}

/// Jumps to `to` if the packet is an ICMP error.
pub fn jump_if_error(e: &mut Emitter, family: Family, to: Label) {
    let (form, other) = (form(family), e.asm.label());
    e.jump_if_protocol(If::NotEqual, form.protocol, other);
    kind(e);
    for error in form.errors {
        e.asm.jump_if(R1, If::Equal, *error, to);
    }
    e.asm.place(other);
}

/// Jumps to `admitted` if the packet is an error about a known connection, and to `rules` if it is
/// another error. The connection is not renewed.
pub fn related(e: &mut Emitter, family: Family, is_egress: bool, rules: Label, admitted: Label) {
    let (error, other) = (e.asm.label(), e.asm.label());
    jump_if_error(e, family, error);
    e.asm.jump(other);
    e.asm.place(error);
    key(e, &form(family), is_egress, rules);
    lookup(e, admitted, false);
    e.asm.jump(rules);
    e.asm.place(other);
}

/// Writes the key of the quoted packet's connection. Its sender gets the error.
fn key(e: &mut Emitter, form: &Form, is_egress: bool, none: Label) {
    let quoted = slot::SCRATCH;
    e.read_body(ERROR_HEADER, quoted, form.header, none);
    e.load(Size::Byte, R1, quoted);
    e.asm.shift_right(R1, 4);
    e.asm.jump_if(R1, If::NotEqual, form.version, none);
    for word in 0..form.words {
        e.load(Size::Word, R1, quoted + form.source + 4 * word);
        e.load(Size::Word, R2, slot::HEADER + form.destination + 4 * word);
        e.asm.jump_if_reg(R1, If::NotEqual, R2, none);
    }
    empty_key(e);
    let [source, destination] = match is_egress {
        true => [(REMOTE_ADDRESS, REMOTE_PORT), (LOCAL_ADDRESS, LOCAL_PORT)],
        false => [(LOCAL_ADDRESS, LOCAL_PORT), (REMOTE_ADDRESS, REMOTE_PORT)],
    };
    for (from, to) in [(form.source, source.0), (form.destination, destination.0)] {
        for word in 0..form.words {
            e.load(Size::Word, R1, quoted + from + 4 * word);
            e.store(Size::Word, to + 4 * word, R1);
        }
    }
    e.load(Size::Byte, R1, quoted + form.transport);
    e.store(Size::Byte, KEY_PROTOCOL, R1);
    e.asm.store_value(Size::Byte, R10, KEY_FAMILY, form.family);
    e.asm.add(AT, ERROR_HEADER);
    behind(e, form, none);
    ports(e, source.1, destination.1, none);
}

/// Skips the quoted header. A later fragment names no connection.
fn behind(e: &mut Emitter, form: &Form, none: Label) {
    if form.version == 6 {
        return e.asm.add(AT, form.header);
    }
    e.load_be16(R1, slot::SCRATCH + 6);
    e.asm.and(R1, 0x1fff);
    e.asm.jump_if(R1, If::NotEqual, 0, none);
    e.load(Size::Byte, R1, slot::SCRATCH);
    e.asm.and(R1, 15);
    e.asm.shift_left(R1, 2);
    e.asm.jump_if(R1, If::Less, form.header, none);
    e.asm.add_reg(AT, R1);
    e.need(0, none);
}

/// Copies the ports of the quoted packet, or the identifier of its echo, into the key.
fn ports(e: &mut Emitter, source: i16, destination: i16, none: Label) {
    let (has_ports, is_message, done) = (e.asm.label(), e.asm.label(), e.asm.label());
    e.load(Size::Byte, R1, KEY_PROTOCOL);
    for protocol in [TCP, UDP, DCCP, SCTP, UDP_LITE] {
        e.asm.jump_if(R1, If::Equal, protocol.into(), has_ports);
    }
    for protocol in [ICMP, ICMPV6] {
        e.asm.jump_if(R1, If::Equal, protocol.into(), is_message);
    }
    e.asm.jump(done);
    e.asm.place(is_message);
    e.read_body(0, slot::SCRATCH, 1, none);
    let (is_v4, is_echo) = (e.asm.label(), e.asm.label());
    e.load(Size::Byte, R2, KEY_PROTOCOL);
    e.load(Size::Byte, R1, slot::SCRATCH);
    e.asm.jump_if(R2, If::Equal, ICMP.into(), is_v4);
    e.asm.jump_if(R1, If::Equal, 128, is_echo);
    e.asm.jump_if(R1, If::Equal, 129, is_echo);
    e.asm.jump(done);
    e.asm.place(is_v4);
    e.asm.jump_if(R1, If::Equal, 0, is_echo);
    e.asm.jump_if(R1, If::NotEqual, 8, done);
    e.asm.place(is_echo);
    e.read_body(4, slot::SCRATCH, 2, none);
    e.load(Size::Half, R1, slot::SCRATCH);
    e.store(Size::Half, source, R1);
    e.store(Size::Half, destination, R1);
    e.asm.jump(done);
    e.asm.place(has_ports);
    e.read_body(0, slot::SCRATCH, 4, none);
    e.load(Size::Half, R1, slot::SCRATCH);
    e.store(Size::Half, source, R1);
    e.load(Size::Half, R1, slot::SCRATCH + 2);
    e.store(Size::Half, destination, R1);
    e.asm.place(done);
}
