// SPDX-License-Identifier: Apache-2.0
//! `Shaper` and `BandwidthShaper`: packets pass with equal gaps.
use crate::prelude::*;
use crate::standard::rated::Unit;
use crate::standard::share;

/// The classes but for their names, ports and `build`.
pub const CLASS: Class = Class {
    processing: "l/l",
    args: &[mandatory("RATE")],
    handlers: &[
        read_write(
            "rate",
            |me: &mut Shaper, _| me.unit.show(me.rate),
            Shaper::set_rate,
        ),
        read_command(
            "share",
            |me, _| share::show(me.rate, me.passed),
            Shaper::set_share,
        ),
        command("reset", run!(|me, _| me.next_ps = None)),
    ],
    ..Class::DEFAULT
};

pub fn build(args: &mut Args<'_>, unit: Unit) -> Built {
    let rate = unit.rate(args)?;
    Some(Box::new(Shaper {
        unit,
        rate,
        next_ps: None,
        passed: 0,
        is_shared: false,
    }))
}

const SECOND_PS: u128 = 1_000_000_000_000;

struct Shaper {
    unit: Unit,
    rate: u64,
    /// When the next packet may pass, in picoseconds; unknown until one is asked for.
    next_ps: Option<u128>,
    /// Units that have passed.
    passed: u64,
    /// True if the rate is a share of a common one.
    is_shared: bool,
}

impl Shaper {
    /// True if a packet may pass now. A late puller makes up for one second at most.
    fn may_pass(&mut self, now_ns: u64) -> bool {
        let now = u128::from(now_ns) * 1000;
        let next = self.next_ps.unwrap_or(now);
        self.next_ps = Some(next.max(now.saturating_sub(SECOND_PS)));
        self.rate > 0 && next <= now
    }

    fn note(&mut self, packet: &Packet) {
        let cost = self.unit.cost(packet);
        self.passed = self.passed.saturating_add(cost);
        let gap = SECOND_PS * u128::from(cost) / u128::from(self.rate.max(1));
        self.next_ps = self.next_ps.map(|next| next + gap);
    }

    /// Has the router run when the next packet may pass.
    fn wait(&self, ctx: &mut Context<'_>) {
        let next = self.next_ps.filter(|_| self.rate > 0);
        if let Some(Ok(at_ns)) = next.map(|next| u64::try_from(next.div_ceil(1000))) {
            ctx.set_timer(at_ns);
        }
    }

    /// The number that may pass.
    fn pull_shaped(&mut self, ctx: &mut Context<'_>, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            if !self.may_pass(ctx.now_ns()) {
                self.wait(ctx);
                break;
            }
            let Some(packet) = ctx.pull_one(0) else { break };
            self.note(&packet);
            batch.push_back(packet);
        }
        batch
    }
}

impl Shaper {
    fn set_rate(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let rate = self.unit.parse(view, value)?;
        Ok(Change::of(move |me: &mut Self, _| {
            (me.rate, me.next_ps) = (rate, None);
        }))
    }

    fn set_share(&self, _view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let (rate, passed) = share::parse(value)?;
        Ok(Change::of(move |me: &mut Self, ctx| {
            me.take_share(ctx.now_ns(), rate);
            me.passed = passed.unwrap_or(me.passed);
        }))
    }

    /// Changes the rate. What the last packet still has to wait for is kept in units, and unused time is
    /// lost, so that changes of the rate let no more pass than the rates do.
    fn take_share(&mut self, now_ns: u64, rate: u64) {
        let now = u128::from(now_ns) * 1000;
        if rate != self.rate {
            let rates = [self.rate, rate].map(|each| u128::from(each.max(1)));
            self.next_ps = self
                .next_ps
                .map(|next| now + next.saturating_sub(now).saturating_mul(rates[0]) / rates[1]);
        }
        (self.rate, self.is_shared) = (rate, true);
    }
}

impl Element for Shaper {
    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        if port == 0 {
            self.pull_shaped(ctx, max)
        } else if self.may_pass(ctx.now_ns()) {
            ctx.batch()
        } else {
            ctx.pull(0, max)
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.passed = old.passed;
            if old.is_shared {
                (self.rate, self.next_ps, self.is_shared) = (old.rate, old.next_ps, true);
            }
        }
    }
}
