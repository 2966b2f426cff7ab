// SPDX-License-Identifier: Apache-2.0
//! Adds bytes to packets, or removes some, in front and behind.
//!
//! # Synopsis
//! `Resize([HEAD, TAIL])`: bytes added in front and behind, both 0 unless given;
//! negative numbers remove bytes. Added bytes are zero after the data; in front they are the bytes
//! stripped there before, if any.
//! # Ports
//! 1/1, agnostic. Packets that would become too long are dropped.
//! # Handlers
//! * `head`, `tail` (read, write): the arguments.
//! # Example
//! `FromDevice(0) -> Resize(-14, 4) -> Discard;`
use click_core::ArgContext;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Resize",
    args: &[optional("HEAD"), optional("TAIL")],
    handlers: &[
        read_write(
            "head",
            |me: &mut Resize, _| text(me.head.0),
            set!(|me, head, _| me.head = head),
        ),
        read_write(
            "tail",
            |me, _| text(me.tail.0),
            set!(|me, tail, _| me.tail = tail),
        ),
    ],
    build: |a| {
        let (head, tail) = (a.or("HEAD", Bytes(0)), a.or("TAIL", Bytes(0)));
        Some(Box::new(Resize {
            head: head?,
            tail: tail?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

/// A count of bytes to add, or with a minus to remove.
#[derive(Clone, Copy)]
struct Bytes(i64);

const MAX: i64 = click_core::MAX_PACKET as i64;

impl FromArg for Bytes {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let count = i64::from_arg(text.strip_prefix('+').unwrap_or(text), at)?;
        if (-MAX..=MAX).contains(&count) {
            return Ok(Self(count));
        }
        Err(format!("{count} is out of range -{MAX} to {MAX}"))
    }
}

struct Resize {
    head: Bytes,
    tail: Bytes,
}

/// Splits into bytes to add and bytes to remove.
fn parts(Bytes(count): Bytes) -> (usize, usize) {
    let size = usize::try_from(count.unsigned_abs()).expect("at most MAX");
    match count {
        0.. => (size, 0),
        _ => (0, size),
    }
}

impl Resize {
    fn resize(&self, packet: &mut Packet) -> bool {
        let (add, remove) = parts(self.head);
        if !packet.push(add) {
            return false;
        }
        packet.pull(remove);
        let (add, remove) = parts(self.tail);
        packet.take(remove);
        packet.len() + add <= click_core::MAX_PACKET && packet.put(add)
    }
}

impl InPlace for Resize {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(self.resize(packet))
    }
}

impl Element for Resize {
    in_place!(plain);
}
