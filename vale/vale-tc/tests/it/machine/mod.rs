// SPDX-License-Identifier: Apache-2.0
//! A machine that runs the programs without a kernel. It knows the instructions of `asm.rs` only, and
//! refuses to read a register or a byte of the stack that the program has not written.
pub mod frames;

use std::collections::HashMap;

use vale_tc::asm::Program;

const CONTEXT: u64 = 1 << 32;
const STACK: u64 = (2 << 32) + STACK_BYTES as u64;
const STACK_BYTES: usize = 512;
const VALUES: u64 = 3 << 32;
const KEY: usize = 40;
const CONNECTIONS: u64 = 0;

/// The maps of the programs of a vif.
#[derive(Default)]
pub struct World {
    pub now: u64,
    pub counters: Vec<u64>,
    connections: HashMap<Vec<u8>, usize>,
    times: Vec<u64>,
}

struct Machine<'a> {
    world: &'a mut World,
    frame: &'a [u8],
    registers: [Option<u64>; 11],
    stack: [Option<u8>; STACK_BYTES],
}

/// True if the program lets the frame go on.
pub fn run(program: &Program, world: &mut World, frame: &[u8]) -> bool {
    let mut machine = Machine {
        world,
        frame,
        registers: [None; 11],
        stack: [None; STACK_BYTES],
    };
    machine.registers[1] = Some(CONTEXT);
    machine.registers[10] = Some(STACK);
    match machine.run(program) as i32 {
        -1 => true,
        2 => false,
        other => panic!("verdict {other}"),
    }
}

impl Machine<'_> {
    fn run(&mut self, program: &Program) -> u64 {
        let mut at = 0;
        loop {
            let [code, registers, a, b, c, d, e, f] = program.code[at];
            let (to, from) = (usize::from(registers & 15), usize::from(registers >> 4));
            let offset = i16::from_ne_bytes([a, b]);
            let value = i64::from(i32::from_ne_bytes([c, d, e, f])) as u64;
            at += 1;
            match code {
                0x95 => return self.get(0),
                0x85 => self.call(value),
                0x18 => {
                    let [.., c, d, e, f] = program.code[at];
                    let high = u64::from(u32::from_ne_bytes([c, d, e, f]));
                    self.registers[to] = Some(high << 32 | value & 0xffff_ffff);
                    at += 1;
                }
                _ if matches!(code & 7, 5 | 6) => {
                    let right = if code & 8 == 0 { value } else { self.get(from) };
                    if self.jumps(code, to, right) {
                        at = (at as i64 + i64::from(offset)) as usize;
                    }
                }
                _ => self.step(code, to, from, offset, value),
            }
        }
    }

    fn get(&self, register: usize) -> u64 {
        self.registers[register].expect("the program has written the register")
    }

    fn jumps(&self, code: u8, left: usize, right: u64) -> bool {
        if code == 0x05 {
            return true;
        }
        let (mut left, mut right) = (self.get(left), right);
        if code & 7 == 6 {
            (left, right) = (left & 0xffff_ffff, right & 0xffff_ffff);
        }
        match code & 0xf0 {
            0x10 => left == right,
            0x20 => left > right,
            0x50 => left != right,
            0xa0 => left < right,
            other => panic!("jump {other:#x}"),
        }
    }

    fn step(&mut self, code: u8, to: usize, from: usize, offset: i16, value: u64) {
        let size = [4, 2, 1, 8][usize::from(code >> 3 & 3)];
        let place = |base: u64| base.wrapping_add(offset as u64);
        match code & 7 {
            1 => self.registers[to] = Some(self.load(place(self.get(from)), size)),
            2 => self.store(place(self.get(to)), size, value),
            3 => self.store(place(self.get(to)), size, self.get(from)),
            4 => {
                let old = self.get(to);
                let new = match value {
                    16 => (old as u16).to_be().into(),
                    32 => (old as u32).to_be().into(),
                    other => panic!("swap of {other} bits"),
                };
                self.registers[to] = Some(new);
            }
            _ => {
                let right = if code & 8 == 0 { value } else { self.get(from) };
                let new = match code & 0xf0 {
                    0xb0 => right,
                    0x00 => self.get(to).wrapping_add(right),
                    0x10 => self.get(to).wrapping_sub(right),
                    0x40 => self.get(to) | right,
                    0x50 => self.get(to) & right,
                    0x60 => self.get(to) << right,
                    0x70 => self.get(to) >> right,
                    other => panic!("operation {other:#x}"),
                };
                self.registers[to] = Some(new);
            }
        }
    }

    fn load(&self, address: u64, size: usize) -> u64 {
        match address >> 32 {
            1 if size == 4 => match address - CONTEXT {
                0 => self.frame.len() as u64,
                20 | 164 => 0,
                other => panic!("field {other}"),
            },
            3 => self.world.value((address - VALUES) as usize),
            _ => {
                assert_eq!(address % size as u64, 0, "the kernel refuses this access");
                let mut bytes = [0; 8];
                bytes[..size].copy_from_slice(&self.bytes(address, size));
                u64::from_ne_bytes(bytes)
            }
        }
    }

    fn store(&mut self, address: u64, size: usize, value: u64) {
        if address >= VALUES {
            return self.world.set((address - VALUES) as usize, value);
        }
        assert_eq!(address % size as u64, 0, "the kernel refuses this access");
        self.fill(address, &value.to_ne_bytes()[..size]);
    }

    fn index(address: u64) -> usize {
        (address + STACK_BYTES as u64 - STACK) as usize
    }

    fn bytes(&self, address: u64, size: usize) -> Vec<u8> {
        let bytes = &self.stack[Self::index(address)..][..size];
        let written = bytes
            .iter()
            .map(|b| b.expect("the program has written the stack"));
        written.collect()
    }

    fn fill(&mut self, address: u64, bytes: &[u8]) {
        let place = &mut self.stack[Self::index(address)..][..bytes.len()];
        place.copy_from_slice(&bytes.iter().map(|b| Some(*b)).collect::<Vec<_>>());
    }

    fn call(&mut self, helper: u64) {
        let result = match helper {
            1 => self.look_up(),
            2 => {
                let time = self.load(self.get(3), 8);
                let key = self.bytes(self.get(2), KEY);
                self.world.insert(key, time)
            }
            5 => self.world.now,
            26 => self.load_bytes(),
            28 => self.checksum(),
            other => panic!("helper {other}"),
        };
        self.registers[0] = Some(result);
        self.registers[1..6].fill(None);
    }

    fn look_up(&self) -> u64 {
        let found = match self.get(1) {
            CONNECTIONS => {
                let key = self.bytes(self.get(2), KEY);
                let found = self.world.connections.get(&key);
                found.map(|n| self.world.counters.len() + n)
            }
            _ => Some(self.load(self.get(2), 4) as usize),
        };
        found.map_or(0, |n| VALUES + 8 * n as u64)
    }

    fn load_bytes(&mut self) -> u64 {
        let (from, to, bytes) = (self.get(2) as usize, self.get(3), self.get(4) as usize);
        match self.frame.get(from..from + bytes) {
            Some(found) => {
                self.fill(to, found);
                0
            }
            None => {
                self.fill(to, &vec![0; bytes]);
                -14i64 as u64
            }
        }
    }

    fn checksum(&self) -> u64 {
        let bytes = self.bytes(self.get(3), self.get(4) as usize);
        let words = bytes
            .chunks(2)
            .map(|w| u64::from(u16::from_ne_bytes([w[0], w[1]])));
        words.sum()
    }
}

impl World {
    pub fn new(counters: usize) -> Self {
        Self {
            counters: vec![0; counters],
            ..Self::default()
        }
    }

    fn insert(&mut self, key: Vec<u8>, time: u64) -> u64 {
        self.times.push(time);
        self.connections.insert(key, self.times.len() - 1);
        0
    }

    fn value(&self, address: usize) -> u64 {
        let n = address / 8;
        let times = || self.times[n - self.counters.len()];
        self.counters.get(n).copied().unwrap_or_else(times)
    }

    fn set(&mut self, address: usize, value: u64) {
        let n = address / 8;
        match n.checked_sub(self.counters.len()) {
            Some(n) => self.times[n] = value,
            None => self.counters[n] = value,
        }
    }
}
