// SPDX-License-Identifier: Apache-2.0
//! Copies bytes of one packet into others.
//!
//! # Synopsis
//! `Clipboard(RANGE, ...)`: each RANGE is `OFFSET/LENGTH`, in bytes. All ranges have at most 65,599 bytes.
//! # Ports
//! 2/2, agnostic. The ranges of packets at input 0 are noted, as far as the packets reach; the packets go on at output
//! 0. Packets at input 1 get the ranges that were noted last, unless they are too short for one of
//! them, and go on at output 1. The element notes the last packet of a batch.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Copies the last of the packets that are pushed in one batch.
//! # Example
//! `first -> [0] c :: Clipboard(0/6) -> Discard; others -> [1] c [1] -> ToDevice(0);`
use click_core::{ArgContext, MAX_PACKET};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Clipboard",
    ports: "2/2",
    flow: "#/#",
    args: &[rest("RANGE")],
    build: |a| {
        let lines = a.rest().to_vec();
        let ranges: Vec<Range> = lines.iter().filter_map(|l| a.parse("RANGE", l)).collect();
        let all: usize = ranges.iter().map(|r| r.length).sum();
        if all > MAX_PACKET {
            a.error(
                "RANGE",
                format!("{all} bytes, the limit of all ranges is {MAX_PACKET}"),
            );
            return None;
        }
        let bytes = ranges.iter().map(|r| vec![0; r.length]).collect();
        Some(Box::new(Clipboard { ranges, bytes }))
    },
    live: true,
    ..Class::DEFAULT
};

#[derive(Clone, Copy)]
struct Range {
    offset: usize,
    length: usize,
}

impl FromArg for Range {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let got = text.shown();
        let expected = || {
            format!(
                "expected OFFSET/LENGTH, each at most {}, got \"{got}\"",
                u16::MAX
            )
        };
        let (offset, length) = text.split_once('/').ok_or_else(expected)?;
        let part = |digits| u16::from_arg(digits, at).map(usize::from);
        let (offset, length) = (part(offset), part(length));
        Ok(Self {
            offset: offset.map_err(|_| expected())?,
            length: length.map_err(|_| expected())?,
        })
    }
}

#[derive(Default)]
struct Clipboard {
    ranges: Vec<Range>,
    /// The stored bytes, by range.
    bytes: Vec<Vec<u8>>,
}

impl Clipboard {
    fn copy(&mut self, packet: &Packet) {
        for (range, bytes) in self.ranges.iter().zip(&mut self.bytes) {
            let there = packet.data().get(range.offset..).unwrap_or(&[]);
            let there = &there[..there.len().min(range.length)];
            bytes[..there.len()].copy_from_slice(there);
        }
    }

    fn paste(&self, packet: &mut Packet) {
        let data = packet.data_mut();
        if self.ranges.iter().any(|r| r.offset + r.length > data.len()) {
            return;
        }
        for (range, bytes) in self.ranges.iter().zip(&self.bytes) {
            data[range.offset..][..range.length].copy_from_slice(bytes);
        }
    }

    fn handle(&mut self, port: usize, batch: &mut Batch) {
        for packet in batch.iter_mut() {
            match port {
                0 => self.copy(packet),
                _ => self.paste(packet),
            }
        }
    }
}

impl Element for Clipboard {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        self.handle(port, &mut batch);
        ctx.push(port, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        let mut batch = ctx.with_me(self, |ctx| ctx.pull(port, max.min(1)));
        self.handle(port, &mut batch);
        batch
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            let mut stored = old.bytes.iter().flatten();
            let bytes = self.bytes.iter_mut().flatten();
            bytes.for_each(|byte| *byte = stored.next().copied().unwrap_or(0));
        }
    }
}
