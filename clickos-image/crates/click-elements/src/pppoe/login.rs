// SPDX-License-Identifier: Apache-2.0
//! A subscriber proves its name: by password (PAP, RFC 1334) or by challenge (CHAP with MD5, RFC 1994).
use alloc::string::String;
use alloc::vec::Vec;

use click_wire::ppp::{self, Control};
use md5::{Digest, Md5};

use super::book::{Book, checked_name};
use super::layers::Method;
use super::{Moment, Outbox, REQUESTS, RESTART_NS};
use crate::radius::client::{self, Question};
use crate::radius::packet::PASSWORD;
use crate::wireguard::crypto::same;

const CHALLENGE: usize = 16;

mod chap {
    pub const CHALLENGE: u8 = 1;
    pub const RESPONSE: u8 = 2;
    pub const SUCCESS: u8 = 3;
    pub const FAILURE: u8 = 4;
}

mod pap {
    pub const REQUEST: u8 = 1;
    pub const ACK: u8 = 2;
    pub const NAK: u8 = 3;
}

/// The effect of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing.
    None,
    /// The subscriber is this user.
    User(String),
    /// Name or password are wrong.
    Wrong,
    /// A RADIUS server decides.
    Ask(Question),
}

/// A login under way, or done.
pub struct Login {
    method: Method,
    challenge: [u8; CHALLENGE],
    id: u8,
    challenges_left: u8,
    resend_at_ns: u64,
    is_done: bool,
    /// The identifier of the request that waits for a decision.
    waits: Option<u8>,
}

impl Login {
    /// Asks the subscriber who it is.
    pub fn begin(method: Method, name: &str, moment: &mut Moment<'_>, out: &mut Outbox) -> Self {
        let mut me = Self {
            method,
            challenge: [0; CHALLENGE],
            id: 0,
            challenges_left: REQUESTS,
            resend_at_ns: 0,
            is_done: false,
            waits: None,
        };
        me.tick(name, moment, out);
        me
    }

    /// Sends a new challenge if it is time for one; false after too many.
    pub fn tick(&mut self, name: &str, moment: &mut Moment<'_>, out: &mut Outbox) -> bool {
        let waits = self.is_done || self.waits.is_some() || moment.now_ns < self.resend_at_ns;
        if waits || self.method == Method::Pap {
            return true;
        }
        let Some(left) = self.challenges_left.checked_sub(1) else {
            return false;
        };
        self.challenges_left = left;
        self.id = self.id.wrapping_add(1);
        self.resend_at_ns = moment.now_ns + RESTART_NS;
        self.challenge
            .copy_from_slice(&(moment.draw)()[..CHALLENGE]);
        let data = [&[CHALLENGE as u8], &self.challenge[..], name.as_bytes()].concat();
        out.control(ppp::CHAP, chap::CHALLENGE, self.id, &data);
        true
    }

    /// Takes a packet of a login protocol. RADIUS servers decide about names that are no user's, if there are some.
    pub fn receive(
        &mut self,
        protocol: u16,
        control: &Control<'_>,
        (book, asks): (&Book, bool),
        out: &mut Outbox,
    ) -> Proof {
        match (self.method, protocol) {
            (Method::Pap, ppp::PAP) if control.code == pap::REQUEST => {
                self.password(control, (book, asks), out)
            }
            (Method::Chap, ppp::CHAP) if control.code == chap::RESPONSE => {
                self.response(control, (book, asks), out)
            }
            _ => Proof::None,
        }
    }

    /// True if a server decides already: the answer is for this request, and the first one's name counts.
    fn waits_with(&mut self, id: u8) -> bool {
        let waits = self.waits.is_some();
        self.waits = self.waits.map(|_| id);
        waits
    }

    /// The question for a server about a name that it may know.
    fn question(&mut self, id: u8, name: &[u8], proof: client::Proof) -> Option<Proof> {
        let name = core::str::from_utf8(name).ok()?;
        let name = checked_name(name).ok()?;
        self.waits = Some(id);
        Some(Proof::Ask(Question { name, proof }))
    }

    /// Tells the subscriber a server's decision.
    pub fn decide(&mut self, right: bool, out: &mut Outbox) {
        if let Some(id) = self.waits.take() {
            self.is_done = right;
            self.answer(id, right, out);
        }
    }

    /// True if a server decides.
    pub fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    /// No server was asked: the subscriber's next request counts.
    pub fn unasked(&mut self) {
        self.waits = None;
    }

    fn answer(&self, id: u8, right: bool, out: &mut Outbox) {
        match (self.method, right) {
            (Method::Pap, true) => out.control(ppp::PAP, pap::ACK, id, &[0]),
            (Method::Pap, false) => out.control(ppp::PAP, pap::NAK, id, b"\x0flogin incorrect"),
            (Method::Chap, true) => out.control(ppp::CHAP, chap::SUCCESS, id, &[]),
            (Method::Chap, false) => out.control(ppp::CHAP, chap::FAILURE, id, b"login incorrect"),
        }
    }

    fn password(
        &mut self,
        control: &Control<'_>,
        (book, asks): (&Book, bool),
        out: &mut Outbox,
    ) -> Proof {
        let Some((name, password)) = credentials(control.data) else {
            return Proof::None;
        };
        if self.is_done {
            // its Ack was lost
            self.answer(control.id, true, out);
            return Proof::None;
        }
        if self.waits_with(control.id) {
            return Proof::None;
        }
        if asks && !is_user(book, name) && password.len() <= PASSWORD {
            let proof = client::Proof::Password(password.to_vec());
            if let Some(asked) = self.question(control.id, name, proof) {
                return asked;
            }
        }
        let (known, expected) = expected(book, name);
        let right = same(expected, password) && known;
        self.answer(control.id, right, out);
        self.proof(right, name)
    }

    fn response(
        &mut self,
        control: &Control<'_>,
        (book, asks): (&Book, bool),
        out: &mut Outbox,
    ) -> Proof {
        let parts = control.data.split_first_chunk::<{ 1 + CHALLENGE }>();
        let Some((value, name)) = parts.filter(|_| control.id == self.id) else {
            return Proof::None;
        };
        if self.is_done {
            // its Success was lost
            self.answer(control.id, true, out);
            return Proof::None;
        }
        if self.waits_with(control.id) {
            return Proof::None;
        }
        let is_long = usize::from(value[0]) == CHALLENGE;
        if asks && !is_user(book, name) && is_long {
            let mut said = *value;
            said[0] = control.id;
            let proof = client::Proof::Chap(said, self.challenge);
            if let Some(asked) = self.question(control.id, name, proof) {
                return asked;
            }
        }
        let (known, expected) = expected(book, name);
        let sum = answer(control.id, expected, &self.challenge);
        let right = is_long && same(&sum, &value[1..]) && known;
        self.answer(control.id, right, out);
        self.proof(right, name)
    }

    fn proof(&mut self, right: bool, name: &[u8]) -> Proof {
        self.is_done = right;
        match core::str::from_utf8(name) {
            Ok(name) if right => Proof::User(name.into()),
            _ => Proof::Wrong,
        }
    }
}

/// True if a name is that of a user here.
fn is_user(book: &Book, name: &[u8]) -> bool {
    core::str::from_utf8(name).is_ok_and(|name| book.users.get(name).is_some())
}

/// True if a user of this name can log in, and its password. Strangers get one too, so that the work is the same.
fn expected<'b>(book: &'b Book, name: &[u8]) -> (bool, &'b [u8]) {
    let name = core::str::from_utf8(name).unwrap_or("");
    let password = book.passwords.get(name);
    let known = book.users.get(name).is_some() && password.is_some();
    (known, password.unwrap_or(b"\0"))
}

/// The name and the password of a PAP request.
fn credentials(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = prefixed(data)?;
    let (password, _) = prefixed(rest)?;
    Some((name, password))
}

/// Bytes after their length.
fn prefixed(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// The answer to a challenge (RFC 1994, section 4.1).
fn answer(id: u8, password: &[u8], challenge: &[u8]) -> [u8; 16] {
    let mut sum = Md5::new();
    let parts: [&[u8]; 3] = [&[id], password, challenge];
    parts.iter().for_each(|part| Digest::update(&mut sum, part));
    sum.finalize().into()
}

/// A short name for a text.
pub fn digest(text: &[u8]) -> Vec<u8> {
    Md5::digest(text).to_vec()
}
