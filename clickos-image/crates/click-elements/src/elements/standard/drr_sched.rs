// SPDX-License-Identifier: Apache-2.0
//! Pulls from its inputs so that each gets the same share of bytes (deficit round robin, Shreedhar and
//! Varghese 1995).
//!
//! # Synopsis
//! `DRRSched([QUANTUM])`: bytes an input may send more with each round (default 500).
//! # Ports
//! any/1, pull. It holds one packet per input at most.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Runs rounds in which no packet fits without waiting for the next pull.
//! # Example
//! `Queue -> [0] d :: DRRSched -> ToDevice(0); Queue -> [1] d;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "DRRSched",
    ports: "-/1",
    processing: "l/l",
    args: &[optional("QUANTUM")],
    build: |a| {
        let (quantum, inputs) = (a.or("QUANTUM", 500u32)?, a.inputs());
        if quantum == 0 {
            a.error("QUANTUM", "expected at least 1, got 0");
        }
        Some(Box::new(DRRSched {
            quantum: quantum as usize,
            inputs: (0..inputs).map(|_| Input::default()).collect(),
            next: 0,
        }))
    },
    ..Class::DEFAULT
};

#[derive(Default)]
struct Input {
    /// Pulled, but too long for the deficit.
    head: Option<Packet>,
    deficit: usize,
}

struct DRRSched {
    quantum: usize,
    inputs: Vec<Input>,
    next: usize,
}

impl DRRSched {
    /// Appends the packets that the input may send whose turn it is; the turn is over unless the batch has `max`.
    fn serve(&mut self, ctx: &mut Context<'_>, batch: &mut Batch, max: usize) {
        let input = &mut self.inputs[self.next];
        if input.head.is_none() {
            let most = max - batch.len();
            input.deficit -= ctx.pull_fitting(self.next, most, input.deficit, batch);
        }
        while batch.len() < max {
            match input.head.take().or_else(|| ctx.pull_one(self.next)) {
                Some(packet) if packet.len() <= input.deficit => {
                    input.deficit -= packet.len();
                    batch.push_back(packet);
                    continue;
                }
                None => input.deficit = 0,
                longer => input.head = longer,
            }
            self.next = (self.next + 1) % self.inputs.len();
            self.inputs[self.next].deficit += self.quantum;
            return;
        }
    }

    /// Asks each input once, beginning with the one whose turn it is, until one sends; true if one did.
    fn round(&mut self, ctx: &mut Context<'_>, batch: &mut Batch, max: usize) -> bool {
        let before = batch.len();
        for _ in 0..self.inputs.len() {
            self.serve(ctx, batch, max);
            if batch.len() > before {
                return true;
            }
        }
        false
    }

    /// Does at once the rounds in which no packet could be sent; false if there is no packet.
    fn skip_rounds(&mut self) -> bool {
        let missing = |i: &Input| Some(i.head.as_ref()?.len().saturating_sub(i.deficit));
        let least = self.inputs.iter().filter_map(missing).min();
        let Some(least) = least else { return false };
        let rounds = least.div_ceil(self.quantum).saturating_sub(1);
        for input in self.inputs.iter_mut().filter(|i| i.head.is_some()) {
            input.deficit += rounds * self.quantum;
        }
        true
    }

    /// Appends the next packets; false if there is not one.
    fn pull_next(&mut self, ctx: &mut Context<'_>, batch: &mut Batch, max: usize) -> bool {
        // after the skipped rounds one is enough, but for the input whose quantum came late
        for _ in 0..3 {
            if self.round(ctx, batch, max) {
                return true;
            }
            if !self.skip_rounds() {
                return false;
            }
        }
        false
    }

    fn has_packet(&mut self, ctx: &mut Context<'_>) -> bool {
        let held = self.inputs.iter().any(|i| i.head.is_some());
        // test every input: each has to wake this element when it gets a packet
        (0..self.inputs.len()).fold(held, |any, input| ctx.readable(input) || any)
    }
}

impl Element for DRRSched {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_readable(true);
        Ok(())
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max && self.pull_next(ctx, &mut batch, max) {}
        let readable = self.has_packet(ctx);
        ctx.set_readable(readable);
        batch
    }

    /// An input that was empty has something.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        ctx.set_readable(true);
        false
    }

    /// It has packets its inputs do not have any more.
    fn signal(&self) -> Signal {
        Signal::Own
    }
}
