// SPDX-License-Identifier: Apache-2.0
//! Makes random numbers come in a certain order.
//!
//! # Synopsis
//! `RandomSeed([SEED])`: what is drawn for packets and scripts follows from SEED, a number, as it does in Click with
//! the GNU C library; keys of tables do not. Without SEED nothing changes: the order cannot be foreseen anyway.
//! # Ports
//! 0/0.
//! # Handlers
//! * `seed` (read, write): SEED; an empty value makes the order one that cannot be foreseen again.
//! # Differences from Click
//! Packets and scripts draw the numbers of Click with the GNU C library. After a seed RandomSample,
//! RandomSwitch, RandomSource, RED, SetRandIPAddress, rewriters' ports and `random` of scripts
//! behave as in Click; RandomBitErrors does not.
//! # Example
//! `RandomSeed(7); FromDevice(0) -> RandomSample(0.5) -> ToDevice(1);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "RandomSeed",
    ports: "0/0",
    args: &[optional("SEED")],
    handlers: &[read_write("seed", |me, _| me.show(), RandomSeed::set)],
    build: |a| {
        Some(Box::new(RandomSeed {
            seed: a.opt("SEED")?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct RandomSeed {
    seed: Option<u32>,
}

impl RandomSeed {
    fn show(&self) -> Text {
        self.seed.map_or_else(|| text(""), text)
    }

    fn set(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let seed = match value {
            "" => None,
            _ => Some(view.parse(value)?),
        };
        Ok(Change::of(move |me: &mut Self, ctx| {
            me.seed = seed;
            ctx.set_random_seed(seed);
        }))
    }
}

impl Element for RandomSeed {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        if let Some(seed) = self.seed {
            ctx.set_random_seed(Some(seed));
        }
        Ok(())
    }
}
