// SPDX-License-Identifier: Apache-2.0
//! Who is woken by what happens to a guest: changes of its keys, its end.
//!
//! A waiter that found nothing several times looks at most once per `PAUSE`, for any number of
//! events. Subscribers get at most one event per router and `ANNOUNCE`.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::base::error::{Code, Error, Result};
use clickos_protocol::MAX_RID;

/// Looks of a waiter without a rest between them: more than an answer in many pieces needs.
const LOOKS: u32 = 400;
/// Pause between two looks of a waiter that found nothing several times: its guest writes other
/// nodes.
const PAUSE: Duration = Duration::from_millis(2);
/// Shortest time between two announcements of one guest.
const ANNOUNCE: Duration = Duration::from_millis(200);
/// Most routers of a guest in one announcement; the others come with the next.
const ROUTERS: u32 = 4;

/// The node by which a guest announces itself.
const VERSION: &str = "version";

/// The signals that wake waiters for one guest.
#[derive(Default)]
pub struct Signals {
    state: Mutex<State>,
    changed: Condvar,
}

/// The changes that a waiter has seen; it looks at later ones.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    changes: u64,
    links: u64,
}

#[derive(Default)]
struct State {
    changes: u64,
    /// Times that the guest's link to the store was made again, or lost for good.
    links: u64,
    dead: Option<String>,
    cancelled: bool,
}

impl Signals {
    /// Something the guest writes may have changed.
    pub fn wake(&self) {
        self.update(|state| state.changes += 1);
    }

    /// Answers in an earlier store are lost, unless the guest has told them again by now.
    pub fn relink(&self) {
        self.update(|state| {
            state.changes += 1;
            state.links += 1;
        });
    }

    /// The guest has died.
    pub fn die(&self, reason: &str) {
        self.update(|state| state.dead = Some(reason.to_owned()));
    }

    /// All waiters give up, because a thread destroys the guest.
    pub fn cancel(&self) {
        self.update(|state| state.cancelled = true);
    }

    /// Fails if the guest has died or is to be destroyed.
    pub fn check(&self) -> Result<()> {
        let state = self.lock();
        match (&state.dead, state.cancelled) {
            (Some(reason), _) => Err(Error::new(Code::DeadGuest, format!("the guest {reason}"))),
            (None, true) => Err(Error::new(Code::DeadGuest, "the guest is being destroyed")),
            (None, false) => Ok(()),
        }
    }

    /// To be taken before whatever causes the change that is to be waited for.
    pub fn seen(&self) -> Seen {
        let state = self.lock();
        let (changes, links) = (state.changes, state.links);
        Seen { changes, links }
    }

    /// Waits until `look` finds something; looks whenever the guest's keys have changed.
    ///
    /// # Errors
    /// Those of `look`; `dead-guest` at once when the guest dies; `timeout` naming `what`. A new link
    /// to the store lost the request: `store`.
    pub fn wait_since<T>(
        &self,
        seen: Seen,
        what: &str,
        deadline: Instant,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let (links, mut seen, mut looks) = (seen.links, seen.changes, LOOKS);
        loop {
            let in_time = self.sleep(seen, deadline);
            let now = self.seen();
            seen = now.changes;
            let ended = self.check();
            // Looked at after the check: what a guest answered before it died still counts.
            if let Some(found) = look()? {
                return Ok(found);
            }
            ended?;
            if now.links != links {
                let message = "the Xen store was started again before the guest answered";
                return Err(Error::new(Code::Store, format!("{what}: {message}")));
            }
            if !in_time {
                return Err(Error::new(
                    Code::Timeout,
                    format!("{what}: no answer in time; the guest's console may tell why"),
                ));
            }
            match looks {
                0 => std::thread::sleep(PAUSE),
                _ => looks -= 1,
            }
        }
    }

    /// Sleeps until something changes; false at the deadline.
    fn sleep(&self, seen: u64, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let unchanged = |s: &mut State| s.changes == seen && s.dead.is_none() && !s.cancelled;
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), left, unchanged);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Domains for one thread to look at.
#[derive(Default)]
pub struct DomainQueue {
    domids: Mutex<BTreeSet<u16>>,
    changed: Condvar,
}

impl DomainQueue {
    /// Adds domains at once: a look at some of them would take the others' tables away.
    pub fn add(&self, added: impl IntoIterator<Item = u16>) {
        let mut domids = self.domids.lock().unwrap_or_else(PoisonError::into_inner);
        domids.extend(added);
        self.changed.notify_all();
    }

    /// Takes the domains so far; waits for one, that long.
    pub fn take(&self, wait: Duration) -> BTreeSet<u16> {
        let domids = self.domids.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(domids, wait, |all| all.is_empty());
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Called with a domain and the routers (one bit each) whose state may have changed.
type Announce = Box<dyn Fn(u16, u64) + Send + Sync>;

/// All guests that somebody may wait for.
pub struct Watchers {
    /// The domains whose offload requests may have changed.
    pub offloads: DomainQueue,
    /// The domains that may have announced themselves to the store.
    pub announced: DomainQueue,
    guests: Mutex<HashMap<u16, Watcher>>,
    announce: Announce,
}

struct Watcher {
    signals: Arc<Signals>,
    changed_routers: u64,
    quiet_until: Option<Instant>,
}

impl Watchers {
    pub fn new(announce: Announce) -> Self {
        Self {
            offloads: DomainQueue::default(),
            announced: DomainQueue::default(),
            guests: Mutex::default(),
            announce,
        }
    }

    pub fn insert(&self, domid: u16, signals: Arc<Signals>) {
        let watcher = Watcher {
            signals,
            changed_routers: 0,
            quiet_until: None,
        };
        self.lock().insert(domid, watcher);
    }

    pub fn remove(&self, domid: u16) {
        self.lock().remove(&domid);
    }

    /// Takes a watch event in.
    pub fn changed(&self, path: &str) {
        let Some((domid, key)) = control_key(path) else {
            return;
        };
        let mut guests = self.lock();
        let Some(watcher) = guests.get_mut(&domid) else {
            return;
        };
        if key == "offload" || key.starts_with("offload/") {
            self.offloads.add([domid]);
        }
        if key == VERSION {
            self.announced.add([domid]);
        }
        if let Some(rid) = state_of(key) {
            watcher.changed_routers |= 1 << rid;
        }
        if is_awaited(key) {
            watcher.signals.wake();
        }
    }

    /// Events may have been lost: everybody looks again.
    pub fn wake_all(&self) {
        let guests = self.lock();
        guests.values().for_each(|watcher| watcher.signals.wake());
        self.offloads.add(guests.keys().copied());
        self.announced.add(guests.keys().copied());
    }

    /// Announces what is due and returns when the next announcement is.
    pub fn announce(&self, now: Instant) -> Option<Instant> {
        let (due, next) = self.take_due(now);
        due.into_iter()
            .for_each(|(domid, routers)| (self.announce)(domid, routers));
        next
    }

    fn take_due(&self, now: Instant) -> (Vec<(u16, u64)>, Option<Instant>) {
        let (mut due, mut next) = (Vec::new(), None);
        let mut guests = self.lock();
        for (domid, watcher) in guests.iter_mut().filter(|(_, w)| w.changed_routers != 0) {
            if watcher.quiet_until.is_none_or(|until| until <= now) {
                due.push((*domid, take_first(&mut watcher.changed_routers)));
                watcher.quiet_until = Some(now + ANNOUNCE);
            }
            if watcher.changed_routers != 0 {
                let until = watcher.quiet_until;
                next = [next, until].into_iter().flatten().min();
            }
        }
        (due, next)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u16, Watcher>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the first few routers out of a set.
fn take_first(routers: &mut u64) -> u64 {
    let all = *routers;
    for _ in 0..ROUTERS {
        *routers &= routers.wrapping_sub(1); // Clears the lowest bit.
    }
    all & !*routers
}

/// The domain and the key below its control root, if the path is there.
fn control_key(path: &str) -> Option<(u16, &str)> {
    let (domid, rest) = path.strip_prefix("/local/domain/")?.split_once('/')?;
    let key = rest.strip_prefix("data/clickos")?;
    Some((domid.parse().ok()?, key.strip_prefix('/').unwrap_or(key)))
}

/// The router whose answer this key is.
fn state_of(key: &str) -> Option<u8> {
    let rid = key.strip_suffix("/state")?;
    rid.parse().ok().filter(|rid| *rid <= MAX_RID)
}

/// True for nodes with waiters: a guest's boot, the answers to requested routers and to handler
/// requests.
fn is_awaited(key: &str) -> bool {
    let mut parts = key.split('/').skip(1);
    key == VERSION || matches!(parts.next(), Some("state" | "response"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_change_is_looked_at() {
        let signals = Arc::new(Signals::default());
        let found = Mutex::new(None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Time to wait; the change counts before, too.
                std::thread::sleep(Duration::from_millis(20));
                *found.lock().unwrap() = Some(7);
                signals.wake();
            });
            let got =
                signals.wait_since(signals.seen(), "x", soon(), || Ok(*found.lock().unwrap()));
            assert_eq!(got, Ok(7));
        });
    }

    #[test]
    fn death_and_destruction_end_the_wait_at_once() {
        let signals = Arc::new(Signals::default());
        let other = Arc::clone(&signals);
        let waiter = std::thread::spawn(move || {
            other.wait_since(other.seen(), "x", soon(), || Ok(None::<()>))
        });
        // Time to wait; the death counts before, too.
        std::thread::sleep(Duration::from_millis(20));
        signals.die("killed by signal 9");
        let error = waiter.join().unwrap().unwrap_err();
        assert_eq!(error.code, Code::DeadGuest);
        assert!(error.message.contains("signal 9"), "{error}");
        // An answer from before the wait counts.
        assert_eq!(
            signals.wait_since(signals.seen(), "x", soon(), || Ok(Some(1))),
            Ok(1)
        );
        let signals = Signals::default();
        signals.cancel();
        let error = signals
            .wait_since(signals.seen(), "x", soon(), || Ok(None::<()>))
            .unwrap_err();
        assert!(error.message.contains("destroyed"), "{error}");
    }

    #[test]
    fn the_deadline_names_what_was_waited_for() {
        let signals = Signals::default();
        let deadline = Instant::now() + Duration::from_millis(20);
        let error = signals
            .wait_since(signals.seen(), "router 0", deadline, || Ok(None::<()>))
            .unwrap_err();
        assert_eq!(
            error,
            Error::new(
                Code::Timeout,
                "router 0: no answer in time; the guest's console may tell why"
            )
        );
    }

    #[test]
    fn a_flood_of_changes_is_announced_once_in_a_while() {
        let announced = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&announced);
        let watchers = Watchers::new(Box::new(move |d, r| log.lock().unwrap().push((d, r))));
        watchers.insert(5, Arc::default());
        let start = Instant::now();
        for _ in 0..1000 {
            watchers.changed("/local/domain/5/data/clickos/3/state");
            watchers.announce(start);
        }
        assert_eq!(*announced.lock().unwrap(), [(5, 8)]);
        assert_eq!(watchers.announce(start), Some(start + ANNOUNCE));
        assert_eq!(watchers.announce(start + ANNOUNCE), None);
        assert_eq!(*announced.lock().unwrap(), [(5, 8), (5, 8)]);
    }

    #[test]
    fn many_routers_are_announced_a_few_at_a_time() {
        let mut routers = 0b1011_0110;
        assert_eq!(take_first(&mut routers), 0b0011_0110);
        assert_eq!(take_first(&mut routers), 0b1000_0000);
        assert_eq!(take_first(&mut routers), 0);

        let watchers = Watchers::new(Box::new(|_, _| {}));
        watchers.insert(5, Arc::default());
        for rid in 0..=4 {
            watchers.changed(&format!("/local/domain/5/data/clickos/{rid}/state"));
        }
        let start = Instant::now();
        assert_eq!(watchers.announce(start), Some(start + ANNOUNCE));
        assert_eq!(watchers.announce(start + ANNOUNCE), None);
    }

    #[test]
    fn only_what_is_awaited_wakes() {
        let watchers = Watchers::new(Box::new(|_, _| {}));
        let signals = Arc::new(Signals::default());
        watchers.insert(5, Arc::clone(&signals));
        for path in [
            "/local/domain/5/data/clickos/0/config/3",
            "/local/domain/5/data/clickos/0/request/1/0",
            "/local/domain/5/data/clickos/0/error",
            "/local/domain/5/data/clickos/memory",
            "/local/domain/5/data/clickos",
            "/local/domain/6/data/clickos/0/state",
            "/local/domain/5/data/other",
            "/local/domain/x/data/clickos",
            "@releaseDomain",
        ] {
            watchers.changed(path);
        }
        assert_eq!(signals.lock().changes, 0);
        for path in ["/version", "/0/state", "/0/response/1/0", "/99/state"] {
            watchers.changed(&format!("/local/domain/5/data/clickos{path}"));
        }
        assert_eq!(signals.lock().changes, 4);
        assert_eq!(watchers.lock()[&5].changed_routers, 1);
    }
}
