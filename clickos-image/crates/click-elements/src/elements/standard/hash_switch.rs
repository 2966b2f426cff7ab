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

/// The sum of bytes, eight at a time.
fn sum(bytes: &[u8]) -> usize {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let chunks = bytes.chunks_exact(8);
    let rest: usize = chunks.remainder().iter().map(|b| usize::from(*b)).sum();
    let eight = |chunk: &[u8]| {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let pairs = (word & EVEN) + (word >> 8 & EVEN);
        pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48
    };
    rest + chunks.map(eight).sum::<u64>() as usize
}

/// The output for these bytes: their sum, spread over `outputs` as Click does.
fn output(bytes: &[u8], outputs: usize) -> usize {
    let sum = sum(bytes);
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
            let bytes = packet.data().get(from..to);
            bytes.map_or(0, |bytes| output(bytes, outputs))
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
        for length in 0..=bytes.len() {
            let expected: usize = bytes[..length].iter().map(|b| usize::from(*b)).sum();
            assert_eq!(sum(&bytes[..length]), expected, "{length}");
        }
    }
}
