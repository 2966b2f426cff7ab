// SPDX-License-Identifier: Apache-2.0
//! Chooses a packet's output by some of its bytes.
//!
//! # Synopsis
//! `HashSwitch(OFFSET, LENGTH)`: the LENGTH bytes from OFFSET on, both mandatory, LENGTH at least 1.
//! Packets with the same bytes leave by the same output, those that are too short by output 0.
//! # Ports
//! 1/1 or more, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> h :: HashSwitch(26, 8); h[0] -> ToDevice(1); h[1] -> ToDevice(2);`
use crate::outputs::distribute;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "HashSwitch",
    ports: "1/1-",
    processing: "h/h",
    args: &[mandatory("OFFSET"), mandatory("LENGTH")],
    build: |a| {
        let (offset, length) = (a.need::<u16>("OFFSET"), a.need::<u16>("LENGTH"));
        let (offset, length) = (usize::from(offset?), usize::from(length?));
        if length == 0 {
            a.error("LENGTH", "expected at least 1, got 0");
        }
        Some(Box::new(HashSwitch {
            bytes: Field::new(offset, length),
        }))
    },
    ..Class::DEFAULT
};

struct HashSwitch {
    bytes: Field,
}

/// The bytes of a packet that the hash covers.
struct Field {
    from: usize,
    to: usize,
    /// If one or two words have room for them: bits of the word they end with that are not, or are in the first one.
    beside: u32,
}

/// Four sums of two bytes each, of eight bytes.
#[inline]
fn pairs(bytes: &[u8; 8], beside: u32) -> u64 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let word = u64::from_le_bytes(*bytes) >> beside;
    (word & EVEN) + (word >> 8 & EVEN)
}

/// The sum of four sums.
#[inline]
fn sum_of_four(sums: u64) -> usize {
    (sums.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize
}

#[inline(never)]
fn sum_of_any(bytes: &[u8]) -> usize {
    bytes.iter().map(|b| usize::from(*b)).sum()
}

impl Field {
    fn new(offset: usize, length: usize) -> Self {
        Self {
            from: offset,
            to: offset + length,
            beside: 8 * (length.wrapping_neg() % 8) as u32,
        }
    }

    /// The sum of a packet's bytes, 0 if it is too short. The number of words that hold them: 1, 2,
    /// or 0 for any number.
    #[inline(always)]
    fn sum<const WORDS: usize>(&self, data: &[u8]) -> usize {
        let (Some(bytes), Some(all)) = (data.get(self.from..self.to), data.get(..self.to)) else {
            return 0;
        };
        if let (1, Some(last)) = (WORDS, all.last_chunk()) {
            return sum_of_four(pairs(last, self.beside));
        }
        if WORDS == 2 && bytes.len() >= 8 {
            if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
                return sum_of_four(pairs(first, 0) + pairs(last, self.beside));
            }
        }
        sum_of_any(bytes)
    }

    /// Appends the sum of each packet's bytes.
    fn sums(&self, batch: &Batch, sums: &mut Vec<usize>) {
        let packets = batch.iter().map(Packet::data);
        match self.to - self.from {
            1..=8 => sums.extend(packets.map(|data| self.sum::<1>(data))),
            9..=16 => sums.extend(packets.map(|data| self.sum::<2>(data))),
            _ => sums.extend(packets.map(|data| self.sum::<0>(data))),
        }
    }
}

/// Makes outputs of sums of bytes, spread over `outputs` as Click does.
#[inline]
fn spread(sums: &mut [usize], outputs: usize) {
    match outputs {
        2 | 4 | 8 => sums
            .iter_mut()
            .for_each(|sum| *sum = (*sum ^ (*sum >> 4)) & (outputs - 1)),
        _ => sums.iter_mut().for_each(|sum| *sum %= outputs),
    }
}

impl Element for HashSwitch {
    fn is_plain(&self) -> bool {
        true
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        batch.prefetch();
        let (bytes, outputs) = (&self.bytes, ctx.outputs());
        distribute(ctx, batch, |_, batch, ways| {
            bytes.sums(batch, ways);
            spread(ways, outputs);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_summed_whatever_their_number() {
        let data: Vec<u8> = (0..40u8).map(|n| 255 - n).collect();
        for to in 1..=data.len() {
            for from in 0..to {
                let expected: usize = data[from..to].iter().map(|b| usize::from(*b)).sum();
                let bytes = Field::new(from, to - from);
                assert_eq!(bytes.sum::<0>(&data), expected, "{from} to {to}");
                if to - from <= 8 {
                    assert_eq!(bytes.sum::<1>(&data), expected, "{from} to {to}");
                } else if to - from <= 16 {
                    assert_eq!(bytes.sum::<2>(&data), expected, "{from} to {to}");
                }
                assert_eq!(bytes.sum::<0>(&data[..to - 1]), 0);
            }
        }
    }
}
