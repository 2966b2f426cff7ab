// SPDX-License-Identifier: Apache-2.0
//! The queues by whose lengths an element decides.
use click_core::Store;
use click_core::text::split_words;

use crate::prelude::*;

/// Queues by name, or those around.
pub struct Queues {
    names: Vec<String>,
    stores: Vec<Store>,
}

impl Queues {
    /// Reads QUEUES.
    pub fn argument(a: &mut Args<'_>) -> Option<Self> {
        Some(Self {
            names: split_words(&a.or("QUEUES", String::new())?),
            stores: Vec::new(),
        })
    }

    /// Finds them in the router.
    pub fn find(&mut self, ctx: &Context<'_>) -> Result<(), String> {
        let named = self.names.iter().map(|name| {
            let store = ctx.store(name);
            store.ok_or_else(|| format!("QUEUES: \"{name}\" is not an element that stores packets"))
        });
        self.stores = match self.names.is_empty() {
            true => ctx.nearest_stores(),
            false => named.collect::<Result<_, _>>()?,
        };
        match self.stores.is_empty() {
            true => Err("there is no queue around".to_string()),
            false => Ok(()),
        }
    }

    /// Packets stored in all of them.
    pub fn length(&self, ctx: &Context<'_>) -> usize {
        self.stores.iter().map(|queue| ctx.stored(*queue)).sum()
    }

    /// Their names, one a line.
    pub fn list(&self, ctx: &Context<'_>) -> String {
        let names = self.stores.iter().map(|q| ctx.store_name(*q) + "\n");
        names.collect()
    }
}
