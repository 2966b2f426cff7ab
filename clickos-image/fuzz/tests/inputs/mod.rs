// SPDX-License-Identifier: Apache-2.0
//! Inputs made of words of the language and of packets, put together and changed at random. The same
//! inputs each time; FUZZ_RUNS changes their number, and FUZZ_SEED gives others.
#![allow(dead_code, reason = "not every test uses all of them")]
use std::env;
use std::str::FromStr;

/// A small generator (xorshift, Marsaglia 2003): the inputs must be the same everywhere.
pub struct Random(pub u64);

impl Random {
    /// The generator of a target.
    pub fn of(target: u64) -> Self {
        Self(target ^ number("FUZZ_SEED").unwrap_or(0) << 8)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap_or(0)
    }
}

/// Pieces of inputs.
const WORDS: &[&[u8]] = &[
    b"a",
    b"b1",
    b" :: ",
    b" -> ",
    b" => ",
    b"A",
    b"Queue",
    b"IPFilter",
    b"(",
    b")",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[0]",
    b"[1,2]",
    b"||",
    b"...",
    b"$x",
    b"${x-1}",
    b"|",
    b",",
    b";",
    b"\n",
    b"elementclass ",
    b"define($x 1)",
    b"require(",
    b"library ",
    b"input",
    b"output",
    b"__REST__ ",
    b"\"",
    b"'",
    b"\\",
    b"\\<41>",
    b"//",
    b"/*",
    b"*/",
    b"\n# 7 \"f\"\n",
    b"0",
    b"1",
    b"-1",
    b"4294967296",
    b"0x",
    b"1.2.3.4",
    b"1.2.3.4/33",
    b"1:2:3:4:5:6",
    b"tcp ",
    b"src port 80 ",
    b"&& ",
    b"allow ",
    b"12/0800 ",
    b"%ff",
    b"true",
    b"1Gbps",
    b"5ms",
    b"READ ",
    b"WRITEDATA a.b 3\n",
    b"WRITEUNTIL a END\n",
    b"END\r\n",
    b"LLRPC a#4004C005 4\n",
    b"\0",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x08\x00",
    b"\x45\x00\x00\x14",
    b"\x81\x00",
    b"\x06",
    b"\x00\x01\x08\x00\x06\x04\x00\x01",
    b"\x4f\xff",
    b"1.0.0.1 ",
    b"rr{1.2.3.4}+1;ts{1^2} ",
    b"!binary\n",
    b"\x00\x00\x00\x28",
    // headers that are right, so that what is behind them is looked at
    b"\x45\x00\x00\x20\x00\x01\x00\x00\x40\x11\x66\xca\x0a\x00\x00\x01\x0a\x00\x00\x02\x00\x35\x00\x50\x00\x0c\x00\x00\x61\x62\x63\x64",
    b"\x45\x00\x00\x2c\x00\x01\x00\x00\x40\x06\x66\xc9\x0a\x00\x00\x01\x0a\x00\x00\x02\x00\x14\x00\x50\x00\x00\x00\x01\x00\x00\x00\x02\x60\x12\x20\x00\x00\x00\x00\x00\x02\x04\x05\x78",
    b"\x45\x00\x00\x1c\x00\x01\x00\x00\x40\x01\x66\xde\x0a\x00\x00\x01\x0a\x00\x00\x02\x08\x00\xf7\xfd\x00\x01\x00\x01",
    b"\x45\x00\x00\x24\x00\x01\x00\x00\x40\x32\x66\xa5\x0a\x00\x00\x01\x0a\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x47\x00\x00\x28\x00\x01\x00\x00\x40\x11\xd7\xb6\x0a\x00\x00\x01\x0a\x00\x00\x02\x83\x07\x04\x01\x02\x03\x04\x00\x00\x35\x00\x50\x00\x0c\x00\x00\x61\x62\x63\x64",
    b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00",
    b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00\x00\x20\x00\x01\x00\x00\x40\x11\x66\xca\x0a\x00\x00\x01\x0a\x00\x00\x02\x00\x35\x00\x50\x00\x0c\x00\x00\x61\x62\x63\x64",
    b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00\x00\x2c\x00\x01\x00\x00\x40\x06\x66\xc9\x0a\x00\x00\x01\x0a\x00\x00\x02\x00\x14\x00\x50\x00\x00\x00\x01\x00\x00\x00\x02\x60\x12\x20\x00\x00\x00\x00\x00\x02\x04\x05\x78",
    b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x01\x0a\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0a\x00\x00\x02",
    b"\x60\x00\x00\x00\x00\x08\x3a\xff\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xff\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xff\x00\x00\x01\x87\x00\x00\x00",
];

/// Words and noise, put together.
pub fn words(random: &mut Random, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        match random.below(4) {
            0 => bytes.extend((0..random.below(24)).map(|_| random.next().to_le_bytes()[0])),
            _ => bytes.extend(WORDS[random.below(WORDS.len())]),
        }
    }
    bytes
}

/// Words and noise with a few bytes changed.
pub fn input(random: &mut Random) -> Vec<u8> {
    let count = random.below(40);
    let mut bytes = words(random, count);
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = random.next().to_le_bytes()[0];
        }
    }
    bytes
}

/// The number of inputs.
pub fn runs(usual: usize) -> usize {
    number("FUZZ_RUNS").unwrap_or(usual)
}

fn number<T: FromStr>(variable: &str) -> Option<T> {
    env::var(variable).ok().and_then(|n| n.parse().ok())
}
