// SPDX-License-Identifier: Apache-2.0
//! One end of the connection by which two routers copy their flows to each other.
//!
//! Each end has a number for each connection, the first of which is random. Who proves to know the number that
//! an end offers gets a new connection; the number is never offered again. So no message that was recorded in
//! an earlier connection is taken, and both ends agree where their messages begin. Messages are numbered and
//! confirmed; those that are not confirmed are sent again.
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
    /// The numbers of this connection.
    own: u64,
    peer: Option<u64>,
    /// The number of the next one.
    offer: u64,
    /// The end that looks for this one, or 0 for one that has an old number.
    asked_by: Option<u64>,
    sent: VecDeque<(u64, String)>,
    next: u64,
    sent_ns: u64,
    received: u64,
    /// The datagrams that were sent, and the last one that arrived.
    serials: [u64; 2],
    heard_ns: u64,
    confirms: bool,
    /// Messages with flows, both ways.
    pub counts: [u64; 2],
}

impl Copier {
    /// An end that looks for the other one; `offer` is random and odd.
    pub fn new(key: Key, offer: u64) -> Self {
        Self {
            key,
            own: 0,
            peer: None,
            offer,
            asked_by: None,
            sent: VecDeque::new(),
            next: 1,
            sent_ns: 0,
            received: 0,
            serials: [0; 2],
            heard_ns: 0,
            confirms: false,
            counts: [0; 2],
        }
    }

    /// True while both ends hear each other.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// The numbers of this end and of the other one, which has them the other way round.
    pub fn ends(&self) -> [u64; 2] {
        [self.own, self.peer.unwrap_or(0)]
    }

    /// Messages that wait for a confirmation.
    pub fn waiting(&self) -> usize {
        self.sent.len()
    }

    /// True if the next message with flows may be sent.
    pub fn has_room(&self) -> bool {
        self.is_connected() && self.sent.len() < WINDOW
    }

    /// A message to the other end.
    fn message(&mut self, peer: u64, number: u64, body: &str) -> Vec<u8> {
        self.write([self.own, peer], number, body)
    }

    fn write(&mut self, [from, to]: [u64; 2], number: u64, body: &str) -> Vec<u8> {
        self.serials[0] += 1;
        Message {
            from,
            to,
            number,
            received: self.received,
            serial: self.serials[0],
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
            let sent = core::mem::take(&mut self.sent);
            due.extend(sent.iter().map(|(n, body)| self.message(peer, *n, body)));
            self.sent = sent;
        }
        let is_idle = passed_ns >= IDLE_NS && self.sent.is_empty();
        match self.peer {
            Some(peer) if due.is_empty() && (self.confirms || is_idle) => {
                due.push(self.message(peer, 0, ""));
            }
            None if is_idle => due.push(self.write([self.offer, 0], 0, "")),
            _ => {}
        }
        if !due.is_empty() {
            (self.sent_ns, self.confirms) = (now_ns, false);
        }
        if let Some(asked_by) = self.asked_by.take() {
            due.push(self.write([self.offer, asked_by], 0, ""));
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
        if [self.own, self.offer].contains(&message.from) {
            return Heard::Nothing;
        }
        if message.to == self.offer {
            self.connect(&message, now_ns);
            return Heard::New;
        }
        if message.to != self.own || self.peer != Some(message.from) {
            // It may be old. Who looks for this end gets the number that proves the contrary.
            let looks = message.to == 0;
            if looks || self.peer.is_none() {
                self.asked_by = Some(if looks { message.from } else { 0 });
            }
            return Heard::Nothing;
        }
        if message.serial > self.serials[1] {
            (self.serials[1], self.heard_ns) = (message.serial, now_ns);
        }
        self.confirmed(message.received, now_ns);
        self.take(message)
    }

    /// Begins a connection with an end that knows this one's offer.
    fn connect(&mut self, message: &Message, now_ns: u64) {
        self.disconnect();
        (self.own, self.peer) = (self.offer, Some(message.from));
        self.offer = self.offer.wrapping_add(2);
        (self.received, self.next, self.serials[1]) = (0, 1, message.serial);
        (self.asked_by, self.confirms, self.heard_ns) = (None, true, now_ns);
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

    /// Exchanges messages for two seconds; returns what each end heard.
    fn talk(a: &mut Copier, b: &mut Copier, start_ns: u64) -> [Vec<Heard>; 2] {
        let mut heard = [Vec::new(), Vec::new()];
        for step in 1..=2_000 * MS / PAUSE_NS {
            let now = start_ns + step * PAUSE_NS;
            let to_b = a.due(now);
            heard[1].extend(to_b.iter().map(|m| b.receive(m, now)));
            let to_a = b.due(now);
            heard[0].extend(to_a.iter().map(|m| a.receive(m, now)));
        }
        heard.map(|heard| heard.into_iter().filter(|h| *h != Heard::Nothing).collect())
    }

    /// One end hears nothing for longer than the other, which does not notice.
    #[test]
    fn both_ends_begin_anew_if_one_of_them_has_lost_the_other() {
        let (mut a, mut b) = pair();
        let start = 3 * IDLE_NS;
        for n in 0..5 {
            let message = a.flows("nat", &format!("before {n}"), start).unwrap();
            assert_ne!(b.receive(&message, start), Heard::Nothing);
        }
        for step in 1..=(SILENCE_NS + 1_000 * MS) / PAUSE_NS {
            let now = start + step * PAUSE_NS;
            a.due(now).iter().for_each(|m| drop(b.receive(m, now)));
            b.due(now);
        }
        assert!(!a.is_connected());
        let healed = start + SILENCE_NS + 1_000 * MS;
        let heard = talk(&mut a, &mut b, healed);
        assert_eq!(heard, [vec![Heard::New], vec![Heard::New]]);
        let now = healed + 2_000 * MS;
        let after = |from: &mut Copier, to: &mut Copier| {
            let message = from.flows("nat", "after", now).unwrap();
            assert_eq!(to.receive(&message, now), flows("after"));
        };
        after(&mut a, &mut b);
        after(&mut b, &mut a);
        let heard = talk(&mut a, &mut b, now);
        assert_eq!((heard, a.waiting(), b.waiting()), ([vec![], vec![]], 0, 0));
    }

    #[test]
    fn no_message_of_an_earlier_connection_is_taken() {
        let (mut a, mut b) = pair();
        let mut recorded = Vec::new();
        let now = 3 * IDLE_NS;
        for n in 1..4 {
            recorded.push(a.flows("nat", &n.to_string(), now).unwrap());
        }
        let mut next = Copier::new(KEY, 55);
        recorded.extend(next.due(now));
        for message in &recorded {
            b.receive(message, now);
        }
        let heard = talk(&mut next, &mut b, now);
        assert_eq!(heard, [vec![Heard::New], vec![Heard::New]]);
        let later = now + 2_000 * MS;
        for message in recorded.iter().chain(&recorded) {
            assert_eq!(b.receive(message, later), Heard::Nothing);
            b.due(later)
                .iter()
                .for_each(|m| assert_eq!(next.receive(m, later), Heard::Nothing));
        }
        let message = next.flows("nat", "new", later).unwrap();
        assert_eq!(b.receive(&message, later), flows("new"));
    }

    #[test]
    fn repeated_datagrams_keep_no_connection() {
        let (mut a, mut b) = pair();
        let last = a.due(4 * IDLE_NS);
        assert_eq!(last.len(), 1);
        for step in 0..2 * SILENCE_NS / PAUSE_NS {
            let now = 4 * IDLE_NS + step * PAUSE_NS;
            last.iter().for_each(|m| drop(b.receive(m, now)));
            b.due(now);
        }
        assert!(!b.is_connected());
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
