// SPDX-License-Identifier: Apache-2.0
//! The connections that the rules of one port have admitted, in a table of fixed size.
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::clock::Nanoseconds;
use crate::frame::key::{Connection, DCCP, SCTP, TCP};
use crate::stations::mac_learning::table_seed;

/// Connections of a port.
pub const CONNECTIONS: usize = 8192;
/// Places that one connection may take.
const WAYS: usize = 4;
const SECOND: u64 = 1_000_000_000;
/// A connection ends after this silence; that of a protocol with a handshake lives longer.
const TCP_IDLE: Nanoseconds = 3600 * SECOND;
const IDLE: Nanoseconds = 120 * SECOND;

#[derive(Clone, Copy)]
struct Entry {
    connection: Connection,
    seen: Nanoseconds,
    idle: Nanoseconds,
}

impl Entry {
    fn is_live(&self, now: Nanoseconds) -> bool {
        now.saturating_sub(self.seen) <= self.idle
    }
}

/// A new connection takes the place of the one that is silent for longest among four. The table
/// belongs to one port, so the guest behind it forgets its own connections only.
pub struct Connections {
    entries: Box<[Option<Entry>]>,
    /// Entries that are in use.
    used: usize,
    /// Keeps strangers from choosing connections that share their places.
    seed: u64,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            entries: vec![None; CONNECTIONS].into(),
            used: 0,
            seed: table_seed(),
        }
    }
}

impl Connections {
    /// True if the connection is known, which renews it.
    pub fn renew(&mut self, connection: Connection, now: Nanoseconds) -> bool {
        let found = self.live(connection, now);
        found.map(|entry| entry.seen = now).is_some()
    }

    /// True if the connection is known, which does not renew it.
    pub fn has(&mut self, connection: Connection, now: Nanoseconds) -> bool {
        self.live(connection, now).is_some()
    }

    fn live(&mut self, connection: Connection, now: Nanoseconds) -> Option<&mut Entry> {
        let mut places = self.places(connection).iter_mut().flatten();
        let found = places.find(|e| e.connection == connection)?;
        found.is_live(now).then_some(found)
    }

    /// Connections in the table, with those that have ended.
    pub fn len(&self) -> usize {
        self.used
    }

    /// True if the connection is known. Looks at all entries, so that the way of a packet through
    /// [`Self::renew`] stays as short as it is.
    pub fn knows(&self, connection: Connection, now: Nanoseconds) -> bool {
        let mut entries = self.entries.iter().flatten();
        entries.any(|e| e.connection == connection && e.is_live(now))
    }

    pub fn insert(&mut self, connection: Connection, protocol: u8, now: Nanoseconds) {
        let idle = match protocol {
            TCP | DCCP | SCTP => TCP_IDLE,
            _ => IDLE,
        };
        let places = self.places(connection).iter_mut();
        let age = |e: &Option<Entry>| match e {
            Some(e) if e.connection == connection => 0,
            Some(e) if e.is_live(now) => e.seen.saturating_add(1),
            _ => 1,
        };
        if let Some(place) = places.min_by_key(|e| age(e)) {
            let taken = usize::from(place.is_none());
            *place = Some(Entry {
                connection,
                seen: now,
                idle,
            });
            self.used += taken;
        }
    }

    fn places(&mut self, connection: Connection) -> &mut [Option<Entry>] {
        let mut hasher = FxHasher::default();
        (self.seed, connection).hash(&mut hasher);
        let mixed = hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let set = mixed as usize % (CONNECTIONS / WAYS) * WAYS;
        &mut self.entries[set..set + WAYS]
    }
}
