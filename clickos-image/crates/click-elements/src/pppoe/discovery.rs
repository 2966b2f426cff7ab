// SPDX-License-Identifier: Apache-2.0
//! Discovery (RFC 2516, section 5). No packet leaves state here but the request that has a cookie, which only a host gets
//! that receives frames at its address. All hosts together get a bounded number of answers a second.
use alloc::string::String;
use alloc::vec::Vec;

use click_wire::pppoe::{Repr, TAG_HEADER, Tags, code, tag};
use hmac::{Hmac, Mac};
use md5::Md5;

use super::login::digest;
use super::{Moment, SECOND_NS};
use crate::wireguard::crypto::same;

/// Offers, sessions and notices of unknown sessions in a second.
const OFFERS: u32 = 256;
const SESSIONS: u32 = 128;
const NOTICES: u32 = 32;
/// A cookie is good for one to two such times.
const COOKIE_NS: u64 = 60 * SECOND_NS;
/// The most bytes of tags (RFC 2516, section 5.1: an initiation leaves room for a relay's tag).
const TAGS: usize = 1484;

/// The request of a discovery packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Asks {
    /// An answer with this code and these tags.
    Answer(u8, Vec<u8>),
    /// A session: the tags of its confirmation, and a digest that tells requests of a host apart.
    Session(Vec<u8>, Vec<u8>),
    /// The end of a session.
    End(u16),
    /// Nothing that this server has.
    Nothing,
    /// Too much in this second.
    TooMuch,
}

/// Counts by the second.
#[derive(Default)]
struct Limiter {
    second: u64,
    count: u32,
}

impl Limiter {
    fn admits(&mut self, now_ns: u64, most: u32) -> bool {
        if now_ns / SECOND_NS != self.second {
            (self.second, self.count) = (now_ns / SECOND_NS, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}

/// The server as hosts find it.
#[derive(Default)]
pub struct Discovery {
    name: String,
    service: String,
    /// The key of cookies, and that of before.
    keys: [[u8; 32]; 2],
    renew_at_ns: u64,
    offers: Limiter,
    sessions: Limiter,
    notices: Limiter,
}

impl Discovery {
    /// A server with a name, and a service besides the empty one.
    pub fn new(name: String, service: String) -> Self {
        Self {
            name,
            service,
            ..Self::default()
        }
    }

    /// Takes over cookies and counts.
    pub fn take_from(&mut self, old: &mut Self) {
        let (name, service) = (
            core::mem::take(&mut self.name),
            core::mem::take(&mut self.service),
        );
        *self = core::mem::take(old);
        (self.name, self.service) = (name, service);
    }

    /// Reads a discovery packet from a host; `alone` if it was sent to this server only.
    pub fn read(
        &mut self,
        (header, payload): (Repr, &[u8]),
        mac: [u8; 6],
        alone: bool,
        moment: &mut Moment<'_>,
    ) -> Asks {
        if header.code == code::PADT && alone {
            return Asks::End(header.session);
        }
        let Ok(tags) = Tags::new(payload) else {
            return Asks::Nothing;
        };
        let service = tags.value(tag::SERVICE_NAME);
        let (Some(service), 0, 0..=TAGS) = (service, header.session, payload.len()) else {
            return Asks::Nothing;
        };
        let known = service.is_empty() || service == self.service.as_bytes();
        match header.code {
            code::PADI if known && !self.offers.admits(moment.now_ns, OFFERS) => Asks::TooMuch,
            code::PADI if known => self.offer(tags, service, mac, moment),
            code::PADR if alone => self.request(tags, (service, known), mac, moment),
            _ => Asks::Nothing,
        }
    }

    fn offer(
        &mut self,
        tags: Tags<'_>,
        service: &[u8],
        mac: [u8; 6],
        moment: &mut Moment<'_>,
    ) -> Asks {
        self.renew(moment);
        let mut answer = Vec::new();
        put(&mut answer, tag::AC_NAME, self.name.as_bytes());
        put(&mut answer, tag::SERVICE_NAME, service);
        if service.is_empty() && !self.service.is_empty() {
            put(&mut answer, tag::SERVICE_NAME, self.service.as_bytes());
        }
        put(&mut answer, tag::AC_COOKIE, &cookie(&self.keys[0], mac));
        repeat(&mut answer, tags);
        Asks::Answer(code::PADO, answer)
    }

    fn request(
        &mut self,
        tags: Tags<'_>,
        (service, known): (&[u8], bool),
        mac: [u8; 6],
        moment: &mut Moment<'_>,
    ) -> Asks {
        self.renew(moment);
        let given = tags.value(tag::AC_COOKIE).unwrap_or(&[]);
        let keys = self.keys.iter().filter(|key| **key != [0; 32]);
        let right = keys
            .map(|key| same(&cookie(key, mac), given))
            .fold(false, |a, b| a | b);
        if !right {
            return Asks::Nothing;
        }
        if !self.sessions.admits(moment.now_ns, SESSIONS) {
            return Asks::TooMuch;
        }
        let mut answer = Vec::new();
        put(&mut answer, tag::SERVICE_NAME, service);
        repeat(&mut answer, tags);
        if !known {
            put(&mut answer, tag::SERVICE_NAME_ERROR, b"no such service");
            return Asks::Answer(code::PADS, answer);
        }
        Asks::Session(answer, digest(tags.value(tag::HOST_UNIQ).unwrap_or(&[])))
    }

    /// True if a host may be told that its session is unknown.
    pub fn notices(&mut self, now_ns: u64) -> bool {
        self.notices.admits(now_ns, NOTICES)
    }

    fn renew(&mut self, moment: &mut Moment<'_>) {
        if moment.now_ns >= self.renew_at_ns {
            let overdue = moment.now_ns >= self.renew_at_ns.saturating_add(COOKIE_NS);
            let before = if overdue { [0; 32] } else { self.keys[0] };
            self.keys = [(moment.draw)(), before];
            self.renew_at_ns = moment.now_ns + COOKIE_NS;
        }
    }
}

/// The tags of a refusal for want of room.
pub fn no_room(mut confirmation: Vec<u8>) -> Vec<u8> {
    put(
        &mut confirmation,
        tag::AC_SYSTEM_ERROR,
        b"no room for a session",
    );
    confirmation
}

/// The cookie of an address.
fn cookie(key: &[u8; 32], mac: [u8; 6]) -> [u8; 16] {
    let mut sum = <Hmac<Md5> as Mac>::new_from_slice(key).expect("every length is a key's");
    sum.update(&mac);
    sum.finalize().into_bytes().into()
}

/// Repeats the marks of host and relay.
fn repeat(answer: &mut Vec<u8>, tags: Tags<'_>) {
    for kind in [tag::HOST_UNIQ, tag::RELAY_SESSION] {
        if let Some(value) = tags.value(kind) {
            put(answer, kind, value);
        }
    }
}

fn put(tags: &mut Vec<u8>, kind: u16, value: &[u8]) {
    tags.reserve(TAG_HEADER + value.len());
    tags.extend(kind.to_be_bytes());
    tags.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    tags.extend(value);
}
