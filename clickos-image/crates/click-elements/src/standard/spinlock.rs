// SPDX-License-Identifier: Apache-2.0
//! Locks by name. There is one thread, so they are never waited for.
use click_core::ArgContext;
use click_core::text::unquote;

use crate::prelude::*;

/// The definition of lock names.
pub const KIND: &str = "spinlock";

/// A class that takes or gives back a lock, but for its name.
pub const CLASS: Class = Class {
    args: &[mandatory("LOCK")],
    build: |a| {
        a.need::<Lock>("LOCK")?;
        Some(Box::new(Pass))
    },
    ..Class::DEFAULT
};

/// The name of a lock.
struct Lock;

impl FromArg for Lock {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let named = at.names.find(at.element, &unquote(text));
        match named.is_some_and(|n| n.meanings.contains_key(KIND)) {
            true => Ok(Self),
            false => Err(format!("no lock \"{}\"", text.shown())),
        }
    }
}

struct Pass;

impl Element for Pass {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        ctx.pull(0, max)
    }
}
