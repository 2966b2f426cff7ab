// SPDX-License-Identifier: Apache-2.0
//! `Meter` and `BandwidthMeter`: the rate of the stream chooses the output.
use crate::prelude::*;
use crate::standard::average::{Average, decimal};
use crate::standard::bandwidth::Bandwidth;
use crate::standard::rated::Unit;

/// The classes but for their names and `build`.
pub const CLASS: Class = Class {
    ports: "1/2-",
    processing: "h/h",
    args: &[rest("RATE")],
    handlers: &[
        read("rate", |me: &mut Meter, view| {
            decimal(me.rate.milli_at(view.now_ns()))
        }),
        read("meters", |me, _| me.meters_text()),
    ],
    ..Class::DEFAULT
};

pub fn build(args: &mut Args<'_>, unit: Unit) -> Built {
    let (given, outputs) = (args.rest().to_vec(), args.outputs());
    let meters: Vec<Option<Bandwidth>> = given.iter().map(|r| args.parse("RATE", r)).collect();
    let meters: Vec<u64> = meters
        .into_iter()
        .map(|m| m.map(|m| m.0))
        .collect::<Option<_>>()?;
    if meters.len() + 1 != outputs {
        let needed = outputs - 1;
        args.error(
            "RATE",
            format!(
                "{needed} needed, one less than outputs, got {}",
                meters.len()
            ),
        );
    } else if meters.windows(2).any(|pair| pair[0] >= pair[1]) {
        args.error("RATE", "each must be more than the one before");
    }
    Some(Box::new(Meter {
        unit,
        meters,
        rate: Average::default(),
    }))
}

struct Meter {
    unit: Unit,
    meters: Vec<u64>,
    rate: Average,
}

impl Meter {
    fn meters_text(&self) -> Text {
        text(
            self.meters
                .iter()
                .map(|m| format!("{m}\n"))
                .collect::<String>(),
        )
    }
}

impl Element for Meter {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let now = ctx.now_ns();
        let amount = batch.iter().map(|p| self.unit.cost(p)).sum();
        self.rate.add(now, amount);
        let rate = self.rate.milli_at(now);
        let reached = |meter: &&u64| rate >= meter.saturating_mul(1000);
        ctx.push(self.meters.iter().take_while(reached).count(), batch);
    }
}
