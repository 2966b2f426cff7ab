// SPDX-License-Identifier: Apache-2.0
//! Damages packets bit by bit.
//!
//! # Synopsis
//! `RandomBitErrors(P [, KIND, ACTIVE])`: each bit is hit with probability P; KIND says what becomes of it:
//! `flip` (default), `set` or `clear`. Unless ACTIVE (default true) nothing is damaged.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `p_bit_error`, `error_kind`, `active` (read, write): the arguments.
//! # Example
//! `FromDevice(0) -> RandomBitErrors(0.0001) -> ToDevice(1);`
use click_core::ArgContext;

use crate::prelude::*;
use crate::standard::probability::Probability;

pub static ELEMENT: Class = Class {
    name: "RandomBitErrors",
    args: &[mandatory("P"), optional("KIND"), optional("ACTIVE")],
    handlers: &[
        read_write(
            "p_bit_error",
            |me: &mut RandomBitErrors, _| text(me.p),
            set!(|me, p, _| me.set_p(p)),
        ),
        read_write(
            "error_kind",
            |me, _| text(me.kind.name()),
            set!(|me, kind, _| me.kind = kind),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, _| me.active = active),
        ),
    ],
    build: |a| {
        let (p, kind) = (a.need("P"), a.or("KIND", Kind::Flip));
        let active = a.or("ACTIVE", true);
        let mut element = RandomBitErrors {
            p: p?,
            kind: kind?,
            active: active?,
            first_error: [0; 8],
        };
        element.set_p(element.p);
        Some(Box::new(element))
    },
    live: true,
    ..Class::DEFAULT
};

/// The effect of an error on a bit.
#[derive(Clone, Copy)]
enum Kind {
    Clear,
    Set,
    Flip,
}

const KINDS: [(&str, Kind); 3] = [
    ("clear", Kind::Clear),
    ("set", Kind::Set),
    ("flip", Kind::Flip),
];

impl Kind {
    fn name(self) -> &'static str {
        KINDS[self as usize].0
    }
}

impl FromArg for Kind {
    fn from_arg(arg: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let word = String::from_arg(arg, at)?;
        let kind = KINDS.iter().find(|(name, _)| *name == word);
        kind.map(|(_, kind)| *kind)
            .ok_or_else(|| format!("expected clear, set or flip, got \"{}\"", arg.shown()))
    }
}

struct RandomBitErrors {
    p: Probability,
    kind: Kind,
    active: bool,
    /// Of 2^32 random numbers those below `first_error[n]` hit one of the bits 0 to `n` of a byte.
    first_error: [u64; 8],
}

impl RandomBitErrors {
    fn set_p(&mut self, p: Probability) {
        self.p = p;
        let mut none = 1.0;
        for limit in &mut self.first_error {
            none *= 1.0 - p.0;
            *limit = ((1.0 - none) * 4_294_967_296.0) as u64;
        }
    }

    /// The bits of one byte that are hit: one random number for most bytes, which are not.
    fn hit(&self, ctx: &mut Context<'_>) -> u8 {
        let random = ctx.random() >> 32;
        let Some(first) = self.first_error.iter().position(|limit| random < *limit) else {
            return 0;
        };
        let later = (first + 1..8).filter(|_| self.p.happens(ctx.random_u32()));
        later.fold(1 << first, |bits, bit| bits | 1 << bit)
    }
}

impl InPlace for RandomBitErrors {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !self.active || self.p.0 == 0.0 {
            return 0;
        }
        for byte in packet.data_mut() {
            let bits = self.hit(ctx);
            match self.kind {
                Kind::Clear => *byte &= !bits,
                Kind::Set => *byte |= bits,
                Kind::Flip => *byte ^= bits,
            }
        }
        0
    }
}

impl Element for RandomBitErrors {
    in_place!();
}
