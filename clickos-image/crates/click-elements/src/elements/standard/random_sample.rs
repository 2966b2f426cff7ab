// SPDX-License-Identifier: Apache-2.0
//! Lets a random part of the packets pass.
//!
//! # Synopsis
//! `RandomSample([P, SAMPLE, DROP, ACTIVE])`: each packet passes with probability P, which may be given as
//! SAMPLE P, or as DROP with the probability that it does not pass; one of them is needed.
//! Unless ACTIVE (default true) all packets pass.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets the others; they are dropped if it is not connected.
//! # Handlers
//! * `sampling_prob`, `drop_prob` (read, write): the probability to pass, or not to pass.
//! * `active` (read, write): ACTIVE.
//! * `drops` (read): packets that did not pass.
//! # Example
//! `FromDevice(0) -> RandomSample(DROP 0.01) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::probability::Probability;

pub static ELEMENT: Class = Class {
    name: "RandomSample",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        optional("P"),
        keyword("SAMPLE"),
        keyword("DROP"),
        keyword("ACTIVE"),
    ],
    handlers: &[
        read_write(
            "sampling_prob",
            |me: &mut RandomSample, _| text(me.sampling),
            set!(|me, p, _| me.sampling = p),
        ),
        read_write(
            "drop_prob",
            |me, _| text(me.sampling.complement()),
            set!(|me, p: Probability, _| {
                me.sampling = p.complement();
            }),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, _| me.active = active),
        ),
        read("drops", |me, _| text(me.drops)),
    ],
    build: |a| {
        let (p, sample) = (a.opt("P"), a.opt("SAMPLE"));
        let (drop, active) = (a.opt::<Probability>("DROP"), a.or("ACTIVE", true));
        let drop = drop?.map(Probability::complement);
        let sampling = match (p?, sample?, drop) {
            (Some(p), None, None) | (None, Some(p), None) | (None, None, Some(p)) => p,
            (p, sample, drop) => {
                let got = [p, sample, drop].iter().flatten().count();
                a.error(
                    "P",
                    format!("expected one of P, SAMPLE and DROP, got {got}"),
                );
                return None;
            }
        };
        Some(Box::new(RandomSample {
            sampling,
            active: active?,
            drops: 0,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct RandomSample {
    sampling: Probability,
    active: bool,
    drops: u64,
}

impl InPlace for RandomSample {
    fn output_port(&mut self, ctx: &mut Context<'_>, _packet: &mut Packet) -> usize {
        if !self.active || self.sampling.happens(ctx.random_u32()) {
            return 0;
        }
        self.drops += 1;
        1
    }
}

impl Element for RandomSample {
    in_place!();

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.drops = old.drops;
        }
    }
}
