// SPDX-License-Identifier: Apache-2.0
//! Keeps flows with their port pair while other pairs come. All workers share it, without a lock for
//! frames.
//!
//! A pair that comes wins buckets of other pairs. From then on workers learn the flows of such a
//! bucket: connections that begin belong to the new pair, all others to the one before. After a while
//! each flow that lives is known, and flows that are not known begin.
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use vale_proto::{MAX_PAIRS, Pair, PortName};

use super::flow::{Flow, TCP};

/// Buckets of flows.
pub const BUCKETS: usize = 256;
/// Numbers of live pairs, from 1; 0 is none.
pub const SLOTS: usize = MAX_PAIRS + 1;
/// A flow is learned if it sends within this time. A bucket without packets of old flows for this
/// long has moved.
const PAUSE_S: u32 = 300;
/// Only TCP tells that a connection begins. Other flows begin if they are not known after this time.
const SHORT_PAUSE_S: u32 = 10;
/// Flows that have one place in the table; a cache line.
const WAYS: usize = 8;
const SETS: usize = 1 << 13;

/// A pair has the same id in all definitions.
type Id = (PortName, PortName, Option<IpAddr>);

/// One bucket. Workers read it for each frame; [`Flows::renew`] changes it.
#[derive(Default)]
struct Bucket {
    /// The slot of flows that are not known.
    current: AtomicU8,
    /// The slot of flows that begin.
    wanted: AtomicU8,
    /// A packet went to a pair: there can be flows that are not known.
    is_used: AtomicBool,
    /// The time of the last change of `wanted`.
    since_s: AtomicU32,
    /// The last packet to another pair than the wanted one.
    last_s: AtomicU32,
}

impl Bucket {
    fn is_moving(&self) -> bool {
        self.current.load(Relaxed) != self.wanted.load(Relaxed)
    }

    /// True if all flows that live are known.
    fn is_learned(&self, now_s: u32) -> bool {
        now_s.saturating_sub(self.since_s.load(Relaxed)) >= PAUSE_S
    }
}

/// The flows of a hop.
pub struct Flows {
    start: Instant,
    buckets: [Bucket; BUCKETS],
    /// The pair of each slot but 0.
    pairs: Mutex<[Option<Id>; MAX_PAIRS]>,
    /// A flow's key with the slot of its pair in the lowest byte. There from the first move on.
    known: OnceLock<Box<[AtomicU64]>>,
}

impl Default for Flows {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            buckets: std::array::from_fn(|_| Bucket::default()),
            pairs: Mutex::default(),
            known: OnceLock::new(),
        }
    }
}

impl Flows {
    pub fn now_s(&self) -> u32 {
        u32::try_from(self.start.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    /// Takes the live pairs, and the winner of each bucket. Returns the slot of each live pair.
    /// Each worker calls it after a change; the first call changes the buckets.
    pub fn renew(&self, live: &[&Pair], winners: &[usize], now_s: u32) -> Vec<u8> {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let (slots, fresh) = allot(&mut pairs, live);
        let old = |slot: u8| slots.contains(&slot) && !fresh.contains(&slot);
        let mut stays = [true; BUCKETS];
        let mut changed = !fresh.is_empty();
        for (n, (bucket, winner)) in self.buckets.iter().zip(winners).enumerate() {
            let wanted = slots[*winner];
            let (current, before) = (bucket.current.load(Relaxed), bucket.wanted.load(Relaxed));
            if wanted == before && old(current) && old(before) {
                continue;
            }
            let base = match bucket.is_learned(now_s) {
                true => before,
                false => current,
            };
            let keeps = old(base) && bucket.is_used.load(Relaxed);
            let base = if keeps { base } else { wanted };
            bucket.is_used.store(keeps, Relaxed);
            stays[n] = current != before;
            bucket.current.store(base, Relaxed);
            bucket.wanted.store(wanted, Relaxed);
            bucket.since_s.store(now_s, Relaxed);
            bucket.last_s.store(now_s, Relaxed);
            changed = true;
        }
        if changed {
            self.forget(|n, slot| !stays[n] || !self.buckets[n].is_moving() || !old(slot));
        }
        slots
    }

    /// Forgets flows by their bucket and slot.
    fn forget(&self, is_over: impl Fn(usize, u8) -> bool) {
        for place in self.known.get().into_iter().flatten() {
            let word = place.load(Relaxed);
            if word != 0 && is_over(bucket_of(word), slot_of(word)) {
                place.store(0, Relaxed);
            }
        }
    }

    /// The slot of a flow with this key; `wanted` is the slot of its bucket.
    pub fn slot(&self, flow: Flow, key: u64, wanted: u8) -> u8 {
        self.slot_at(flow, key, wanted, || self.now_s())
    }

    fn slot_at(&self, flow: Flow, key: u64, wanted: u8, now_s: impl Fn() -> u32) -> u8 {
        let bucket = &self.buckets[bucket_of(key)];
        if !bucket.is_used.load(Relaxed) {
            bucket.is_used.store(true, Relaxed);
        }
        match bucket.current.load(Relaxed) {
            current if current == wanted => wanted,
            current => self.moving(flow, key, (current, wanted), now_s()),
        }
    }

    #[cold]
    fn moving(&self, flow: Flow, key: u64, (current, wanted): (u8, u8), now_s: u32) -> u8 {
        let bucket = &self.buckets[bucket_of(key)];
        let age_s = now_s.saturating_sub(bucket.since_s.load(Relaxed));
        let begins = flow.begins || flow.protocol != TCP && age_s >= SHORT_PAUSE_S;
        let known = || self.known.get_or_init(table);
        let slot = match bucket.is_learned(now_s) {
            true => find(known(), key).unwrap_or(wanted),
            false => learn(known(), key, if begins { wanted } else { current }).unwrap_or(current),
        };
        let last_s = bucket.last_s.load(Relaxed);
        if slot != wanted {
            if last_s != now_s {
                bucket.last_s.store(now_s, Relaxed);
            }
        } else if now_s.saturating_sub(last_s) >= PAUSE_S {
            bucket.current.store(wanted, Relaxed);
        }
        slot
    }
}

/// Gives each live pair a slot. Returns the slots, and those of pairs that came.
fn allot(pairs: &mut [Option<Id>; MAX_PAIRS], live: &[&Pair]) -> (Vec<u8>, Vec<u8>) {
    let id = |pair: &Pair| (pair.ingress.clone(), pair.egress.clone(), pair.host);
    let ids: Vec<Id> = live.iter().map(|pair| id(pair)).collect();
    for place in pairs.iter_mut() {
        *place = place.take().filter(|old| ids.contains(old));
    }
    let mut fresh = Vec::new();
    let slots = ids.into_iter().map(|id| {
        let same = |place: &Option<Id>| place.as_ref() == Some(&id);
        let found = pairs.iter().position(same);
        let place = found.or_else(|| pairs.iter().position(Option::is_none));
        let place = place.unwrap_or(0);
        let slot = u8::try_from(place + 1).unwrap_or(0);
        if found.is_none() {
            pairs[place] = Some(id);
            fresh.push(slot);
        }
        slot
    });
    (slots.collect(), fresh)
}

fn table() -> Box<[AtomicU64]> {
    std::iter::repeat_with(AtomicU64::default)
        .take(SETS * WAYS)
        .collect()
}

/// The places where a flow may be.
fn places(known: &[AtomicU64], key: u64) -> &[AtomicU64] {
    let set = (key >> 40) as usize % SETS;
    &known[set * WAYS..][..WAYS]
}

pub fn bucket_of(key: u64) -> usize {
    (key >> 56) as usize
}

fn slot_of(word: u64) -> u8 {
    word.to_le_bytes()[0]
}

fn is_of(word: u64, key: u64) -> bool {
    word != 0 && word >> 8 == key >> 8
}

/// The slot of a known flow.
fn find(known: &[AtomicU64], key: u64) -> Option<u8> {
    let mut words = places(known, key).iter().map(|place| place.load(Relaxed));
    words.find(|word| is_of(*word, key)).map(slot_of)
}

/// The same, and makes the flow known. `None` if the table has no place for it.
fn learn(known: &[AtomicU64], key: u64, slot: u8) -> Option<u8> {
    let new = key & !0xff | u64::from(slot);
    find(known, key).or_else(|| {
        places(known, key).iter().find_map(|place| {
            let won = place.compare_exchange(0, new, Relaxed, Relaxed);
            // Another worker can learn the same flow at once.
            let other = won.err().filter(|word| is_of(*word, key));
            won.is_ok().then_some(slot).or(other.map(slot_of))
        })
    })
}

#[cfg(test)]
#[path = "flows_tests.rs"]
mod tests;
