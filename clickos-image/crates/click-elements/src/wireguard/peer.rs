// SPDX-License-Identifier: Apache-2.0
//! A peer: its sessions, the handshake under way, packets that wait for it, and its timers (WireGuard's paper, section 6).
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Endpoint;
use super::crypto::{Key, MAC, TAG};
use super::handshake::{
    INITIATION_LENGTH, Initiated, Own, Proven, RESPONSE_LENGTH, Remote, TIMESTAMP, initiate,
};
use super::network::Network;
use super::session::{HEADER, PADDING, Session};
use super::terms::Terms;
use crate::prelude::Packet;

const SECOND_NS: u64 = 1_000_000_000;
/// The side that began a session renews it after this time.
const REKEY_AFTER_NS: u64 = 120 * SECOND_NS;
/// No packet is sent or accepted after this time.
const REJECT_AFTER_NS: u64 = 180 * SECOND_NS;
const REKEY_TIMEOUT_NS: u64 = 5 * SECOND_NS;
const REKEY_ATTEMPTS_NS: u64 = 90 * SECOND_NS;
const KEEPALIVE_NS: u64 = 10 * SECOND_NS;
/// A cookie is valid for this long.
const COOKIE_NS: u64 = 120 * SECOND_NS;
/// Packets that wait for a handshake.
const WAITING: usize = 32;
/// Initiations that come faster are dropped.
const INITIATION_GAP_NS: u64 = SECOND_NS / 50;
/// The TAI64 label of 1970, and the ten seconds that TAI was ahead then.
const TAI64_1970: u64 = (1 << 62) + 10;

/// A handshake that we began.
struct Pending {
    initiated: Initiated,
    index: u32,
    began_ns: u64,
    sent_ns: u64,
    first_mac: [u8; MAC],
}

/// A peer.
pub struct Peer {
    /// The low byte of its sessions' numbers.
    pub place: u8,
    /// Its keys.
    pub remote: Remote,
    /// Where it is; it may move.
    pub endpoint: Option<Endpoint>,
    /// The endpoint of its terms.
    given: Option<Endpoint>,
    /// The addresses behind it.
    pub networks: Vec<Network>,
    /// Bytes received, sent.
    pub bytes: [u64; 2],
    /// When the last handshake ended.
    pub agreed_ns: Option<u64>,
    /// Packets that no handshake freed.
    pub lost: u64,
    current: Option<Session>,
    previous: Option<Session>,
    /// The session of a response that the peer has not used yet.
    next: Option<Session>,
    pending: Option<Pending>,
    waiting: VecDeque<Packet>,
    cookie: Option<([u8; MAC], u64)>,
    /// The last time in an initiation of the peer, and of ours.
    heard: [u8; TIMESTAMP],
    heard_ns: Option<u64>,
    stamped_ns: u64,
    /// When an empty packet is due, since the peer sent one and got none.
    keepalive_at_ns: Option<u64>,
    /// When the peer counts as silent, since it got a packet and sent none.
    silent_at_ns: Option<u64>,
    sent_ns: u64,
}

impl Peer {
    /// A peer that nothing is known of but its terms.
    pub fn new(terms: Terms, place: u8) -> Self {
        Self {
            place,
            remote: Remote::new(terms.public, terms.preshared),
            endpoint: terms.endpoint,
            given: terms.endpoint,
            networks: terms.networks,
            bytes: [0; 2],
            agreed_ns: None,
            lost: 0,
            current: None,
            previous: None,
            next: None,
            pending: None,
            waiting: VecDeque::new(),
            cookie: None,
            heard: [0; TIMESTAMP],
            heard_ns: None,
            stamped_ns: 0,
            keepalive_at_ns: None,
            silent_at_ns: None,
            sent_ns: 0,
        }
    }

    /// Takes other terms; sessions go on unless the preshared key is another.
    pub fn set_terms(&mut self, terms: Terms) {
        if terms.preshared != self.remote.preshared {
            let lost = self.lost + self.waiting.len() as u64;
            *self = Self {
                heard: self.heard,
                stamped_ns: self.stamped_ns,
                lost,
                ..Self::new(terms, self.place)
            };
            return;
        }
        if terms.endpoint != self.given {
            self.endpoint = terms.endpoint.or(self.endpoint);
            self.given = terms.endpoint;
        }
        self.networks = terms.networks;
    }

    /// Begins a handshake, or begins it again, unless one was just sent; the message.
    pub fn begin(
        &mut self,
        own: &Own,
        index: u32,
        now_ns: u64,
        ephemeral: Key,
    ) -> Option<[u8; INITIATION_LENGTH]> {
        self.endpoint?;
        let before = self.pending.as_ref();
        if before.is_some_and(|p| now_ns.saturating_sub(p.sent_ns) < REKEY_TIMEOUT_NS) {
            return None;
        }
        let began_ns = before.map_or(now_ns, |p| p.began_ns);
        self.stamped_ns = now_ns.max(self.stamped_ns + 1);
        let stamp = timestamp(self.stamped_ns);
        let (initiated, mut message) = initiate(own, &self.remote, ephemeral, index, &stamp)?;
        let first_mac = self.sign(&mut message, now_ns);
        self.pending = Some(Pending {
            initiated,
            index,
            began_ns,
            sent_ns: now_ns,
            first_mac,
        });
        Some(message)
    }

    fn sign(&self, message: &mut [u8], now_ns: u64) -> [u8; MAC] {
        let cookie = self.cookie.as_ref().filter(|c| now_ns < c.1);
        self.remote.sign(message, cookie.map(|c| &c.0))
    }

    /// True if an initiation may be answered: it is later than all before, and they do not come too fast.
    pub fn accepts(&self, proven: &Proven, now_ns: u64) -> bool {
        let slow = self
            .heard_ns
            .is_none_or(|at| now_ns.saturating_sub(at) >= INITIATION_GAP_NS);
        slow && proven.timestamp > self.heard
    }

    /// Answers an initiation; the response.
    pub fn answer(
        &mut self,
        proven: Proven,
        sender: u32,
        index: u32,
        now_ns: u64,
        ephemeral: Key,
    ) -> Option<[u8; RESPONSE_LENGTH]> {
        (self.heard, self.heard_ns) = (proven.timestamp, Some(now_ns));
        let (mut message, keys) = proven.respond(&self.remote, ephemeral, index)?;
        self.sign(&mut message, now_ns);
        self.next = Some(Session::new(keys, index, sender, now_ns, false));
        self.agreed_ns = Some(now_ns);
        Some(message)
    }

    /// Takes the response to our initiation; false if it is another's.
    pub fn agree(
        &mut self,
        own: &Own,
        index: u32,
        message: &[u8; RESPONSE_LENGTH],
        now_ns: u64,
    ) -> bool {
        let pending = self.pending.as_ref().filter(|p| p.index == index);
        let read = pending.and_then(|p| p.initiated.read_response(own, &self.remote, message));
        let Some((keys, theirs)) = read else {
            return false;
        };
        self.pending = None;
        self.next = None;
        self.agreed_ns = Some(now_ns);
        let session = Session::new(keys, index, theirs, now_ns, true);
        self.previous = self.current.replace(session);
        self.silent_at_ns = None;
        true
    }

    /// Takes a cookie for the next initiation; false if it is for another message.
    pub fn take_cookie(&mut self, index: u32, reply: &[u8; 64], now_ns: u64) -> bool {
        let pending = self.pending.as_ref().filter(|p| p.index == index);
        let cookie = pending.and_then(|p| self.remote.read_cookie(reply, &p.first_mac));
        self.cookie = cookie
            .map(|c| (c, now_ns + COOKIE_NS))
            .or(self.cookie.take());
        cookie.is_some()
    }

    /// Decrypts a message of a session. The first message of a new session makes it the current one.
    pub fn open<'m>(
        &mut self,
        index: u32,
        message: &'m mut [u8],
        now_ns: u64,
    ) -> Option<&'m mut [u8]> {
        let all = [&mut self.current, &mut self.previous, &mut self.next];
        let found = all.into_iter().flatten().find(|s| s.local == index)?;
        if now_ns.saturating_sub(found.born_ns) >= REJECT_AFTER_NS {
            return None;
        }
        let length = message.len() as u64;
        let text = found.open(message)?;
        if self.next.as_ref().is_some_and(|s| s.local == index) {
            self.previous = core::mem::replace(&mut self.current, self.next.take());
            self.pending = None;
        }
        self.bytes[0] += length;
        self.silent_at_ns = None;
        if !text.is_empty() {
            self.keepalive_at_ns.get_or_insert(now_ns + KEEPALIVE_NS);
        }
        Some(text)
    }

    fn usable(&mut self, now_ns: u64) -> Option<&mut Session> {
        let young = |s: &&mut Session| now_ns.saturating_sub(s.born_ns) < REJECT_AFTER_NS;
        self.current.as_mut().filter(young)
    }

    /// Encrypts a packet that begins with its IP header; false without a session.
    pub fn seal(&mut self, packet: &mut Packet, now_ns: u64) -> bool {
        let padded = packet.len().next_multiple_of(PADDING);
        if self.usable(now_ns).is_none()
            || !packet.put(padded - packet.len() + TAG)
            || !packet.push(HEADER)
        {
            return false;
        }
        let length = packet.len();
        let sealed = self
            .usable(now_ns)
            .is_some_and(|s| s.seal(packet.data_mut()));
        if sealed {
            self.note_sent(length, now_ns);
            self.silent_at_ns
                .get_or_insert(now_ns + KEEPALIVE_NS + REKEY_TIMEOUT_NS);
        }
        sealed
    }

    /// An empty packet; `None` without a session.
    pub fn keepalive(&mut self, now_ns: u64) -> Option<[u8; HEADER + TAG]> {
        let mut message = [0; HEADER + TAG];
        let sealed = self.usable(now_ns)?.seal(&mut message);
        self.note_sent(message.len(), now_ns);
        sealed.then_some(message)
    }

    fn note_sent(&mut self, bytes: usize, now_ns: u64) {
        self.bytes[1] += bytes as u64;
        self.sent_ns = now_ns;
        self.keepalive_at_ns = None;
    }

    /// Lets a packet wait for a session; the oldest goes where there are too many.
    pub fn wait(&mut self, packet: Packet) {
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.waiting.push_back(packet);
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The packets that wait.
    pub fn take_waiting(&mut self) -> VecDeque<Packet> {
        core::mem::take(&mut self.waiting)
    }

    /// True if a session has to be made, or made again before it ends.
    pub fn is_due(&self, now_ns: u64, received: bool) -> bool {
        let Some(session) = &self.current else {
            return true;
        };
        let age_ns = now_ns.saturating_sub(session.born_ns);
        let late_ns = match received {
            true => REJECT_AFTER_NS - KEEPALIVE_NS - REKEY_TIMEOUT_NS,
            false => REKEY_AFTER_NS,
        };
        age_ns >= REJECT_AFTER_NS || (session.is_ours && age_ns >= late_ns)
    }

    /// When something is to be done next.
    pub fn deadline_ns(&self, keepalive_ns: u64) -> Option<u64> {
        let retry = self.pending.as_ref().map(|p| p.sent_ns + REKEY_TIMEOUT_NS);
        let end = |s: &Option<Session>| s.as_ref().map(|s| s.born_ns + REJECT_AFTER_NS);
        let steady =
            (keepalive_ns > 0 && self.endpoint.is_some()).then(|| self.sent_ns + keepalive_ns);
        let all = [
            retry,
            self.keepalive_at_ns,
            self.silent_at_ns,
            steady,
            end(&self.current),
            end(&self.previous),
            end(&self.next),
        ];
        all.into_iter().flatten().min()
    }

    /// Ends what is too old. Tells what to send now.
    pub fn tick(&mut self, now_ns: u64, keepalive_ns: u64) -> Due {
        for session in [&mut self.current, &mut self.previous, &mut self.next] {
            if session
                .as_ref()
                .is_some_and(|s| now_ns >= s.born_ns + REJECT_AFTER_NS)
            {
                *session = None;
            }
        }
        if self
            .pending
            .as_ref()
            .is_some_and(|p| now_ns >= p.began_ns + REKEY_ATTEMPTS_NS)
        {
            self.pending = None;
            self.lost += self.waiting.len() as u64;
            self.waiting.clear();
        }
        let passed = |at: Option<u64>| at.is_some_and(|at| now_ns >= at);
        let retry = passed(self.pending.as_ref().map(|p| p.sent_ns + REKEY_TIMEOUT_NS));
        let silent = passed(self.silent_at_ns);
        let steady = keepalive_ns > 0 && now_ns >= self.sent_ns + keepalive_ns;
        let keepalive = steady || passed(self.keepalive_at_ns);
        if silent {
            self.silent_at_ns = None;
        }
        if keepalive {
            (self.keepalive_at_ns, self.sent_ns) = (None, now_ns);
        }
        Due {
            handshake: retry || silent || (steady && self.current.is_none()),
            keepalive,
        }
    }

    /// Forgets all but its terms.
    pub fn forget(&mut self) {
        *self = Self::new(self.terms(), self.place);
    }

    /// The terms that it has now.
    pub fn terms(&self) -> Terms {
        Terms {
            public: self.remote.public,
            preshared: self.remote.preshared,
            endpoint: self.endpoint,
            networks: self.networks.clone(),
        }
    }
}

/// Messages that a peer is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// An initiation.
    pub handshake: bool,
    /// An empty packet.
    pub keepalive: bool,
}

/// A time as TAI64N: seconds and nanoseconds.
fn timestamp(unix_ns: u64) -> [u8; TIMESTAMP] {
    let mut label = [0; TIMESTAMP];
    let (seconds, rest) = (unix_ns / SECOND_NS, unix_ns % SECOND_NS);
    label[..8].copy_from_slice(&(TAI64_1970 + seconds).to_be_bytes());
    label[8..].copy_from_slice(&(rest as u32).to_be_bytes());
    label
}
