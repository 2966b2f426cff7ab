// SPDX-License-Identifier: Apache-2.0
//! Events from a daemon to its subscribers.
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;

use crate::Event;

/// Events a subscriber may be behind before it is disconnected.
const QUEUE: usize = 256;

/// Spreads events to all subscriptions; never waits for any of them.
#[derive(Default)]
pub struct EventHub(Arc<Mutex<Subscribers>>);

#[derive(Default)]
struct Subscribers {
    last: u64,
    queues: BTreeMap<u64, SyncSender<Arc<Event>>>,
}

/// The receiving end, given to the server as [`crate::Reply::Events`]. Dropping it unsubscribes.
pub struct Subscription {
    number: u64,
    events: Receiver<Arc<Event>>,
    hub: Weak<Mutex<Subscribers>>,
}

impl EventHub {
    pub fn subscribe(&self) -> Subscription {
        let (sender, events) = sync_channel(QUEUE);
        let mut subscribers = lock(&self.0);
        subscribers.last += 1;
        let number = subscribers.last;
        subscribers.queues.insert(number, sender);
        Subscription {
            number,
            events,
            hub: Arc::downgrade(&self.0),
        }
    }

    /// Subscriptions that have not ended.
    pub fn subscribers(&self) -> usize {
        lock(&self.0).queues.len()
    }

    /// Queues the event for every subscriber. It drops one whose queue is full and closes its
    /// connection, because a gap in the events would go unnoticed.
    pub fn publish(&self, event: &str, data: Value) {
        let event = Arc::new(Event {
            event: event.to_owned(),
            data,
        });
        let mut subscribers = lock(&self.0);
        let queues = &mut subscribers.queues;
        queues.retain(|_, queue| queue.try_send(Arc::clone(&event)).is_ok());
    }
}

impl Subscription {
    /// The next event, for which this waits so long.
    ///
    /// # Errors
    /// Without an event in this time, and when no more can come.
    pub fn wait(&self, timeout: Duration) -> Result<Arc<Event>, RecvTimeoutError> {
        self.events.recv_timeout(timeout)
    }
}

/// The hub holds a queue until then, also while no event occurs.
impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            lock(&hub).queues.remove(&self.number);
        }
    }
}

fn lock(subscribers: &Mutex<Subscribers>) -> MutexGuard<'_, Subscribers> {
    subscribers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_subscriber_is_dropped_and_the_others_are_not() {
        let hub = EventHub::default();
        let (slow, quick) = (hub.subscribe(), hub.subscribe());
        for n in 0..=QUEUE {
            hub.publish("tick", n.into());
            assert_eq!(quick.events.recv().unwrap().data, n);
        }
        assert_eq!(slow.events.iter().count(), QUEUE);
        assert_eq!(hub.subscribers(), 1);
    }

    #[test]
    fn a_subscription_ends_without_an_event() {
        let hub = EventHub::default();
        let kept = hub.subscribe();
        for _ in 0..300 {
            drop(hub.subscribe());
        }
        assert_eq!(hub.subscribers(), 1);
        drop(hub);
        drop(kept);
    }
}
