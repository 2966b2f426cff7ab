// SPDX-License-Identifier: Apache-2.0
//! Random numbers: unpredictable ones, and those that follow a seed as Click's do.
use alloc::boxed::Box;
use alloc::rc::Rc;
use core::cell::RefCell;

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};

/// Bytes of a key.
pub const KEY: usize = 32;
/// Bytes that a key makes: the next key, and numbers.
const MADE: usize = 256;

/// A stream of ChaCha20 (RFC 8439). The key changes with every 224 bytes of use, so no byte tells the earlier or later
/// ones (Bernstein, "Fast-key-erasure random-number generators", 2017).
struct Stream {
    made: [u8; MADE],
    /// Bytes of `made` that were used.
    used: usize,
}

impl Stream {
    fn new(key: &[u8; KEY]) -> Self {
        let mut made = [0; MADE];
        made[..KEY].copy_from_slice(key);
        Self { made, used: MADE }
    }

    fn refill(&mut self) {
        let (mut key, nonce) = ([0; KEY], [0; 12]);
        key.copy_from_slice(&self.made[..KEY]);
        self.made = [0; MADE];
        ChaCha20::new(&key.into(), &nonce.into()).apply_keystream(&mut self.made);
        self.used = KEY;
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| {
            if self.used == MADE {
                self.refill();
            }
            self.used += 1;
            core::mem::take(&mut self.made[self.used - 1])
        })
    }

    fn number(&mut self) -> u64 {
        if self.used + 8 > MADE {
            self.refill();
        }
        u64::from_le_bytes(self.take())
    }
}

/// The source of a host's random numbers. Clones are one source, and each router gets a key of its own from it.
#[derive(Clone)]
pub struct Entropy(Rc<RefCell<Stream>>);

impl Entropy {
    /// A source that follows `key`, which must be secret and of one use.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self(Rc::new(RefCell::new(Stream::new(key))))
    }

    /// The key of one more user.
    pub fn key(&self) -> [u8; KEY] {
        self.0.borrow_mut().take()
    }

    /// Lets the keys to come depend on what somebody gave, too. They are no easier to guess for the giver.
    pub fn mix(&self, given: &[u8]) {
        for part in given.chunks(KEY) {
            let mut key = self.key();
            key.iter_mut().zip(part).for_each(|(k, g)| *k ^= g);
            *self.0.borrow_mut() = Stream::new(&key);
        }
    }
}

/// How far back the two numbers are whose sum is the next one.
const LAGS: (usize, usize) = (31, 3);
/// Numbers that are made and not used, so that the seed's neighbors differ.
const DISCARDED: usize = 310;
/// Modulus and factor of what fills the state from the seed (Park, Miller 1988).
const MINIMAL: (i64, i64) = (2_147_483_647, 16_807);
/// The largest number that is drawn.
pub const MAX: u32 = 0x7fff_ffff;

/// The state of the numbers that follow from a seed; none without a seed.
#[derive(PartialEq, Eq)]
pub struct Seeded(Option<Box<Additive>>);

/// The source of a router's random numbers.
pub struct Random {
    stream: Stream,
    foreseen: Option<Box<Additive>>,
}

impl Random {
    /// Numbers that follow `key`, which must be secret.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self {
            stream: Stream::new(key),
            foreseen: None,
        }
    }

    /// The state that drawn numbers follow from. It excludes keys, so no key is made twice.
    pub fn seeded(&self) -> Seeded {
        Seeded(self.foreseen.clone())
    }

    /// Lets what is drawn follow from `seeded` again.
    pub fn restore(&mut self, seeded: Seeded) {
        self.foreseen = seeded.0;
    }

    /// 64 bits, for keys and the like: no seed of a configuration leads to them.
    pub fn bits(&mut self) -> u64 {
        self.stream.number()
    }

    /// A key of 256 bits, likewise.
    pub fn key(&mut self) -> [u8; KEY] {
        self.stream.take()
    }

    /// Lets what is drawn follow from `seed`, or be unforeseeable again.
    pub fn seed(&mut self, seed: Option<u32>) {
        self.foreseen = seed.map(|seed| Box::new(Additive::new(seed)));
    }

    /// A number up to `MAX`.
    pub fn random_u32(&mut self) -> u32 {
        match &mut self.foreseen {
            Some(additive) => additive.next(),
            None => u32::try_from(self.bits() >> 33).expect("31 bits are left"),
        }
    }

    /// A number from `low` to `high`, every one as likely; `low` if the two are in the wrong order.
    pub fn random_range(&mut self, low: u32, high: u32) -> u32 {
        match high.checked_sub(low) {
            None => low,
            Some(1) => low + (self.random_u32() >> 14 & 1),
            Some(most) if most > MAX => low + self.draw_wide(most),
            Some(most) => low + self.draw_up_to(most),
        }
    }

    fn draw_up_to(&mut self, most: u32) -> u32 {
        let each = (MAX + 1) / (most + 1);
        loop {
            let number = self.random_u32();
            if number < each * (most + 1) {
                return number / each;
            }
        }
    }

    /// A number up to `most`, which is more than one drawing gives.
    fn draw_wide(&mut self, most: u32) -> u32 {
        loop {
            let number = (self.random_u32() << 17) ^ (self.random_u32() >> 14);
            if number <= most {
                return number;
            }
        }
    }
}

/// The additive generator of the C library that Click is built with, so that a configuration with
/// RandomSeed does the same here.
#[derive(Clone, PartialEq, Eq)]
struct Additive {
    numbers: [u32; LAGS.0],
    at: usize,
}

impl Additive {
    fn new(seed: u32) -> Self {
        let mut number = i64::from(i32::from_ne_bytes(seed.max(1).to_ne_bytes()));
        let mut numbers = [0; LAGS.0];
        for (index, slot) in numbers.iter_mut().enumerate() {
            if index > 0 {
                number = (MINIMAL.1 * number).rem_euclid(MINIMAL.0);
            }
            *slot = u32::try_from(number & i64::from(u32::MAX)).expect("32 bits are left");
        }
        let mut made = Self {
            numbers,
            at: LAGS.1,
        };
        (0..DISCARDED).for_each(|_| {
            made.next();
        });
        made
    }

    fn next(&mut self) -> u32 {
        let earlier = (self.at + LAGS.0 - LAGS.1) % LAGS.0;
        let number = self.numbers[self.at].wrapping_add(self.numbers[earlier]);
        self.numbers[self.at] = number;
        self.at = (self.at + 1) % LAGS.0;
        number >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_seed_leads_to_the_numbers_of_the_c_library() {
        let mut random = Random::new(&[7; KEY]);
        random.seed(Some(1));
        let mut seeded = |seed| {
            random.seed(Some(seed));
            [
                random.random_u32(),
                random.random_u32(),
                random.random_u32(),
            ]
        };
        assert_eq!(seeded(1), [1_804_289_383, 846_930_886, 1_681_692_777]);
        assert_eq!(seeded(0), seeded(1));
        assert_eq!(
            seeded(1 << 31),
            [1_336_741_213, 1_210_407_648, 1_447_044_896]
        );
        assert_eq!(seeded(u32::MAX), [254_925_627, 1_205_188_300, 366_127_624]);
    }

    #[test]
    fn ranges_are_kept_with_and_without_a_seed() {
        for seed in [None, Some(3), Some(u32::MAX)] {
            let mut random = Random::new(&[9; KEY]);
            random.seed(seed);
            for (low, high) in [
                (0, 0),
                (4, 5),
                (7, 9),
                (0, u32::MAX),
                (5, 2),
                (1 << 31, u32::MAX),
            ] {
                let number = random.random_range(low, high);
                assert!(
                    (low..=high.max(low)).contains(&number),
                    "{low} {high} {number}"
                );
            }
        }
    }

    #[test]
    fn keys_do_not_follow_the_seed() {
        let [mut one, mut other] = [[1; KEY], [2; KEY]].map(|key| Random::new(&key));
        one.seed(Some(5));
        other.seed(Some(5));
        assert_eq!(one.random_u32(), other.random_u32());
        assert_ne!(one.bits(), other.bits());
    }

    /// RFC 8439, appendix A.1, test vector 1: a key of zeros.
    #[test]
    fn the_stream_is_that_of_the_standard() {
        let mut stream = Stream::new(&[0; KEY]);
        stream.refill();
        assert_eq!(
            stream.made[..8],
            [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]
        );
    }

    #[test]
    fn no_router_gets_the_numbers_of_another() {
        let source = Entropy::new(&[3; KEY]);
        let (one, other) = (source.clone().key(), source.key());
        assert_ne!(one, other);
        let mixed = Entropy::new(&[3; KEY]);
        mixed.mix(b"given");
        assert_ne!(mixed.key(), Entropy::new(&[3; KEY]).key());
        let mut random = Random::new(&one);
        let numbers: Vec<u64> = (0..1_000).map(|_| random.bits()).collect();
        let distinct: alloc::collections::BTreeSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), 1_000);
    }
}
