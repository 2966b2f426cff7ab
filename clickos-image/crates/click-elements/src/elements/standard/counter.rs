// SPDX-License-Identifier: Apache-2.0
//! Counts packets and bytes and measures their rates.
//!
//! # Synopsis
//! `Counter([COUNT_CALL, BYTE_COUNT_CALL])`: each is `N HANDLER VALUE`; VALUE is written to HANDLER once when the
//! count of packets, or of bytes, reaches N: before that packet leaves. CounterMP is another name for it.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `count`, `byte_count` (read, write): packets and bytes since the last reset; a guest that moves to another host
//!   continues counting where it was.
//! * `count_call`, `byte_count_call` (read, write): the arguments, of which the count is read; a count alone can be
//!   written, too. The call is made when the count gets there again.
//! * `rate`, `byte_rate`, `bit_rate` (read): a second, averaged over about two seconds.
//! * `reset`, `reset_counts` (write): set everything to 0.
//! # Differences from Click
//! Rates are averages over about two seconds; `count` and `byte_count` can also be written.
//! # Example
//! `FromDevice(0) -> in :: Counter -> Discard;`
use crate::handler_call::CountCall;
use crate::prelude::*;
use crate::standard::average::{Average, decimal};

pub static ELEMENT: Class = Class {
    name: "Counter",
    aliases: &["CounterMP"],
    args: &[keyword("COUNT_CALL"), keyword("BYTE_COUNT_CALL")],
    handlers: &[
        read_command(
            "count",
            |me: &mut Counter, _| text(me.count),
            set!(|me, count, _| me.count = count),
        ),
        read_command(
            "byte_count",
            |me, _| text(me.bytes),
            set!(|me, bytes, _| me.bytes = bytes),
        ),
        read("rate", |me, view| {
            decimal(me.packet_rate.milli_at(view.now_ns()))
        }),
        read("byte_rate", |me, view| {
            decimal(me.byte_rate.milli_at(view.now_ns()))
        }),
        read("bit_rate", |me, view| {
            decimal(me.byte_rate.milli_at(view.now_ns()).saturating_mul(8))
        }),
        read_write(
            "count_call",
            |me, _| shown(me.count_call.as_ref()),
            |me, view, value| {
                let call = written(me.count_call.as_ref(), view, value)?;
                Ok(Change::of(move |me: &mut Counter, _| me.count_call = call))
            },
        ),
        read_write(
            "byte_count_call",
            |me, _| shown(me.byte_count_call.as_ref()),
            |me, view, value| {
                let call = written(me.byte_count_call.as_ref(), view, value)?;
                Ok(Change::of(move |me: &mut Counter, _| {
                    me.byte_count_call = call
                }))
            },
        ),
        command("reset", run!(|me, _| me.reset())),
        command("reset_counts", run!(|me, _| me.reset())),
    ],
    build: |a| {
        let (count_call, byte_count_call) = (a.opt("COUNT_CALL"), a.opt("BYTE_COUNT_CALL"));
        Some(Box::new(Counter {
            count_call: count_call?,
            byte_count_call: byte_count_call?,
            ..Counter::default()
        }))
    },
    ..Class::DEFAULT
};

#[derive(Default)]
struct Counter {
    count: u64,
    bytes: u64,
    packet_rate: Average,
    byte_rate: Average,
    count_call: Option<CountCall>,
    byte_count_call: Option<CountCall>,
}

impl Counter {
    #[inline]
    fn note(&mut self, ctx: &mut Context<'_>, batch: &Batch) {
        let now_ns = ctx.now_ns();
        let bytes: u64 = batch.iter().map(|p| p.len() as u64).sum();
        self.count += batch.len() as u64;
        self.bytes += bytes;
        self.packet_rate.add(now_ns, batch.len() as u64);
        self.byte_rate.add(now_ns, bytes);
    }

    #[inline]
    fn has_calls(&self) -> bool {
        self.count_call.is_some() || self.byte_count_call.is_some()
    }

    /// Packets and bytes until the calls; `None` of a call that was made.
    fn left(&self) -> (Option<u64>, Option<u64>) {
        let left = |call: &Option<CountCall>, count| call.as_ref()?.left(count);
        (
            left(&self.count_call, self.count),
            left(&self.byte_count_call, self.bytes),
        )
    }

    /// Packets in front of the first one that leads to a call.
    fn free(&self, batch: &Batch) -> usize {
        let (packets, bytes) = self.left();
        let mut left = bytes.unwrap_or(u64::MAX);
        let mut fits = |packet: &Packet| {
            left = left.saturating_sub(packet.len() as u64);
            left > 0
        };
        let free = batch.iter().take_while(|p| fits(p)).count();
        let most = packets.map_or(usize::MAX, |n| usize::try_from(n - 1).unwrap_or(usize::MAX));
        free.min(most)
    }

    /// Counts packets, and asks for the calls whose counts are reached with them.
    fn note_with_calls(&mut self, ctx: &mut Context<'_>, batch: &Batch) {
        let before = self.left();
        self.note(ctx, batch);
        let after = self.left();
        if before.0.is_some() && after.0.is_none() {
            self.count_call
                .iter()
                .for_each(|c| c.call().make_later(ctx));
        }
        if before.1.is_some() && after.1.is_none() {
            let calls = self.byte_count_call.iter();
            calls.for_each(|c| c.call().make_later(ctx));
        }
    }

    /// As `push`: a call comes after the packets before its own one, and in front of that.
    fn push_with_calls(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        let mut first = ctx.batch();
        let count = self.free(&batch).max(1);
        first.append_front(&mut batch, count);
        self.note_with_calls(ctx, &first);
        ctx.push(0, first);
        ctx.push_again(port, batch);
    }

    /// Forgets what was counted.
    fn reset(&mut self) {
        *self = Self {
            count_call: self.count_call.take(),
            byte_count_call: self.byte_count_call.take(),
            ..Self::default()
        };
    }
}

/// The count alone, as with Click.
fn shown(call: Option<&CountCall>) -> Text {
    text(call.map_or_else(String::new, |call| call.count().to_string()))
}

/// What is shown can be written: a count alone is a new one of the call.
fn written(
    known: Option<&CountCall>,
    view: &View<'_>,
    value: &str,
) -> Result<Option<CountCall>, HandlerError> {
    match (known, value.split_whitespace().count()) {
        (None, 0) => Ok(None),
        (Some(call), 1) => Ok(Some(call.clone().at(view.parse(value)?))),
        _ => view.parse(value).map(Some),
    }
}

impl Element for Counter {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let calls = [&self.count_call, &self.byte_count_call];
        calls
            .into_iter()
            .flatten()
            .try_for_each(|c| c.call().check(ctx))
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        if self.has_calls() {
            return self.push_with_calls(ctx, port, batch);
        }
        self.note(ctx, &batch);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        if !self.has_calls() {
            let batch = ctx.pull(0, max);
            self.note(ctx, &batch);
            return batch;
        }
        let most = match self.left() {
            (None, None) => max,
            (Some(packets), None) => max.min(usize::try_from(packets).unwrap_or(max)),
            (_, Some(_)) => 1,
        };
        let batch = ctx.pull(0, most);
        self.note_with_calls(ctx, &batch);
        batch
    }

    fn is_plain(&self) -> bool {
        !self.has_calls()
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            let calls = (self.count_call.take(), self.byte_count_call.take());
            *self = core::mem::take(old);
            (self.count_call, self.byte_count_call) = calls;
        }
    }
}
