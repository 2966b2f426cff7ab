// SPDX-License-Identifier: Apache-2.0
//! Lets packets pass until their bytes reach a number.
//!
//! # Synopsis
//! `Quota(SHARE)`: the bytes that may pass; mandatory. A packet passes if all of it fits. With 0 none passes until
//! `share` is written: several guests can have shares of one quota so. A hot swap keeps what passed, and the share, unless
//! the new configuration has another SHARE than the old one, and it is not 0.
//! # Ports
//! any/same number, agnostic: what passes leaves by the output with the number of its input. What does not fit is dropped.
//! # Handlers
//! * `share` (read, write): reads `SHARE USED`, the bytes that may pass and those that passed. A write is `SHARE`, which
//!   is no desired state, or both. A guest that moves to another host takes both with it.
//! * `refused` (read): packets that did not fit.
//! # Example
//! `FromDevice(0) -> [0] q :: Quota(1000000) [0] -> ToDevice(1); FromDevice(1) -> [1] q [1] -> ToDevice(0);`
use crate::prelude::*;
use crate::standard::share;

pub static ELEMENT: Class = Class {
    name: "Quota",
    ports: "-/=",
    flow: "#/#",
    args: &[mandatory("SHARE")],
    handlers: &[
        read_command(
            "share",
            |me: &mut Quota, _| share::show(me.share, me.used),
            Quota::set_share,
        ),
        read("refused", |me, _| text(me.refused)),
    ],
    build: |a| {
        let share = a.need("SHARE")?;
        Some(Box::new(Quota {
            configured: share,
            share,
            used: 0,
            refused: 0,
        }))
    },
    ..Class::DEFAULT
};

struct Quota {
    /// The share of the configuration.
    configured: u64,
    share: u64,
    used: u64,
    refused: u64,
}

impl Quota {
    fn set_share(&self, _view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let (share, used) = share::parse(value)?;
        Ok(Change::of(move |me: &mut Self, _| {
            (me.share, me.used) = (share, used.unwrap_or(me.used));
        }))
    }
}

impl Quota {
    /// Drops what does not fit.
    fn cut(&mut self, batch: &mut Batch) {
        let left = self.share.saturating_sub(self.used);
        let all: u64 = batch.iter().map(|packet| packet.len() as u64).sum();
        if all <= left {
            self.used = self.used.saturating_add(all);
        } else {
            self.keep_fitting(batch, left);
        }
    }

    #[inline(never)]
    fn keep_fitting(&mut self, batch: &mut Batch, mut left: u64) {
        let mut cursor = batch.cursor_mut();
        while let Some(packet) = cursor.next() {
            let len = packet.len() as u64;
            if len <= left {
                left -= len;
                self.used += len;
                cursor.keep(packet);
            } else {
                self.refused += 1;
            }
        }
    }
}

impl Element for Quota {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        self.cut(&mut batch);
        ctx.push(port, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(port, max);
        self.cut(&mut batch);
        batch
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            let is_new = self.configured != 0 && self.configured != old.configured;
            self.share = if is_new { self.share } else { old.share };
            (self.used, self.refused) = (old.used, old.refused);
        }
    }
}
