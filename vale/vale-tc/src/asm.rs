// SPDX-License-Identifier: Apache-2.0
//! An assembler for eBPF with labels (Documentation/bpf/standardization/instruction-set.rst of Linux).
//! It writes the instructions that the compiler needs, and no others.

use std::collections::HashMap;

/// A register: R0 holds results, R1 to R5 arguments, which a call forgets. R6 to R9 survive calls,
/// and R10 is the end of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg(u8);

pub const R0: Reg = Reg(0);
pub const R1: Reg = Reg(1);
pub const R2: Reg = Reg(2);
pub const R3: Reg = Reg(3);
pub const R4: Reg = Reg(4);
pub const R5: Reg = Reg(5);
pub const R6: Reg = Reg(6);
pub const R7: Reg = Reg(7);
pub const R8: Reg = Reg(8);
pub const R9: Reg = Reg(9);
pub const R10: Reg = Reg(10);

/// Bytes of a load or a store.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    Byte = 0x10,
    Half = 0x08,
    Word = 0x00,
    Double = 0x18,
}

/// The condition of a jump; numbers have no sign but in `SignedLess`.
#[derive(Clone, Copy, Debug)]
pub enum If {
    Equal = 0x10,
    Greater = 0x20,
    NotEqual = 0x50,
    Less = 0xa0,
    SignedLess = 0xc0,
}

/// Functions of the kernel (include/uapi/linux/bpf.h).
#[derive(Clone, Copy, Debug)]
pub enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    Time = 5,
    LoadBytes = 26,
    ChecksumDifference = 28,
}

/// A map that both programs of a vif share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    Connections = 0,
    Counters = 1,
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// Bytes of an instruction.
pub const INSTRUCTION: usize = 8;
const JUMP: u8 = 0x05;
const JUMP_WORD: u8 = 0x06;
const EXIT: u8 = 0x95;
const REGISTER: u8 = 0x08;

/// The instructions of a program, and the places in them that name a map.
#[derive(Debug)]
pub struct Program {
    pub code: Vec<[u8; INSTRUCTION]>,
    pub maps: Vec<(usize, Map)>,
}

#[derive(Default)]
pub struct Assembler {
    code: Vec<[u8; INSTRUCTION]>,
    maps: Vec<(usize, Map)>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn emit(&mut self, code: u8, to: Reg, from: Reg, offset: i16, value: i32) {
        let ([a, b], [c, d, e, f]) = (offset.to_ne_bytes(), value.to_ne_bytes());
        let registers = from.0 << 4 | to.0;
        self.code.push([code, registers, a, b, c, d, e, f]);
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// `to = value`.
    pub fn set(&mut self, to: Reg, value: i32) {
        self.emit(0xb7, to, R0, 0, value);
    }

    /// `to = value`, of 64 bits.
    pub fn set_wide(&mut self, to: Reg, value: u64) {
        self.emit(0x18, to, R0, 0, value as i32);
        self.emit(0, R0, R0, 0, (value >> 32) as i32);
    }

    /// `to = &map`. The loader puts in the map.
    pub fn set_map(&mut self, to: Reg, map: Map) {
        self.maps.push((self.code.len(), map));
        self.set_wide(to, map as u64);
    }

    pub fn copy(&mut self, to: Reg, from: Reg) {
        self.emit(0xbf, to, from, 0, 0);
    }

    pub fn add(&mut self, to: Reg, value: i32) {
        self.emit(0x07, to, R0, 0, value);
    }

    pub fn add_reg(&mut self, to: Reg, from: Reg) {
        self.emit(0x0f, to, from, 0, 0);
    }

    pub fn subtract_reg(&mut self, to: Reg, from: Reg) {
        self.emit(0x1f, to, from, 0, 0);
    }

    pub fn and(&mut self, to: Reg, value: i32) {
        self.emit(0x57, to, R0, 0, value);
    }

    pub fn or_reg(&mut self, to: Reg, from: Reg) {
        self.emit(0x4f, to, from, 0, 0);
    }

    pub fn shift_left(&mut self, to: Reg, bits: i32) {
        self.emit(0x67, to, R0, 0, bits);
    }

    pub fn shift_right(&mut self, to: Reg, bits: i32) {
        self.emit(0x77, to, R0, 0, bits);
    }

    /// Turns a number of the network's byte order into the host's, or back.
    pub fn swap(&mut self, to: Reg, bits: i32) {
        self.emit(0xdc, to, R0, 0, bits);
    }

    /// `to = *(from + offset)`.
    pub fn load(&mut self, size: Size, to: Reg, from: Reg, offset: i16) {
        self.emit(0x61 | size as u8, to, from, offset, 0);
    }

    /// `*(to + offset) = from`.
    pub fn store(&mut self, size: Size, to: Reg, offset: i16, from: Reg) {
        self.emit(0x63 | size as u8, to, from, offset, 0);
    }

    /// `*(to + offset) = value`.
    pub fn store_value(&mut self, size: Size, to: Reg, offset: i16, value: i32) {
        self.emit(0x62 | size as u8, to, R0, offset, value);
    }

    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.emit(JUMP, R0, R0, 0, 0);
    }

    /// Jumps if a register of 64 bits compares to `value`.
    pub fn jump_if(&mut self, left: Reg, how: If, value: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.emit(JUMP | how as u8, left, R0, 0, value);
    }

    /// Jumps if the lower 32 bits of a register compare to `value`.
    pub fn jump_if_word(&mut self, left: Reg, how: If, value: u32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.emit(JUMP_WORD | how as u8, left, R0, 0, value as i32);
    }

    pub fn jump_if_reg(&mut self, left: Reg, how: If, right: Reg, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.emit(JUMP | REGISTER | how as u8, left, right, 0, 0);
    }

    pub fn call(&mut self, helper: Helper) {
        self.emit(0x85, R0, R0, 0, helper as i32);
    }

    pub fn exit(&mut self) {
        self.emit(EXIT, R0, R0, 0, 0);
    }

    /// Fills in the jumps. Instructions that no way leads to are left out, because the kernel refuses
    /// a program with such.
    ///
    /// # Errors
    /// A jump is longer than 32,767 instructions.
    pub fn finish(self) -> Result<Program, String> {
        let targets: HashMap<usize, usize> = self.jumps.iter().map(|j| self.target(*j)).collect();
        let reached = self.reached(&targets);
        let mut places = Vec::new();
        let mut code = Vec::new();
        for (instruction, is_reached) in self.code.iter().zip(&reached) {
            places.push(code.len());
            code.extend(is_reached.then_some(*instruction));
        }
        for (at, target) in targets.iter().filter(|(at, _)| reached[**at]) {
            let (at, target) = (places[*at], places[*target]);
            let way = i16::try_from(target as i64 - at as i64 - 1);
            let way = way.map_err(|_| too_long(code.len()))?;
            code[at][2..4].copy_from_slice(&way.to_ne_bytes());
        }
        let maps = self.maps.iter().filter(|(at, _)| reached[*at]);
        let maps = maps.map(|(at, map)| (places[*at], *map)).collect();
        Ok(Program { code, maps })
    }

    fn target(&self, (at, label): (usize, Label)) -> (usize, usize) {
        let place = self.labels[label.0].expect("each label that is used has a place");
        (at, place)
    }

    /// The instructions to which a way leads from the first one.
    fn reached(&self, targets: &HashMap<usize, usize>) -> Vec<bool> {
        let mut reached = vec![false; self.code.len()];
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut reached[at], true) {
                continue;
            }
            open.extend(targets.get(&at));
            match self.code[at][0] {
                EXIT | JUMP => {}
                _ => open.push(at + 1),
            }
        }
        reached
    }
}

fn too_long(instructions: usize) -> String {
    format!("rules: they need {instructions} instructions, too many for a tc program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut asm = Assembler::default();
        let (back, forth) = (asm.label(), asm.label());
        asm.place(back);
        asm.jump_if(R1, If::Equal, 9, forth);
        asm.jump_if(R1, If::Less, 7, back);
        asm.place(forth);
        asm.exit();
        let code = asm.finish().unwrap().code;
        assert_eq!(code[0], [0x15, 1, 1, 0, 9, 0, 0, 0]);
        assert_eq!(code[1], [0xa5, 1, 0xfe, 0xff, 7, 0, 0, 0]);
    }

    #[test]
    fn a_jump_that_is_too_long_is_an_error() {
        let mut asm = Assembler::default();
        let end = asm.label();
        asm.jump_if(R1, If::Equal, 0, end);
        (0..40_000).for_each(|_| asm.set(R1, 1));
        asm.place(end);
        asm.exit();
        assert!(asm.finish().unwrap_err().contains("40002 instructions"));
    }

    #[test]
    fn what_no_way_leads_to_is_left_out() {
        let mut asm = Assembler::default();
        let end = asm.label();
        asm.jump(end);
        asm.set_map(R1, Map::Counters);
        asm.place(end);
        asm.set_map(R2, Map::Counters);
        asm.exit();
        let program = asm.finish().unwrap();
        assert_eq!(program.code.len(), 4);
        assert_eq!(program.code[0][2..4], [0, 0]);
        assert_eq!(program.maps, [(1, Map::Counters)]);
    }
}
