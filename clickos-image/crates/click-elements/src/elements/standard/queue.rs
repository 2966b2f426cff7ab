// SPDX-License-Identifier: Apache-2.0
//! Stores packets first in, first out; what does not fit is dropped.
//!
//! # Synopsis
//! `Queue([CAPACITY])`: default 1000 packets.
//! # Ports
//! 1/1-2, push to pull. Output 1 (push) gets what does not fit; it is dropped if it is not connected.
//! # Handlers
//! * `length` (read): packets stored. `highwater_length` (read): the most there ever were.
//! * `capacity` (read, write): CAPACITY; it cannot be less than what is stored.
//! * `drops` (read): packets that did not fit.
//! * `reset_counts` (write): sets `drops` and `highwater_length` to 0.
//! * `reset` (write): drops what is stored.
//! # Example
//! `FromDevice(0) -> q :: Queue(64) -> ToDevice(1);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Queue",
    aliases: &[
        "SimpleQueue",
        "NotifierQueue",
        "FullNoteQueue",
        "QuickNoteQueue",
        "ThreadSafeQueue",
    ],
    ports: "1/1-2",
    processing: "h/lh",
    args: &[optional("CAPACITY")],
    handlers: &[
        read("length"),
        read("highwater_length"),
        read_write("capacity"),
        read("drops"),
        write("reset_counts"),
        write("reset"),
    ],
    build: |a| {
        let capacity = a.or("CAPACITY", 1000)?;
        Some(Box::new(Queue {
            capacity,
            stored: Batch::new(),
            drops: 0,
            highwater: 0,
        }))
    },
    ..Class::DEFAULT
};

struct Queue {
    capacity: usize,
    stored: Batch,
    drops: u64,
    highwater: usize,
}

impl Queue {
    fn signal_state(&self, ctx: &mut Context<'_>) {
        ctx.set_readable(!self.stored.is_empty());
        ctx.set_writable(self.stored.len() < self.capacity);
    }
}

impl Element for Queue {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        let room = self.capacity.saturating_sub(self.stored.len());
        self.stored.extend(batch.drain_front(room));
        self.highwater = self.highwater.max(self.stored.len());
        self.drops += batch.len() as u64;
        self.signal_state(ctx);
        ctx.push(1, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        batch.extend(self.stored.drain_front(max));
        self.signal_state(ctx);
        batch
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "length" => text(self.stored.len()),
            "highwater_length" => text(self.highwater),
            "capacity" => text(self.capacity),
            "drops" => text(self.drops),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "capacity" => {
                let (capacity, stored) = (view.parse::<usize>(value)?, self.stored.len());
                if capacity < stored {
                    return Err(HandlerError::rejected(format!(
                        "{stored} packets are stored, more than {capacity}"
                    )));
                }
                Ok(Change::of(move |me: &mut Self, ctx| {
                    me.capacity = capacity;
                    me.signal_state(ctx);
                }))
            }
            "reset_counts" => {
                on_write(|me: &mut Self, _| (me.drops, me.highwater) = (0, me.stored.len()))
            }
            "reset" => on_write(|me: &mut Self, ctx| {
                me.stored.clear();
                me.signal_state(ctx);
            }),
            _ => undeclared(handler),
        }
    }

    /// Packets and counts move over; what does not fit the new capacity is dropped.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        (self.drops, self.highwater) = (old.drops, old.highwater.min(self.capacity));
        self.stored.extend(old.stored.drain_front(self.capacity));
        self.drops += old.stored.len() as u64;
        self.signal_state(ctx);
    }
}
