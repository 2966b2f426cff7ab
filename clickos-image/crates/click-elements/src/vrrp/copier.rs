// SPDX-License-Identifier: Apache-2.0
//! One end of the connection by which two routers copy their flows to each other.
//!
//! Each end draws a number at its start. A message is new if it has the receiver's number, so no message
//! that was recorded before the start of an end is taken. Messages are numbered and confirmed; those that
//! are not confirmed are sent again.
use alloc::collections::VecDeque;

use super::message::{Key, Message};
use crate::prelude::*;

const NS_PER_MS: u64 = 1_000_000;
/// Time between two looks for changes.
pub const PAUSE_NS: u64 = 50 * NS_PER_MS;
/// An end that has nothing to send confirms this often, and looks this often for the other end.
const IDLE_NS: u64 = 500 * NS_PER_MS;
/// A message that was not confirmed for this time is sent again.
const AGAIN_NS: u64 = 100 * NS_PER_MS;
/// The other end is gone when it was silent for this time.
const SILENCE_NS: u64 = 3_000 * NS_PER_MS;
/// The most messages that were sent and not confirmed.
const WINDOW: usize = 64;

/// What a message means for the flows.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Nothing,
    /// The other end is new: it needs all flows.
    New,
    /// A text for the handler `merge` of an element.
    Flows {
        element: String,
        text: String,
    },
}

/// One end.
#[derive(Debug)]
pub struct Copier {
    key: Key,
    own: u64,
    peer: Option<u64>,
    /// The end that is to prove that it is there now.
    asked_by: Option<u64>,
    sent: VecDeque<(u64, String)>,
    next: u64,
    sent_ns: u64,
    received: u64,
    heard_ns: u64,
    confirms: bool,
    /// Messages with flows, both ways.
    pub counts: [u64; 2],
}

impl Copier {
    /// An end that looks for the other one; `own` is random.
    pub fn new(key: Key, own: u64) -> Self {
        Self {
            key,
            own,
            peer: None,
            asked_by: None,
            sent: VecDeque::new(),
            next: 1,
            sent_ns: 0,
            received: 0,
            heard_ns: 0,
            confirms: false,
            counts: [0; 2],
        }
    }

    /// True while both ends hear each other.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// Messages that wait for a confirmation.
    pub fn waiting(&self) -> usize {
        self.sent.len()
    }

    /// True if the next message with flows may be sent.
    pub fn has_room(&self) -> bool {
        self.is_connected() && self.sent.len() < WINDOW
    }

    fn message(&self, to: u64, number: u64, body: &str) -> Vec<u8> {
        Message {
            from: self.own,
            to,
            number,
            received: self.received,
            body: body.to_string(),
        }
        .bytes(&self.key)
    }

    /// The message with changed flows of an element.
    pub fn flows(&mut self, element: &str, text: &str, now_ns: u64) -> Option<Vec<u8>> {
        let peer = self.peer?;
        let body = format!("{element}\n{text}");
        let message = self.message(peer, self.next, &body);
        if self.sent.is_empty() {
            self.sent_ns = now_ns;
        }
        self.sent.push_back((self.next, body));
        self.next += 1;
        self.counts[0] += 1;
        self.confirms = false;
        Some(message)
    }

    /// What is due besides changed flows: repeated messages, a confirmation, a search for the other end.
    pub fn due(&mut self, now_ns: u64) -> Vec<Vec<u8>> {
        if self.peer.is_some() && now_ns.saturating_sub(self.heard_ns) > SILENCE_NS {
            self.disconnect();
        }
        let passed_ns = now_ns.saturating_sub(self.sent_ns);
        let mut due = Vec::new();
        if let (Some(peer), true) = (self.peer, passed_ns >= AGAIN_NS) {
            due.extend(
                self.sent
                    .iter()
                    .map(|(n, body)| self.message(peer, *n, body)),
            );
        }
        let asked_by = self.asked_by.take();
        let is_idle = passed_ns >= IDLE_NS && self.sent.is_empty();
        if due.is_empty() && (self.confirms || is_idle || asked_by.is_some()) {
            due.push(self.message(asked_by.or(self.peer).unwrap_or(0), 0, ""));
        }
        if !due.is_empty() {
            (self.sent_ns, self.confirms) = (now_ns, false);
        }
        due
    }

    fn disconnect(&mut self) {
        self.peer = None;
        self.sent.clear();
    }

    /// A datagram arrived.
    pub fn receive(&mut self, bytes: &[u8], now_ns: u64) -> Heard {
        let Some(message) = Message::parse(bytes, &self.key) else {
            return Heard::Nothing;
        };
        if message.from == self.own {
            return Heard::Nothing;
        }
        if message.to != self.own {
            // It may be old. Its sender gets the number that proves the contrary.
            self.asked_by = Some(message.from);
            return Heard::Nothing;
        }
        self.heard_ns = now_ns;
        if self.peer != Some(message.from) {
            self.disconnect();
            (self.peer, self.received, self.next) = (Some(message.from), 0, 1);
            self.confirms = true;
            return Heard::New;
        }
        self.confirmed(message.received, now_ns);
        self.take(message)
    }

    fn confirmed(&mut self, received: u64, now_ns: u64) {
        let before = self.sent.len();
        self.sent.retain(|(number, _)| *number > received);
        if self.sent.len() < before {
            self.sent_ns = now_ns;
        }
    }

    fn take(&mut self, message: Message) -> Heard {
        if message.number == 0 {
            return Heard::Nothing;
        }
        self.confirms = true;
        if message.number != self.received + 1 {
            return Heard::Nothing;
        }
        self.received = message.number;
        let Some((element, text)) = message.body.split_once('\n') else {
            return Heard::Nothing;
        };
        self.counts[1] += 1;
        let (element, text) = (element.to_string(), text.to_string());
        Heard::Flows { element, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [3; 32];
    const MS: u64 = NS_PER_MS;

    /// Two ends that hear each other.
    fn pair() -> (Copier, Copier) {
        let (mut a, mut b) = (Copier::new(KEY, 11), Copier::new(KEY, 22));
        let mut news = 0;
        for round in 1..4 {
            for message in a.due(round * IDLE_NS) {
                news += u32::from(b.receive(&message, round * IDLE_NS) == Heard::New);
            }
            for message in b.due(round * IDLE_NS) {
                news += u32::from(a.receive(&message, round * IDLE_NS) == Heard::New);
            }
        }
        assert_eq!((news, a.is_connected(), b.is_connected()), (2, true, true));
        (a, b)
    }

    fn flows(text: &str) -> Heard {
        let (element, text) = ("nat".to_string(), text.to_string());
        Heard::Flows { element, text }
    }

    #[test]
    fn flows_arrive_once_and_in_order() {
        let (mut a, mut b) = pair();
        let now = 3 * IDLE_NS;
        let one = a.flows("nat", "1", now).unwrap();
        let two = a.flows("nat", "2", now).unwrap();
        assert_eq!(b.receive(&two, now), Heard::Nothing, "one is missing");
        assert_eq!(b.receive(&one, now), flows("1"));
        assert_eq!(b.receive(&one, now), Heard::Nothing, "a repeated message");
        for message in b.due(now) {
            a.receive(&message, now);
        }
        assert_eq!(a.waiting(), 1);
        let again = a.due(now + AGAIN_NS);
        assert_eq!(again.len(), 1);
        assert_eq!(b.receive(&again[0], now + AGAIN_NS), flows("2"));
        b.due(now + AGAIN_NS)
            .iter()
            .for_each(|m| drop(a.receive(m, now)));
        assert_eq!((a.waiting(), a.counts, b.counts), (0, [2, 0], [0, 2]));
    }

    #[test]
    fn nothing_recorded_before_a_start_is_taken() {
        let (mut a, _) = pair();
        let old = a.flows("nat", "old", 4 * IDLE_NS).unwrap();
        let mut new = Copier::new(KEY, 33);
        assert_eq!(new.receive(&old, 0), Heard::Nothing);
        assert!(!new.is_connected());
        assert_eq!(
            new.due(0).len(),
            1,
            "one answer, however often it is repeated"
        );
        (0..9).for_each(|_| drop(new.receive(&old, MS)));
        assert_eq!(new.due(MS).len(), 1);
    }

    #[test]
    fn an_end_that_starts_again_gets_everything() {
        let (mut a, _) = pair();
        let mut b = Copier::new(KEY, 44);
        let mut heard = Vec::new();
        for round in 4..8 {
            let now = round * IDLE_NS;
            b.due(now)
                .iter()
                .for_each(|m| heard.push(a.receive(m, now)));
            a.due(now).iter().for_each(|m| drop(b.receive(m, now)));
        }
        assert!(heard.contains(&Heard::New));
        assert!(a.is_connected() && b.is_connected());
    }

    #[test]
    fn a_silent_end_is_gone_and_memory_is_bounded() {
        let (mut a, _) = pair();
        while a.has_room() {
            a.flows("nat", "text", 3 * IDLE_NS).unwrap();
        }
        assert_eq!(a.waiting(), WINDOW);
        a.due(3 * IDLE_NS + SILENCE_NS + 1);
        assert_eq!((a.is_connected(), a.waiting()), (false, 0));
        assert_eq!(a.flows("nat", "text", 0), None);
    }
}
