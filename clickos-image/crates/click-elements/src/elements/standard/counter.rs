// SPDX-License-Identifier: Apache-2.0
//! Counts packets and bytes and measures their rates.
//!
//! # Synopsis
//! `Counter`
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `count`, `byte_count` (read): packets and bytes since the last reset.
//! * `rate`, `byte_rate`, `bit_rate` (read): a second, averaged over about two seconds.
//! * `reset`, `reset_counts` (write): set everything to 0.
//! # Example
//! `FromDevice(0) -> in :: Counter -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Counter",
    handlers: &[
        read("count"),
        read("byte_count"),
        read("rate"),
        read("byte_rate"),
        read("bit_rate"),
        write("reset"),
        write("reset_counts"),
    ],
    build: |_| Some(Box::new(Counter::default())),
    ..Class::DEFAULT
};

#[derive(Default)]
struct Counter {
    count: u64,
    bytes: u64,
    packet_rate: Rate,
    byte_rate: Rate,
}

const SECOND: u64 = 1_000_000_000;

/// An exponentially weighted average of what comes in a second, in thousandths.
#[derive(Clone, Copy, Default)]
struct Rate {
    milli: u64,
    period_start_ns: u64,
    in_period: u64,
}

/// Length of one sample.
const PERIOD_NS: u64 = SECOND / 10;
/// A new sample counts one sixteenth.
const WEIGHT: u64 = 16;
/// After this many empty samples nothing is left of the average.
const FORGET_PERIODS: u64 = 256;

impl Rate {
    fn add(&mut self, now_ns: u64, amount: u64) {
        self.close_periods(now_ns);
        self.in_period += amount;
    }

    fn close_periods(&mut self, now_ns: u64) {
        let periods = now_ns.saturating_sub(self.period_start_ns) / PERIOD_NS;
        if periods == 0 {
            return;
        }
        let sample = self.in_period.saturating_mul(1000) * (SECOND / PERIOD_NS);
        self.milli = (self.milli * (WEIGHT - 1)).saturating_add(sample) / WEIGHT;
        for _ in 1..periods.min(FORGET_PERIODS) {
            self.milli = self.milli * (WEIGHT - 1) / WEIGHT;
        }
        if periods > FORGET_PERIODS {
            self.milli = 0;
        }
        self.in_period = 0;
        self.period_start_ns += periods * PERIOD_NS;
    }

    fn milli_at(mut self, now_ns: u64) -> u64 {
        self.close_periods(now_ns);
        self.milli
    }
}

fn decimal(milli: u64) -> Text {
    text(format!("{}.{:03}", milli / 1000, milli % 1000))
}

impl Counter {
    fn note(&mut self, now_ns: u64, batch: &Batch) {
        let bytes: u64 = batch.iter().map(|p| p.len() as u64).sum();
        self.count += batch.len() as u64;
        self.bytes += bytes;
        self.packet_rate.add(now_ns, batch.len() as u64);
        self.byte_rate.add(now_ns, bytes);
    }
}

impl Element for Counter {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.note(ctx.now_ns(), &batch);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let batch = ctx.pull(0, max);
        self.note(ctx.now_ns(), &batch);
        batch
    }

    fn read(&self, view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "count" => text(self.count),
            "byte_count" => text(self.bytes),
            "rate" => decimal(self.packet_rate.milli_at(view.now_ns)),
            "byte_rate" => decimal(self.byte_rate.milli_at(view.now_ns)),
            "bit_rate" => decimal(self.byte_rate.milli_at(view.now_ns).saturating_mul(8)),
            _ => undeclared(handler),
        }
    }

    fn write(&self, _view: &View<'_>, handler: &str, _value: &str) -> Result<Change, HandlerError> {
        match handler {
            "reset" | "reset_counts" => on_write(|me: &mut Self, _| *me = Self::default()),
            _ => undeclared(handler),
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            *self = core::mem::take(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_approaches_what_comes_in_and_is_forgotten() {
        let mut rate = Rate::default();
        for ms in 0..10_000 {
            rate.add(ms * 1_000_000, 5);
        }
        assert!(
            (4900..=5000).contains(&(rate.milli_at(10 * SECOND) / 1000)),
            "{}",
            rate.milli
        );
        assert_eq!(rate.milli_at(100 * SECOND), 0);
    }
}
