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
use crate::outputs::Outputs;
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
            offset,
            end: offset + length,
            outputs: Outputs::new(a.outputs()),
        }))
    },
    ..Class::DEFAULT
};

struct HashSwitch {
    offset: usize,
    end: usize,
    outputs: Outputs,
}

/// The sum of eight bytes.
#[inline]
fn sum_of_eight(word: u64) -> usize {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (word & EVEN) + (word >> 8 & EVEN);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize
}

/// The sum of the last bytes, fewer than eight: of a word that ends with them, if there is one.
#[inline]
fn sum_of_last(bytes: &[u8], last: usize) -> usize {
    match bytes.last_chunk() {
        _ if last == 0 => 0,
        Some(word) => sum_of_eight(u64::from_le_bytes(*word) >> (64 - 8 * last)),
        None => bytes.iter().rev().take(last).map(|b| usize::from(*b)).sum(),
    }
}

/// The sum of the bytes from `from` on, eight at a time.
#[inline]
fn sum(bytes: &[u8], from: usize) -> usize {
    let words = bytes[from..].chunks_exact(8);
    let last = sum_of_last(bytes, words.remainder().len());
    words.fold(last, |sum, word| {
        let word = word.try_into().expect("eight bytes");
        sum + sum_of_eight(u64::from_le_bytes(word))
    })
}

/// The output for a sum of bytes, spread over `outputs` as Click does.
#[inline]
fn output(sum: usize, outputs: usize) -> usize {
    match outputs {
        2 | 4 | 8 => (sum ^ (sum >> 4)) & (outputs - 1),
        _ => sum % outputs,
    }
}

impl Element for HashSwitch {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.outputs.look_around(ctx);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        batch.prefetch();
        let (from, to, outputs) = (self.offset, self.end, ctx.outputs());
        let way = |packet: &Packet| {
            let bytes = packet.data().get(..to);
            bytes.map_or(0, |bytes| output(sum(bytes, from), outputs))
        };
        self.outputs.distribute(ctx, batch, |_, batch, ways| {
            ways.extend(batch.iter().map(way))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_summed_whatever_their_number() {
        let bytes: Vec<u8> = (0..40u8).map(|n| 255 - n).collect();
        for to in 0..=bytes.len() {
            for from in 0..=to {
                let expected: usize = bytes[from..to].iter().map(|b| usize::from(*b)).sum();
                assert_eq!(sum(&bytes[..to], from), expected, "{from} to {to}");
            }
        }
    }
}
