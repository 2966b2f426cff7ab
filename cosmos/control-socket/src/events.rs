// SPDX-License-Identifier: Apache-2.0
//! Events from a daemon to its subscribers.
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::Event;

/// Events a subscriber may be behind before it is disconnected.
const QUEUE: usize = 256;

/// Spreads events to all subscriptions; never waits for any of them.
#[derive(Default)]
pub struct EventHub {
    subscribers: Mutex<Vec<SyncSender<Event>>>,
}

/// The receiving end, given to the server as [`crate::Reply::Events`].
pub struct Subscription(pub(crate) Receiver<Event>);

impl EventHub {
    pub fn subscribe(&self) -> Subscription {
        let (sender, receiver) = sync_channel(QUEUE);
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sender);
        Subscription(receiver)
    }

    /// Queues the event for every subscriber; one whose queue is full is dropped, and its
    /// connection closed, because a gap in the events would go unnoticed.
    pub fn publish(&self, event: &str, data: Value) {
        let event = Event {
            event: event.to_owned(),
            data,
        };
        let mut subscribers = self
            .subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| subscriber.try_send(event.clone()).is_ok());
    }
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
            assert_eq!(quick.0.recv().unwrap().data, n);
        }
        assert_eq!(slow.0.iter().count(), QUEUE);
        assert_eq!(hub.subscribers.lock().unwrap().len(), 1);
    }
}
