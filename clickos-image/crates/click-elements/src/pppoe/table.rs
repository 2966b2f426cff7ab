// SPDX-License-Identifier: Apache-2.0
//! The sessions by number and by address. Numbers are used again as late as possible.
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;

use click_core::memory::Growth;

use super::session::Session;
use super::six::prefix_of;
use crate::ip6::Address;

/// Sessions that did not log in yet.
const OPENING: usize = 256;
/// The number of the last IPv4 address.
const LAST_ADDRESS: u64 = u32::MAX as u64;
/// Sessions of one Ethernet address.
const PER_HOST: usize = 4;

/// Sessions, at most `limit`.
#[derive(Default)]
pub struct Table {
    /// Number 1 has place 0.
    places: Vec<Option<Box<Session>>>,
    free: VecDeque<u16>,
    /// By IPv4 address, and by the first 64 bits of IPv6 addresses, which are larger numbers.
    by_address: BTreeMap<u64, u16>,
    limit: u16,
    growth: Growth,
}

impl Table {
    /// An empty table for at most `limit` sessions.
    pub fn new(limit: u16) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// The session that has to go before a host gets a new one: one that did not log in, first of a host that has many.
    pub fn in_the_way(&self, mac: [u8; 6]) -> Option<u16> {
        let opening: Vec<&Session> = self.iter().filter(|s| s.holder.is_none()).collect();
        if self.is_host_full(mac) {
            let own = opening.into_iter().filter(|s| s.mac == mac);
            return own
                .min_by_key(|s| (s.asked_name().is_some(), s.began_ns()))
                .map(|s| s.id);
        }
        (opening.len() >= OPENING || self.is_full()).then(|| crowded_out(&opening))?
    }

    /// A number for a new session of a host.
    pub fn number_for(&mut self, mac: [u8; 6]) -> Option<u16> {
        if self.is_host_full(mac) || !self.growth.takes_entry() {
            return None;
        }
        if self.places.len() < usize::from(self.limit) {
            self.places.push(None);
            return u16::try_from(self.places.len()).ok();
        }
        self.free.pop_front()
    }

    fn is_host_full(&self, mac: [u8; 6]) -> bool {
        self.iter().filter(|s| s.mac == mac).count() >= PER_HOST
    }

    fn is_full(&self) -> bool {
        self.free.is_empty() && self.places.len() >= usize::from(self.limit)
    }

    /// Makes the place of a number that another host gave out; `None` if it is taken or too large.
    pub fn claim(&mut self, id: u16) -> Option<()> {
        let beyond = id == 0 || id > self.limit || !self.growth.takes_entry();
        if beyond || self.get(id).is_some() {
            return None;
        }
        while self.places.len() < usize::from(id) {
            self.places.push(None);
            self.free.extend(u16::try_from(self.places.len()));
        }
        self.free.retain(|free| *free != id);
        Some(())
    }

    /// Puts a session at the place of its number.
    pub fn insert(&mut self, session: Session) {
        let place = usize::from(session.id).wrapping_sub(1);
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Some(Box::new(session));
        }
    }

    /// Takes a session out. Its number is free.
    pub fn remove(&mut self, id: u16) -> Option<Box<Session>> {
        self.unroute(id);
        let session = self
            .places
            .get_mut(usize::from(id).wrapping_sub(1))?
            .take()?;
        self.free.push_back(id);
        Some(session)
    }

    /// Sends packets for a session's addresses to it. If its IPv6 prefix is another one's, it has none.
    pub fn route(&mut self, id: u16) {
        let [_, prefix] = self.keys(id);
        if prefix.is_some_and(|prefix| self.by_address.contains_key(&prefix)) {
            self.get_mut(id).into_iter().for_each(|s| s.prefix = None);
        }
        for key in self.keys(id).into_iter().flatten() {
            self.by_address.insert(key, id);
        }
    }

    /// The numbers of a session's address and prefix.
    fn keys(&self, id: u16) -> [Option<u64>; 2] {
        let session = self.get(id);
        let holder = session.and_then(|s| s.holder.as_ref());
        let prefix = session.and_then(|s| s.prefix);
        [
            holder.map(|h| u32::from(h.address).into()),
            prefix.filter(|prefix| *prefix > LAST_ADDRESS),
        ]
    }

    /// Sends no packets to a session any more.
    pub fn unroute(&mut self, id: u16) {
        for key in self.keys(id).into_iter().flatten() {
            if self.by_address.get(&key) == Some(&id) {
                self.by_address.remove(&key);
            }
        }
    }

    /// The session of a number.
    pub fn get(&self, id: u16) -> Option<&Session> {
        let place = usize::from(id).checked_sub(1)?;
        self.places.get(place)?.as_deref()
    }

    /// The session of a number, to change.
    pub fn get_mut(&mut self, id: u16) -> Option<&mut Session> {
        let place = usize::from(id).checked_sub(1)?;
        self.places.get_mut(place)?.as_deref_mut()
    }

    /// The session of an address.
    pub fn of_address(&mut self, address: IpAddr) -> Option<&mut Session> {
        let key = match address {
            IpAddr::V4(address) => u32::from(address).into(),
            IpAddr::V6(address) => {
                Some(prefix_of(Address(address))).filter(|p| *p > LAST_ADDRESS)?
            }
        };
        let id = *self.by_address.get(&key)?;
        self.get_mut(id)
    }

    /// All sessions by number.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.places.iter().filter_map(Option::as_deref)
    }

    /// The numbers of sessions that fit.
    pub fn numbers(&self, which: impl Fn(&Session) -> bool) -> Vec<u16> {
        self.iter().filter(|s| which(s)).map(|s| s.id).collect()
    }

    /// Forgets all sessions.
    pub fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Sessions that may pass IPv4 packets.
    pub fn open(&self) -> usize {
        self.by_address.range(..=LAST_ADDRESS).count()
    }

    /// Takes over the sessions of a table that goes. Those beyond the limit are dropped.
    pub fn take_from(&mut self, old: &mut Self) {
        let limit = self.limit;
        *self = core::mem::take(old);
        self.limit = limit;
        for id in limit.saturating_add(1)..=u16::MAX {
            if usize::from(id) > self.places.len() {
                break;
            }
            self.unroute(id);
        }
        self.places.truncate(usize::from(limit));
        self.free.retain(|id| *id <= limit);
    }
}

/// The session without a login whose place another host gets: of a host with the most of them, so that a flood of few
/// hosts ends its own ones. Those that wait for RADIUS servers go only if they are more than half of all, the newest
/// first: later hosts cannot end a login that a slow server decides, nor can such logins take all places.
fn crowded_out(opening: &[&Session]) -> Option<u16> {
    let mut of_host = BTreeMap::new();
    for session in opening {
        *of_host.entry(session.mac).or_insert(0usize) += 1;
    }
    let waits = |s: &Session| s.asked_name().is_some();
    let waiting = opening.iter().filter(|s| waits(s)).count();
    let too_many_wait = waiting * 2 > opening.len();
    let candidates = opening.iter().filter(|s| waits(s) == too_many_wait);
    let age = |s: &Session| match too_many_wait {
        true => s.began_ns(),
        false => u64::MAX - s.began_ns(),
    };
    candidates
        .max_by_key(|s| (of_host[&s.mac], age(s)))
        .map(|s| s.id)
}
