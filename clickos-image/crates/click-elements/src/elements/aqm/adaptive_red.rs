// SPDX-License-Identifier: Apache-2.0
//! Drops packets at random before a queue is full, and finds out how many that have to be (Adaptive RED).
//!
//! # Synopsis
//! `AdaptiveRED(TARGET, MAX_P [, QUEUES, STABILITY])`: as `RED` with the thresholds TARGET/2 and 3/2 TARGET; a TARGET below
//! 10 counts as 10. Every half second MAX_P becomes smaller, if the average length is well below TARGET, or larger, if it
//! is well above; it stays between 0.01 and 0.5.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets what is dropped, if it is connected.
//! # Handlers
//! * `min_thresh`, `max_thresh`, `max_p` (read, write): what is in force.
//! * `avg_queue_size` (read): the average. `drops` (read): packets dropped. `queues` (read): names, one a line.
//! * `stats` (read): length, average and drops.
//! # Differences from Click
//! Probabilities are computed without Click's rounding.
//! # Example
//! `FromDevice(0) -> AdaptiveRED(50, 0.02) -> Queue(200) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::probability::Probability;
use crate::standard::red::{self, MAX, Red, Rule, scaled};

pub static ELEMENT: Class = Class {
    name: "AdaptiveRED",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        mandatory("TARGET"),
        mandatory("MAX_P"),
        keyword("QUEUES"),
        keyword("STABILITY"),
    ],
    handlers: &red::handlers::<AdaptiveRED>(),
    build: |a| {
        let (target, max_p) = (a.need::<u32>("TARGET"), a.need::<Probability>("MAX_P"));
        let target = target?.max(MIN_TARGET);
        if target > MAX_TARGET {
            a.error(
                "TARGET",
                format!("{target} is out of range, the most is {MAX_TARGET}"),
            );
            return None;
        }
        let rule = Rule {
            min_thresh: target / 2,
            max_thresh: target + target / 2,
            max_p: scaled(max_p?),
            gentle: true,
        };
        Some(Box::new(AdaptiveRED(red::build(a, rule)?)))
    },
    live: true,
    ..Class::DEFAULT
};

const MIN_TARGET: u32 = 10;
const MAX_TARGET: u32 = MAX / 3 * 2;
const INTERVAL_NS: u64 = 500_000_000;
/// Bounds of MAX_P, in 1/65536.
const ONE_HUNDREDTH: u64 = 655;
const HALF: u64 = 0x8000;

struct AdaptiveRED(Red);

impl AdaptiveRED {
    /// Additive increase, multiplicative decrease (Floyd, Gummadi, Shenker 2001).
    fn adapt(&mut self, average: u64) {
        let rule = &mut self.0.rule;
        let quarter = u64::from((rule.max_thresh - rule.min_thresh) / 2);
        let (low, high) = (
            u64::from(rule.min_thresh) + quarter,
            u64::from(rule.max_thresh) - quarter,
        );
        if average < low && rule.max_p > ONE_HUNDREDTH {
            rule.max_p = rule.max_p * 9 / 10;
        } else if average > high && rule.max_p < HALF {
            rule.max_p += ONE_HUNDREDTH.min(rule.max_p / 4);
        }
    }
}

part!(AdaptiveRED, 0: Red);

impl Element for AdaptiveRED {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_timer(ctx.now_ns().saturating_add(INTERVAL_NS));
        self.0.queues.find(ctx)
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.0.push(ctx, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        self.0.pull(ctx, max)
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let average = match self.0.average.stability {
            0 => self.0.queues.length(ctx) as u64,
            _ => self.0.average.packets(),
        };
        self.adapt(average);
        ctx.set_timer(ctx.now_ns().saturating_add(INTERVAL_NS));
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.0.take_from(ctx, &old.0);
        }
    }
}
