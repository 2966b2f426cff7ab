// SPDX-License-Identifier: Apache-2.0
//! Drops packets at random before a queue is full (RED).
//!
//! # Synopsis
//! `RED(MIN_THRESH, MAX_THRESH, MAX_P [, QUEUES, STABILITY, GENTLE])`: by an average of the lengths of QUEUES, names of
//! queues (default: where packets that are pushed are stored, or where those that are pulled come from). At an average
//! of MIN_THRESH packets or less none is dropped, at MAX_THRESH with the probability MAX_P, between them with one between.
//! Above it the probability rises up to 1 at twice MAX_THRESH, or is 1 unless GENTLE (default true). A new length counts
//! one in two to the power of STABILITY (default 4, at most 16; 0: there is no average).
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets what is dropped, if it is connected.
//! # Handlers
//! * `min_thresh`, `max_thresh`, `max_p` (read, write): the arguments.
//! * `avg_queue_size` (read): the average. `drops` (read): packets dropped. `queues` (read): names, one a line.
//! * `stats` (read): length, average and drops.
//! # Differences from Click
//! Probabilities are computed without Click's rounding.
//! # Example
//! `FromDevice(0) -> RED(5, 50, 0.02) -> Queue(200) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::probability::Probability;
use crate::standard::red::{self, Red, Rule, scaled};

pub static ELEMENT: Class = Class {
    name: "RED",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        mandatory("MIN_THRESH"),
        mandatory("MAX_THRESH"),
        mandatory("MAX_P"),
        keyword("QUEUES"),
        keyword("STABILITY"),
        keyword("GENTLE"),
    ],
    handlers: &red::handlers::<EarlyDrop>(),
    build: |a| {
        let (min_thresh, max_thresh) = (a.need("MIN_THRESH"), a.need("MAX_THRESH"));
        let (max_p, gentle) = (a.need::<Probability>("MAX_P"), a.or("GENTLE", true));
        let (max_p, gentle) = (scaled(max_p?), gentle?);
        let rule = Rule {
            min_thresh: min_thresh?,
            max_thresh: max_thresh?,
            max_p,
            gentle,
        };
        if let Err(message) = rule.check() {
            let (name, message) = message.split_once(": ").expect("a name stands in front");
            a.error(name, message);
        }
        Some(Box::new(EarlyDrop(red::build(a, rule)?)))
    },
    live: true,
    ..Class::DEFAULT
};

struct EarlyDrop(Red);

part!(EarlyDrop, 0: Red);

impl Element for EarlyDrop {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.0.queues.find(ctx)
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.0.push(ctx, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        self.0.pull(ctx, max)
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.0.take_from(ctx, &old.0);
        }
    }
}
