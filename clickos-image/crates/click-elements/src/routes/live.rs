// SPDX-License-Identifier: Apache-2.0
//! Routes that are looked up while they change.
use super::ranges::{Ranges, Ready};
use super::route::{Hop, Route};
use super::table::{Command, Table, Trial};
use crate::prelude::*;

/// A list of more commands rebuilds everything at its end.
const FEW_COMMANDS: usize = 64;

/// Routes, and what packets are looked up in.
pub struct Routes {
    table: Table,
    ranges: Ranges,
}

impl Routes {
    /// The routes of a table.
    pub fn of(table: Table) -> Self {
        Self {
            ranges: Ranges::of(&table),
            table,
        }
    }

    /// Where packets to `address` go.
    pub fn lookup(&self, address: Ipv4Addr) -> Option<&Hop> {
        self.ready().hop(address.into())
    }

    /// The same for many addresses.
    #[inline]
    pub fn ready(&self) -> Ready<'_> {
        self.ranges.ready(self.table.hops())
    }

    /// Where packets to any address go, if that is known to be the same.
    #[inline]
    pub fn only_hop(&self) -> Option<&Hop> {
        self.table.hops().get(self.ranges.only_hop()? as usize)
    }

    /// True if commands are possible, one after the other.
    ///
    /// # Errors
    /// What is not, or that there would be more than `most` routes.
    pub fn check<'a>(
        &self,
        commands: impl Iterator<Item = &'a Command>,
        most: usize,
    ) -> Result<(), HandlerError> {
        let mut trial = Trial::of(&self.table);
        for command in commands {
            trial.run(command, most).map_err(HandlerError::rejected)?;
        }
        Ok(())
    }

    /// Runs commands that were checked.
    pub fn run<'a>(&mut self, commands: impl Iterator<Item = &'a Command>, most: usize) {
        let mut trial = Trial::of(&self.table);
        for command in commands {
            // another write of the same call may have been faster; what is there then stays
            drop(trial.run(command, most));
        }
        let changes = trial.changes();
        if changes.len() > FEW_COMMANDS {
            self.table.make_all(&changes);
            self.ranges = Ranges::of(&self.table);
            return;
        }
        for (network, hop) in changes {
            self.table.make(network, hop);
            self.ranges.update(&self.table, network);
        }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        *self = Self::of(Table::default());
    }

    /// All in the order in which they came.
    pub fn in_order(&self) -> Vec<Route> {
        self.table.in_order()
    }

    /// What the handler `lookup` says: output and gateway, or -1.
    pub fn answer(&self, view: &View<'_>, address: &str) -> Text {
        let hop = self.lookup(view.parse(address)?);
        Ok(hop.map_or("-1".to_string(), |hop| match hop.gateway {
            Some(gateway) => format!("{} {gateway}", hop.port),
            None => hop.port.to_string(),
        }))
    }
}
