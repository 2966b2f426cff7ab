// SPDX-License-Identifier: Apache-2.0
//! Random early detection (Floyd, Jacobson 1993; gentle variant, Floyd 1997).
use crate::prelude::*;
use crate::standard::probability::Probability;
use crate::standard::queues::Queues;

/// Averages are kept in 1/1024 packets, probabilities in 1/65536.
const SCALE: u32 = 10;
const CERTAIN: u64 = 1 << 16;
/// Interval at which an empty queue enters the average.
const IDLE_STEP_NS: u64 = 20_000_000;
/// After this many steps nothing is left of an average.
const FORGET_STEPS: u64 = 4096;
/// The largest threshold.
pub const MAX: u32 = 0xffff;

/// How packets are chosen.
#[derive(Clone, Copy)]
pub struct Rule {
    pub min_thresh: u32,
    pub max_thresh: u32,
    /// In 1/65536.
    pub max_p: u64,
    pub gentle: bool,
}

/// A probability in 1/65536.
pub fn scaled(p: Probability) -> u64 {
    (p.0 * CERTAIN as f64) as u64
}

impl Rule {
    /// Checks that the thresholds fit each other.
    pub fn check(&self) -> Result<(), String> {
        if self.max_thresh > MAX {
            return Err(format!(
                "MAX_THRESH: {} is out of range, the most is {MAX}",
                self.max_thresh
            ));
        }
        if self.min_thresh > self.max_thresh {
            return Err(format!(
                "MIN_THRESH: {} is more than MAX_THRESH, {}",
                self.min_thresh, self.max_thresh
            ));
        }
        Ok(())
    }

    /// The probability in 1/65536 for an average in 1/1024 packets.
    fn probability(&self, average: u64) -> u64 {
        let at = |packets: u32| u64::from(packets) << SCALE;
        let (min, max) = (at(self.min_thresh), at(self.max_thresh));
        match average {
            _ if average <= min => 0,
            _ if average <= max => between(average, (min, 0), (max, self.max_p)),
            _ if self.gentle => between(average, (max, self.max_p), (2 * max, CERTAIN)),
            _ => CERTAIN,
        }
    }
}

/// The value at `x` on the line through two points; beyond the second what it is there.
fn between(x: u64, (x0, y0): (u64, u64), (x1, y1): (u64, u64)) -> u64 {
    match x1 - x0 {
        0 => y1,
        width => y0 + (x.min(x1) - x0) * (y1 - y0) / width,
    }
}

/// A fraction, in no more decimal places than tell it from its neighbors.
fn decimal(scaled: u64, one: u64) -> f64 {
    let (mut rounded, mut ten) = (scaled / one, 1);
    while (rounded * one + ten / 2) / ten != scaled {
        ten *= 10;
        rounded = (scaled * ten + one / 2) / one;
    }
    rounded as f64 / ten as f64
}

/// An average of queue lengths.
pub struct Average {
    /// In 1/1024 packets.
    scaled: u64,
    /// A new length counts one in two to this power.
    pub stability: u32,
    /// When the queue was found empty last, if it was empty since.
    empty_ns: Option<u64>,
}

impl Average {
    pub fn new(stability: u32) -> Self {
        Self {
            scaled: 0,
            stability,
            empty_ns: None,
        }
    }

    fn step(&mut self, length: u64) {
        let half = (1 << self.stability) >> 1;
        let (new, old) = (length << SCALE, self.scaled);
        self.scaled = match new >= old {
            true => old + ((new - old + half) >> self.stability),
            false => old - ((old - new + half) >> self.stability),
        };
    }

    /// Notes a length.
    fn note(&mut self, length: usize, now_ns: u64) {
        if self.stability == 0 {
            self.scaled = (length as u64) << SCALE;
        } else if length > 0 {
            self.empty_ns = None;
            self.step(length as u64);
        } else {
            let since = self
                .empty_ns
                .map_or(IDLE_STEP_NS, |at| now_ns.saturating_sub(at));
            (0..(since / IDLE_STEP_NS).min(FORGET_STEPS)).for_each(|_| self.step(0));
            let whole = since - since % IDLE_STEP_NS;
            self.empty_ns = Some(self.empty_ns.map_or(now_ns, |at| at + whole));
        }
    }

    /// In whole packets.
    pub fn packets(&self) -> u64 {
        (self.scaled + (1 << SCALE >> 1)) >> SCALE
    }
}

impl core::fmt::Display for Average {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", decimal(self.scaled, 1 << SCALE))
    }
}

/// The element but for what is particular to a class.
pub struct Red {
    pub rule: Rule,
    pub average: Average,
    pub queues: Queues,
    /// Packets since the last one that was dropped.
    count: u64,
    random: u64,
    drops: u64,
    /// Packets of the batch at hand that would be stored when the next one is looked at.
    nearby: usize,
}

/// Reads QUEUES and STABILITY.
pub fn build(a: &mut Args<'_>, rule: Rule) -> Option<Red> {
    let (queues, stability) = (Queues::argument(a), a.or("STABILITY", 4));
    let stability = stability?;
    if stability > 16 {
        a.error(
            "STABILITY",
            format!("{stability} is out of range, the most is 16"),
        );
        return None;
    }
    Some(Red {
        rule,
        average: Average::new(stability),
        queues: queues?,
        count: 0,
        random: 0,
        drops: 0,
        nearby: 0,
    })
}

impl Red {
    fn draw(&mut self, ctx: &mut Context<'_>) {
        self.random = u64::from(ctx.random_u32() >> 5) % CERTAIN;
    }

    /// True if the next packet goes.
    fn chooses(&mut self, ctx: &mut Context<'_>) -> bool {
        let length = self.queues.length(ctx) + self.nearby;
        self.average.note(length, ctx.now_ns());
        match self.rule.probability(self.average.scaled) {
            0 => self.count = 0,
            CERTAIN.. => {
                self.count = 0;
                return true;
            }
            p => {
                self.count += 1;
                if self.count == 1 {
                    self.draw(ctx);
                } else if self.count > self.random / p + 1 {
                    self.draw(ctx);
                    self.count = 1;
                    return true;
                }
            }
        }
        false
    }

    pub fn push(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        self.nearby = 0;
        let (mut kept, mut dropped) = (ctx.batch(), ctx.batch());
        for packet in batch.drain_front(usize::MAX) {
            match self.chooses(ctx) {
                true => dropped.push_back(packet),
                false => {
                    self.nearby += 1;
                    kept.push_back(packet);
                }
            }
        }
        self.drops += dropped.len() as u64;
        ctx.recycle(batch);
        ctx.push(0, kept);
        ctx.push(1, dropped);
    }

    pub fn pull(&mut self, ctx: &mut Context<'_>, max: usize) -> Batch {
        let mut batch = ctx.pull(0, max);
        self.nearby = batch.len();
        let (mut kept, mut dropped) = (ctx.batch(), ctx.batch());
        for packet in batch.drain_front(usize::MAX) {
            self.nearby -= 1;
            match self.chooses(ctx) {
                true => dropped.push_back(packet),
                false => kept.push_back(packet),
            }
        }
        self.drops += dropped.len() as u64;
        ctx.recycle(batch);
        ctx.push(1, dropped);
        kept
    }

    fn stats(&self, ctx: &Context<'_>) -> String {
        format!(
            "{} current queue\n{} avg queue\n{} drops\n",
            self.queues.length(ctx),
            self.average,
            self.drops
        )
    }

    /// The average is what is left of another router's element; under a new configuration all is.
    pub fn take_from(&mut self, ctx: &Context<'_>, old: &Self) {
        self.average.scaled = old.average.scaled;
        if ctx.is_reconfigured() {
            (self.count, self.random, self.drops) = (old.count, old.random, old.drops);
        }
    }
}

/// The handlers of elements that drop packets so.
pub const fn handlers<T: Part<Red>>() -> [Handler<T>; 7] {
    [
        read_write(
            "min_thresh",
            |me, _| text(me.part().rule.min_thresh),
            |me, view, value| {
                let min_thresh = view.parse(value)?;
                change(me, |rule| rule.min_thresh = min_thresh)
            },
        ),
        read_write(
            "max_thresh",
            |me, _| text(me.part().rule.max_thresh),
            |me, view, value| {
                let max_thresh = view.parse(value)?;
                change(me, |rule| rule.max_thresh = max_thresh)
            },
        ),
        read_write(
            "max_p",
            |me, _| text(decimal(me.part().rule.max_p, CERTAIN)),
            |me, view, value| {
                let max_p = scaled(view.parse(value)?);
                change(me, |rule| rule.max_p = max_p)
            },
        ),
        read("avg_queue_size", |me, _| text(&me.part().average)),
        read("drops", |me, _| text(me.part().drops)),
        read("queues", |me, view| Ok(me.part().queues.list(&view.ctx()))),
        read("stats", |me, view| Ok(me.part().stats(&view.ctx()))),
    ]
}

/// The change to the rule that `set` makes, if its values go with each other.
fn change<T: Part<Red>>(me: &T, set: impl FnOnce(&mut Rule)) -> Result<Change, HandlerError> {
    let mut rule = me.part().rule;
    set(&mut rule);
    rule.check().map_err(HandlerError::rejected)?;
    on_write(me, move |me, _| me.part_mut().rule = rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        min_thresh: 10,
        max_thresh: 20,
        max_p: CERTAIN / 4,
        gentle: true,
    };

    #[test]
    fn the_probability_rises_in_two_steps() {
        let p = |packets: u64| RULE.probability(packets << SCALE);
        assert_eq!([p(10), p(15), p(20)], [0, CERTAIN / 8, CERTAIN / 4]);
        assert_eq!([p(30), p(40), p(99)], [CERTAIN * 5 / 8, CERTAIN, CERTAIN]);
        let rough = Rule {
            gentle: false,
            ..RULE
        };
        assert_eq!(rough.probability((20 << SCALE) + 1), CERTAIN);
        let narrow = Rule {
            min_thresh: 20,
            ..RULE
        };
        assert_eq!(narrow.probability(20 << SCALE), 0);
    }

    #[test]
    fn the_average_follows_and_is_forgotten_while_the_queue_is_empty() {
        let mut average = Average::new(2);
        for _ in 0..40 {
            average.note(8, 0);
        }
        assert_eq!(
            average.packets(),
            8,
            "a thousandth less: steps are whole 1024ths"
        );
        average.note(0, 1_000);
        assert_eq!(average.to_string(), "5.999");
        average.note(0, 1_000 + IDLE_STEP_NS - 1);
        assert_eq!(average.to_string(), "5.999", "no step has passed");
        average.note(0, 1_000 + 2 * IDLE_STEP_NS);
        assert_eq!(average.to_string(), "3.374");
        average.note(0, u64::MAX);
        assert_eq!(average.packets(), 0);
    }
}
