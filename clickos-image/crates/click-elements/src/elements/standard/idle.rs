// SPDX-License-Identifier: Apache-2.0
//! Discards what is pushed into it, and never gives a packet.
//!
//! # Synopsis
//! `Idle`; `SimpleIdle` is the same class.
//! # Ports
//! any/any, agnostic; it serves as a plug for ports that are not used.
//! # Handlers
//! None of its own.
//! # Example
//! `Idle -> [1] arp; Idle -> Queue -> Idle;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Idle",
    aliases: &["SimpleIdle"],
    ports: "-/-",
    flow: "x/y",
    build: |_| Some(Box::new(Idle)),
    ..Class::DEFAULT
};

struct Idle;

impl Element for Idle {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        ctx.recycle(batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, _max: usize) -> Batch {
        ctx.batch()
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn tells_when_empty(&self) -> bool {
        true
    }

    /// Never readable, always writable: an element that pulls from it sleeps forever.
    fn signal(&self) -> Signal {
        Signal::Own
    }
}
