// SPDX-License-Identifier: Apache-2.0
//! `RatedSplitter` and `BandwidthRatedSplitter`.
use crate::prelude::*;
use crate::standard::rated::{Rated, Unit};

/// The classes but for their names, arguments and `build`.
pub const CLASS: Class = Class {
    ports: "1/1-2",
    processing: "h/h",
    handlers: &[read_write(
        "rate",
        |me: &mut RatedSplitter, _| me.rated.unit.show(me.rated.bucket.rate()),
        RatedSplitter::set_rate,
    )],
    ..Class::DEFAULT
};

pub fn build(args: &mut Args<'_>, unit: Unit) -> Built {
    Some(Box::new(RatedSplitter {
        rated: Rated::from_args(args, unit)?,
    }))
}

struct RatedSplitter {
    rated: Rated,
}

impl InPlace for RatedSplitter {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        self.rated.bucket.refill(ctx.now_ns());
        usize::from(!self.rated.admit(packet))
    }
}

impl RatedSplitter {
    fn set_rate(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let rate = self.rated.unit.parse(view, value)?;
        Ok(Change::of(move |me: &mut Self, _| me.rated.set_rate(rate)))
    }
}

impl Element for RatedSplitter {
    in_place!();

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.rated.take_level(&old.rated);
        }
    }
}
