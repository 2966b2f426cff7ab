// SPDX-License-Identifier: Apache-2.0
//! Bounds on what peers may make a server hold, and the places of connections.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{ApiError, MAX_LINE};

/// Places kept for each uid that has a role.
const KEPT: usize = 8;
/// Most memory of a line: its bytes and its parsed arguments.
pub(crate) const LINE_COST: usize = 2;

/// Bounds on what peers may make a server hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    pub connections_per_uid: usize,
    /// Bytes of all long lines and of the requests in work that came in them.
    pub bytes: usize,
    /// Longest silence between two requests.
    pub idle: Duration,
    /// Longest time from the first byte of a line to its last, in either direction.
    pub line: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_per_uid: 128,
            bytes: 96 << 20,
            idle: Duration::from_secs(600),
            line: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// The bytes of one of `uids` uids; the longest line always fits.
    pub(crate) fn share(&self, uids: usize) -> usize {
        (self.bytes / uids.max(1)).max(LINE_COST * MAX_LINE)
    }
}

/// How many connections each uid has.
pub(crate) struct Connections {
    limits: Limits,
    /// Uids that have a role, and so places kept.
    uids: Vec<u32>,
    counts: Mutex<BTreeMap<u32, usize>>,
}

/// One counted connection; dropping it leaves.
pub(crate) struct ConnectionSlot(Arc<Connections>, u32);

impl Connections {
    pub fn new(limits: Limits, uids: Vec<u32>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            uids,
            counts: Mutex::default(),
        })
    }

    pub fn enter(self: &Arc<Self>, uid: u32) -> Result<ConnectionSlot, ApiError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = &self.limits;
        let all: usize = counts.values().sum();
        let own = counts.get(&uid).copied().unwrap_or(0);
        let kept = self.kept_from(uid, &counts);
        if all + kept >= limits.connections || own >= limits.connections_per_uid {
            let message = format!(
                "too many connections: {all} of {} in all, {kept} kept for other uids, \
                 {own} of {} by uid {uid}",
                limits.connections, limits.connections_per_uid
            );
            return Err(ApiError::new("too-many", message));
        }
        *counts.entry(uid).or_default() += 1;
        Ok(ConnectionSlot(Arc::clone(self), uid))
    }

    /// Free places that are kept for the other uids.
    fn kept_from(&self, uid: u32, counts: &BTreeMap<u32, usize>) -> usize {
        let each = KEPT.min(self.limits.connections / (2 * self.uids.len().max(1)));
        let others = self.uids.iter().filter(|other| **other != uid);
        let free = |other| each.saturating_sub(counts.get(other).copied().unwrap_or(0));
        others.map(free).sum()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = counts.get_mut(&self.1) {
            *own -= 1;
            if *own == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_uid_takes_the_places_kept_for_others() {
        let limits = Limits {
            connections: 40,
            connections_per_uid: 30,
            ..Limits::default()
        };
        let connections = Connections::new(limits, vec![0, 7, 8]);
        let fill = |uid| -> Vec<ConnectionSlot> {
            std::iter::from_fn(|| connections.enter(uid).ok()).collect()
        };
        // Half of 40 places is kept for three uids: 6 each.
        let first = fill(7);
        assert_eq!(first.len(), 28);
        let second = fill(8);
        assert_eq!(second.len(), 6);
        let operator = fill(0);
        assert_eq!(operator.len(), 6);
        let error = connections.enter(0).err().unwrap();
        assert!(error.message.contains("40 of 40 in all"), "{error}");
        drop((first, second, operator));
        assert_eq!(fill(7).len(), 28);
    }

    #[test]
    fn many_uids_leave_room_for_the_longest_line() {
        assert_eq!(Limits::default().share(3), 32 << 20);
        assert_eq!(Limits::default().share(1000), 8 << 20);
    }
}
