// SPDX-License-Identifier: Apache-2.0
//! The queues by whose lengths an element decides.
use click_core::StorageRef;
use click_core::text::split_words;

use crate::prelude::*;

/// Queues by name, or those around.
pub struct Queues {
    names: Vec<String>,
    storage: Vec<StorageRef>,
}

impl Queues {
    /// Reads QUEUES.
    pub fn argument(a: &mut Args<'_>) -> Option<Self> {
        Some(Self {
            names: split_words(&a.or("QUEUES", String::new())?),
            storage: Vec::new(),
        })
    }

    /// Finds them in the router.
    pub fn find(&mut self, ctx: &Context<'_>) -> Result<(), String> {
        let named = self.names.iter().map(|name| {
            let storage = ctx.storage(name);
            storage
                .ok_or_else(|| format!("QUEUES: \"{name}\" is not an element that stores packets"))
        });
        self.storage = match self.names.is_empty() {
            true => ctx.nearest_storage(),
            false => named.collect::<Result<_, _>>()?,
        };
        match self.storage.is_empty() {
            true => Err("no queue found".to_string()),
            false => Ok(()),
        }
    }

    /// Packets stored in all of them.
    pub fn length(&self, ctx: &Context<'_>) -> usize {
        self.storage.iter().map(|queue| ctx.stored(*queue)).sum()
    }

    /// Their names, one a line.
    pub fn list(&self, ctx: &Context<'_>) -> String {
        let names = self.storage.iter().map(|q| ctx.storage_name(*q) + "\n");
        names.collect()
    }
}
