// SPDX-License-Identifier: Apache-2.0
//! Makes, changes and ends guests: the steps between the states of `guest`, and their undoing.
//!
//! All of it works on the [`Site`]. Only making a guest needs more, which the [`Maker`] owns.

pub mod beside;
mod create;
pub mod destroy;
mod fill;
pub mod links;
pub mod migration;
pub mod pause;
pub mod plug;
mod preconnected;
pub mod recover;
pub mod rejoin;
pub mod relink;
mod replace;
pub mod retry;
pub mod save;

use std::sync::Arc;

use crate::base::build_slots::BuildSlots;
use crate::pool::Pool;
use crate::site::Site;

/// Makes guests: those that a client asks for, and those of the pool.
pub struct Maker {
    site: Arc<Site>,
    pool: Pool,
    build_queue: BuildSlots,
}

impl Maker {
    pub fn new(site: Arc<Site>, pool: Pool) -> Self {
        let build_queue = BuildSlots::new(site.host.builds_at_once());
        Self {
            site,
            pool,
            build_queue,
        }
    }

    /// True if there is a pool to be filled, or one of an earlier daemon to be emptied.
    pub fn has_pool(&self) -> bool {
        self.pool.is_wanted() || !self.site.table.pooled().is_empty()
    }
}
