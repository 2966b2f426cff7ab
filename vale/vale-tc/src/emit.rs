// SPDX-License-Identifier: Apache-2.0
//! The state of a program while it is written. It has the places for what a program reads of a frame,
//! and the code that all parts use.
use crate::asm::{
    Assembler, Helper, If, Label, Map, Program, R0, R1, R2, R3, R4, R5, R6, R10, Reg, Size,
};
use crate::counter::Drop;

/// Extension headers with lengths of their own.
pub const FRAGMENT: u8 = 44;
pub const AUTHENTICATION: u8 = 51;

/// Places on the stack, below R10.
pub mod slot {
    /// The Ethernet header: destination, source, type.
    pub const ETHERNET: i16 = -16;
    pub const SOURCE: i16 = ETHERNET + 6;
    pub const KIND: i16 = ETHERNET + 12;
    /// The fixed header of IPv4 or IPv6.
    pub const HEADER: i16 = -56;
    /// The end of the packet, counted from the begin of the frame, as `AT`.
    pub const END: i16 = -64;
    /// The place among fragments: WHOLE, FIRST or LATER.
    pub const PART: i16 = -72;
    /// The first bytes after all headers of IP.
    pub const BODY: i16 = -80;
    /// Other bytes of the frame.
    pub const SCRATCH: i16 = -144;
    /// The key of a connection.
    pub const KEY: i16 = -184;
    /// The number of a counter.
    pub const COUNTER: i16 = -188;
    /// The time.
    pub const NOW: i16 = -200;
    /// The target of a neighbor message.
    pub const TARGET: i16 = -216;
    /// 1 if the source of an IPv6 packet is unspecified.
    pub const UNSPECIFIED: i16 = -224;
    /// The ports of the packet in the host's byte order, or NO_PORT.
    pub const SOURCE_PORT: i16 = -232;
    pub const DESTINATION_PORT: i16 = -240;
    /// 4 or 6 if offloaded rules see an IP packet, else 0.
    pub const VERSION: i16 = -248;
    /// Offloaded rules see the bytes before this one.
    pub const HEAD: i16 = -256;
}

/// Values of `slot::PART`.
pub const WHOLE: i32 = 0;
pub const FIRST: i32 = 1;
pub const LATER: i32 = 2;

/// Offsets in `struct __sk_buff`.
mod context {
    pub const LEN: i16 = 0;
    pub const VLAN_PRESENT: i16 = 20;
    pub const VLAN_PROTOCOL: i16 = 28;
    pub const SEGMENTS: i16 = 164;
}

/// Bytes of an Ethernet header.
pub const ETHERNET: i32 = 14;
/// The frame continues to the next filter of the interface.
const GO_ON: i32 = -1;
const SHOT: i32 = 2;

/// The program's context.
pub const CONTEXT: Reg = R6;
/// The protocol of the transport.
pub const PROTOCOL: Reg = crate::asm::R7;
/// The offset of the next header in the frame.
pub const AT: Reg = crate::asm::R8;
/// A register that each part uses for itself.
pub const LOCAL: Reg = crate::asm::R9;

/// Bytes of a frame as one number, as the program loads them from its stack.
pub fn raw<const N: usize>(bytes: [u8; N]) -> u32 {
    let mut all = [0; 4];
    all[..N].copy_from_slice(&bytes);
    u32::from_ne_bytes(all)
}

/// A number of the frame's byte order.
pub fn raw16(value: u16) -> i32 {
    raw(value.to_be_bytes()) as i32
}

pub struct Emitter {
    pub asm: Assembler,
    pass: Label,
    drops: Vec<Label>,
    count_and_drop: Label,
}

impl Emitter {
    pub fn new() -> Self {
        let mut asm = Assembler::default();
        let pass = asm.label();
        let count_and_drop = asm.label();
        let drops = crate::counter::DROPS.iter().map(|_| asm.label()).collect();
        asm.copy(CONTEXT, R1);
        Self {
            asm,
            pass,
            drops,
            count_and_drop,
        }
    }

    /// The end of a frame that may go on.
    pub fn pass(&self) -> Label {
        self.pass
    }

    /// The end of a frame that is dropped.
    pub fn dropped(&self, reason: Drop) -> Label {
        self.drops[reason as usize]
    }

    /// Drops the frame and counts it for a rule.
    pub fn drop_for(&mut self, counter: usize) {
        self.asm.set(R1, counter as i32);
        self.asm.jump(self.count_and_drop);
    }

    /// Writes the ends.
    ///
    /// # Errors
    /// The program is too long.
    pub fn finish(mut self) -> Result<Program, String> {
        for (counter, label) in self.drops.clone().into_iter().enumerate() {
            self.asm.place(label);
            self.drop_for(counter);
        }
        self.asm.place(self.count_and_drop);
        self.count();
        self.asm.set(R0, SHOT);
        self.asm.exit();
        self.asm.place(self.pass);
        self.asm.set(R0, GO_ON);
        self.asm.exit();
        self.asm.finish()
    }

    /// Adds the frame's segments to the counter whose number is in R1.
    pub fn count(&mut self) {
        let (has_segments, none) = (self.asm.label(), self.asm.label());
        self.asm.store(Size::Word, R10, slot::COUNTER, R1);
        self.asm.set_map(R1, Map::Counters);
        self.stack(R2, slot::COUNTER);
        self.asm.call(Helper::MapLookup);
        self.asm.jump_if(R0, If::Equal, 0, none);
        self.asm.load(Size::Word, R1, CONTEXT, context::SEGMENTS);
        self.asm.jump_if(R1, If::NotEqual, 0, has_segments);
        self.asm.set(R1, 1);
        self.asm.place(has_segments);
        self.asm.load(Size::Double, R2, R0, 0);
        self.asm.add_reg(R2, R1);
        self.asm.store(Size::Double, R0, 0, R2);
        self.asm.place(none);
    }

    /// `to` = the address of a place on the stack.
    pub fn stack(&mut self, to: Reg, slot: i16) {
        self.asm.copy(to, R10);
        self.asm.add(to, slot.into());
    }

    /// `to` = the length of the frame.
    pub fn frame_length(&mut self, to: Reg) {
        self.asm.load(Size::Word, to, CONTEXT, context::LEN);
    }

    /// Copies bytes at a fixed offset of the frame, which may lack them.
    pub fn read_at(&mut self, offset: i32, slot: i16, bytes: i32, lacking: Label) {
        self.asm.set(R2, offset);
        self.read_from_r2(slot, bytes, lacking);
    }

    /// Copies bytes at `base + more` of the frame.
    pub fn read(&mut self, base: Reg, more: i32, slot: i16, bytes: i32, lacking: Label) {
        self.asm.copy(R2, base);
        self.asm.add(R2, more);
        self.read_from_r2(slot, bytes, lacking);
    }

    fn read_from_r2(&mut self, slot: i16, bytes: i32, lacking: Label) {
        self.asm.copy(R1, CONTEXT);
        self.stack(R3, slot);
        self.asm.set(R4, bytes);
        self.asm.call(Helper::LoadBytes);
        self.asm.jump_if(R0, If::NotEqual, 0, lacking);
    }

    /// Copies bytes of the packet at `AT + more`, which may end before them.
    pub fn read_body(&mut self, more: i32, slot: i16, bytes: i32, lacking: Label) {
        self.need(more + bytes, lacking);
        self.read(AT, more, slot, bytes, lacking);
    }

    /// Jumps unless the packet has this many bytes from `AT` on.
    pub fn need(&mut self, bytes: i32, lacking: Label) {
        self.asm.copy(R1, AT);
        self.asm.add(R1, bytes);
        self.asm.load(Size::Double, R2, R10, slot::END);
        self.asm.jump_if_reg(R1, If::Greater, R2, lacking);
    }

    pub fn load(&mut self, size: Size, to: Reg, slot: i16) {
        self.asm.load(size, to, R10, slot);
    }

    pub fn store(&mut self, size: Size, slot: i16, from: Reg) {
        self.asm.store(size, R10, slot, from);
    }

    /// `to` = a number of the network's byte order.
    pub fn load_be16(&mut self, to: Reg, slot: i16) {
        self.load(Size::Half, to, slot);
        self.asm.swap(to, 16);
    }

    pub fn jump_if_part(&mut self, how: If, part: i32, to: Label) {
        self.load(Size::Double, R1, slot::PART);
        self.asm.jump_if(R1, how, part, to);
    }

    pub fn jump_if_protocol(&mut self, how: If, protocol: u8, to: Label) {
        self.asm.jump_if(PROTOCOL, how, protocol.into(), to);
    }

    /// `to` = the bytes of the extension header that `PROTOCOL` names; `to` has its second byte
    /// (RFC 8200, and RFC 4302 for authentication).
    pub fn extension_length(&mut self, to: Reg) {
        let (fragment, long, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.jump_if_protocol(If::Equal, FRAGMENT, fragment);
        self.jump_if_protocol(If::NotEqual, AUTHENTICATION, long);
        self.asm.add(to, 2);
        self.asm.shift_left(to, 2);
        self.asm.jump(done);
        self.asm.place(long);
        self.asm.add(to, 1);
        self.asm.shift_left(to, 3);
        self.asm.jump(done);
        self.asm.place(fragment);
        self.asm.set(to, 8);
        self.asm.place(done);
    }

    /// Reads the Ethernet header. The kernel may have taken out a tag: its type comes back.
    pub fn ethernet(&mut self) {
        let untagged = self.asm.label();
        let malformed = self.dropped(Drop::Malformed);
        self.read_at(0, slot::ETHERNET, ETHERNET, malformed);
        self.asm
            .load(Size::Word, R1, CONTEXT, context::VLAN_PRESENT);
        self.asm.jump_if(R1, If::Equal, 0, untagged);
        self.asm
            .load(Size::Word, R1, CONTEXT, context::VLAN_PROTOCOL);
        self.store(Size::Half, slot::KIND, R1);
        self.asm.place(untagged);
    }

    pub fn jump_if_kind(&mut self, how: If, kind: u16, to: Label) {
        self.load(Size::Half, R1, slot::KIND);
        self.asm.jump_if(R1, how, raw16(kind), to);
    }

    /// Jumps if six bytes of the stack are not this address.
    pub fn jump_unless_mac(&mut self, slot: i16, mac: [u8; 6], to: Label) {
        for (n, half) in mac.chunks_exact(2).enumerate() {
            self.load(Size::Half, R1, slot + 2 * n as i16);
            self.asm
                .jump_if(R1, If::NotEqual, raw([half[0], half[1]]) as i32, to);
        }
    }

    /// Jumps unless the address at a slot lies from `first` to `last`.
    pub fn jump_unless_within(&mut self, slot: i16, first: &[u8], last: &[u8], to: Label) {
        let words = first.chunks_exact(4).zip(last.chunks_exact(4));
        let words: Vec<_> = words.map(|(a, b)| (word(a), word(b))).collect();
        let same = words.iter().take_while(|(a, b)| a == b).count();
        for (n, (value, _)) in words[..same].iter().enumerate() {
            self.load(Size::Word, R1, slot + 4 * n as i16);
            let value = raw(value.to_be_bytes());
            self.asm.jump_if_word(R1, If::NotEqual, value, to);
        }
        let rest = &words[same..];
        let slot = slot + 4 * same as i16;
        self.bound(
            slot,
            rest.iter().map(|w| w.0),
            u32::MIN,
            If::Less,
            If::Greater,
            to,
        );
        self.bound(
            slot,
            rest.iter().map(|w| w.1),
            u32::MAX,
            If::Greater,
            If::Less,
            to,
        );
    }

    /// Compares words to a bound, the highest first. Words that no value can be beyond need no code.
    fn bound(
        &mut self,
        slot: i16,
        words: impl Iterator<Item = u32>,
        open: u32,
        beyond: If,
        within: If,
        to: Label,
    ) {
        let mut words: Vec<_> = words.collect();
        while words.last() == Some(&open) {
            words.pop();
        }
        let good = self.asm.label();
        for (n, value) in words.iter().enumerate() {
            self.load(Size::Word, R1, slot + 4 * n as i16);
            self.asm.swap(R1, 32);
            self.asm.jump_if_word(R1, beyond, *value, to);
            if n + 1 < words.len() {
                self.asm.jump_if_word(R1, within, *value, good);
            }
        }
        self.asm.place(good);
    }

    /// `R0` = the sum of 16-bit words of the stack, whose bytes R2 counts (RFC 1071).
    pub fn checksum(&mut self, slot: i16) {
        self.asm.copy(R4, R2);
        self.asm.set(R1, 0);
        self.asm.set(R2, 0);
        self.stack(R3, slot);
        self.asm.set(R5, 0);
        self.asm.call(Helper::ChecksumDifference);
        for _ in 0..2 {
            self.asm.copy(R1, R0);
            self.asm.shift_right(R1, 16);
            self.asm.and(R0, 0xffff);
            self.asm.add_reg(R0, R1);
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
