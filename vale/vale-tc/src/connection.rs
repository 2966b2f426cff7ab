// SPDX-License-Identifier: Apache-2.0
//! The table of connections that both programs of a vif share.
use crate::asm::{Helper, If, Label, Map, R0, R1, R2, R3, R4, R10, Size};
use crate::emit::{Emitter, LOCAL, slot};
use crate::packet::{DCCP, SCTP, TCP};

const SECOND: u64 = 1_000_000_000;
/// A connection ends after this silence.
const TCP_IDLE: u64 = 3600 * SECOND;
const IDLE: u64 = 120 * SECOND;
/// Parts of the key of a connection.
pub const KEY_BYTES: usize = 40;
pub const LOCAL_ADDRESS: i16 = slot::KEY;
pub const REMOTE_ADDRESS: i16 = slot::KEY + 16;
pub const LOCAL_PORT: i16 = slot::KEY + 32;
pub const REMOTE_PORT: i16 = slot::KEY + 34;
pub const KEY_PROTOCOL: i16 = slot::KEY + 36;
pub const KEY_FAMILY: i16 = slot::KEY + 37;
/// Clears the key, since a shorter address leaves bytes of it.
pub fn empty_key(e: &mut Emitter) {
    for double in 0..KEY_BYTES as i16 / 8 {
        e.asm
            .store_value(Size::Double, R10, slot::KEY + 8 * double, 0);
    }
}

/// R1 = the type of an ICMP message, which `LOCAL` has before its code.
pub fn kind(e: &mut Emitter) {
    e.asm.copy(R1, LOCAL);
    e.asm.shift_right(R1, 8);
}

/// Jumps if the connection is known and not silent for too long, and `renews` it. Its protocol is
/// in the key.
pub fn lookup(e: &mut Emitter, known: Label, renews: bool) {
    let (unknown, fresh, has_idle, is_tcp) =
        (e.asm.label(), e.asm.label(), e.asm.label(), e.asm.label());
    e.asm.call(Helper::Time);
    e.store(Size::Double, slot::NOW, R0);
    e.asm.set_map(R1, Map::Connections);
    e.stack(R2, slot::KEY);
    e.asm.call(Helper::MapLookup);
    e.asm.jump_if(R0, If::Equal, 0, unknown);
    e.load(Size::Double, R1, slot::NOW);
    e.asm.load(Size::Double, R2, R0, 0);
    // The clocks of two CPUs may differ a little.
    e.asm.jump_if_reg(R2, If::Greater, R1, fresh);
    e.asm.copy(R3, R1);
    e.asm.subtract_reg(R3, R2);
    e.load(Size::Byte, R4, KEY_PROTOCOL);
    for protocol in [TCP, DCCP, SCTP] {
        e.asm.jump_if(R4, If::Equal, protocol.into(), is_tcp);
    }
    e.asm.set_wide(R4, IDLE);
    e.asm.jump(has_idle);
    e.asm.place(is_tcp);
    e.asm.set_wide(R4, TCP_IDLE);
    e.asm.place(has_idle);
    e.asm.jump_if_reg(R3, If::Greater, R4, unknown);
    e.asm.place(fresh);
    if renews {
        e.asm.store(Size::Double, R0, 0, R1);
    }
    e.asm.jump(known);
    e.asm.place(unknown);
}

/// Notes the connection of an admitted packet.
pub fn insert(e: &mut Emitter) {
    e.asm.call(Helper::Time);
    e.store(Size::Double, slot::NOW, R0);
    e.asm.set_map(R1, Map::Connections);
    e.stack(R2, slot::KEY);
    e.stack(R3, slot::NOW);
    e.asm.set(R4, 0);
    e.asm.call(Helper::MapUpdate);
}
