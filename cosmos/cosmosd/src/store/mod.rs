// SPDX-License-Identifier: Apache-2.0
//! The Xen store as this daemon uses it: dom0's view, with all rights.

mod hub;
#[cfg(test)]
pub mod sim;
mod xen;

use xenstore::Perm;

use crate::base::error::Result;

pub use hub::{Seen, Signals, Watchers};
pub use xen::{XenStore, watch};

/// One change of a batch that is committed in a single transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Writes a node and, if given, its permissions (the owner's entry first).
    Write {
        path: String,
        value: Vec<u8>,
        perms: Option<Vec<Perm>>,
    },
    /// Removes a node and all below it; nothing there is no error.
    Remove { path: String },
}

impl Change {
    pub fn write_as(path: impl Into<String>, value: impl Into<Vec<u8>>, perms: &[Perm]) -> Self {
        Self::Write {
            path: path.into(),
            value: value.into(),
            perms: Some(perms.to_vec()),
        }
    }

    /// Writes a node that has its permissions.
    pub fn write(path: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self::Write {
            path: path.into(),
            value: value.into(),
            perms: None,
        }
    }

    pub fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }
}

/// The requests this daemon makes.
pub trait Store: Send + Sync {
    /// A node's value, `None` when there is no such node.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>>;

    /// The names of a node's children, none when there is no such node.
    fn list(&self, path: &str) -> Result<Vec<String>>;

    /// The same of several nodes, in the time of one.
    fn read_all(&self, paths: &[&str]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Makes changes one after the other, in the time of one; what fails keeps no later one from
    /// being made.
    fn apply(&self, changes: &[Change]) -> Result<()>;

    /// Makes all changes, in order, or none.
    fn commit(&self, changes: &[Change]) -> Result<()>;

    /// Connects a domain whose ring and event channel are in place.
    fn introduce(&self, domid: u16) -> Result<()>;

    /// Disconnects a domain; one that is not connected is no error.
    fn release(&self, domid: u16) -> Result<()>;
}
