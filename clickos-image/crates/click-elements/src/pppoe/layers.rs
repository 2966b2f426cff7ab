// SPDX-License-Identifier: Apache-2.0
//! The options of a link (RFC 1661, section 6) and of IPv4 on it (RFC 1332, RFC 1877).
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use click_wire::ppp::{self, Options};

use super::negotiation::{Layer, Verdict};
use super::{MRU, Moment};

/// The least MRU that a peer may ask for; IPv4 demands 68 (RFC 791).
pub const MIN_MRU: u16 = 128;

/// How a subscriber proves its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It sends its password.
    Pap,
    /// It answers a challenge with an MD5 sum.
    Chap,
}

impl Method {
    /// The value of the option.
    fn value(self) -> &'static [u8] {
        match self {
            Self::Pap => &[0xc0, 0x23],
            Self::Chap => &[0xc2, 0x23, 5],
        }
    }
}

/// The link.
pub struct Link {
    /// This end's magic number, by which a loop shows.
    pub magic: u32,
    /// The method that this end asks for.
    pub method: Method,
    /// The other method is good, too.
    pub either: bool,
    /// The longest packet that the peer takes.
    pub peer_mru: u16,
    asks_mru: bool,
    asks_magic: bool,
}

impl Link {
    /// A link before its negotiation.
    pub fn new(magic: u32, method: Method, either: bool) -> Self {
        Self {
            magic,
            method,
            either,
            peer_mru: MRU,
            asks_mru: true,
            asks_magic: true,
        }
    }

    /// The peer wants to prove its name by another method; false if none is left. Hosts that propose one that this end
    /// does not know, such as MS-CHAP, may still know PAP.
    fn choose(&mut self, value: &[u8]) -> bool {
        let known = [Method::Pap, Method::Chap]
            .into_iter()
            .find(|method| method.value() == value);
        let before = self.method;
        if self.either {
            self.method = known.unwrap_or(Method::Pap);
        }
        known == Some(self.method) || before != self.method
    }
}

const OPTION_MRU: u8 = 1;
const OPTION_LOGIN: u8 = 3;
const OPTION_MAGIC: u8 = 5;

/// Adds an option.
pub fn put(options: &mut Vec<u8>, kind: u8, value: &[u8]) {
    let length = u8::try_from(value.len() + 2).unwrap_or(u8::MAX);
    options.extend([kind, length]);
    options.extend(value);
}

impl Layer for Link {
    const PROTOCOL: u16 = ppp::LCP;

    fn wanted(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if self.asks_mru {
            put(&mut options, OPTION_MRU, &MRU.to_be_bytes());
        }
        put(&mut options, OPTION_LOGIN, self.method.value());
        if self.asks_magic {
            put(&mut options, OPTION_MAGIC, &self.magic.to_be_bytes());
        }
        options
    }

    fn judge(&mut self, options: Options<'_>, moment: &mut Moment<'_>) -> Verdict {
        let (mut naks, mut rejects) = (Vec::new(), Vec::new());
        self.peer_mru = MRU;
        for option in options {
            match (option.kind, option.value) {
                (OPTION_MRU, &[high, low]) => match u16::from_be_bytes([high, low]) {
                    mru if mru >= MIN_MRU => self.peer_mru = mru.min(MRU),
                    _ => put(&mut naks, OPTION_MRU, &MRU.to_be_bytes()),
                },
                (OPTION_MAGIC, value @ &[_, _, _, _]) => {
                    if *value == self.magic.to_be_bytes() || *value == [0; 4] {
                        put(&mut naks, OPTION_MAGIC, &moment.magic().to_be_bytes());
                    }
                }
                _ => rejects.extend(option.whole),
            }
        }
        Verdict::of(naks, rejects)
    }

    fn refused(&mut self, options: Options<'_>, rejected: bool, moment: &mut Moment<'_>) -> bool {
        for option in options {
            match option.kind {
                OPTION_MRU => self.asks_mru = false,
                OPTION_LOGIN if rejected || !self.choose(option.value) => return false,
                OPTION_MAGIC if rejected => self.asks_magic = false,
                OPTION_MAGIC => self.magic = moment.magic(),
                _ => {}
            }
        }
        true
    }
}

/// IPv4 on a link.
pub struct Network {
    /// This end's address.
    pub ours: Ipv4Addr,
    /// The subscriber's address.
    pub theirs: Ipv4Addr,
    /// Name servers, at most two.
    pub dns: Vec<Ipv4Addr>,
    asks: bool,
}

impl Network {
    /// Before its negotiation.
    pub fn new(ours: Ipv4Addr, theirs: Ipv4Addr, dns: Vec<Ipv4Addr>) -> Self {
        Self {
            ours,
            theirs,
            dns,
            asks: true,
        }
    }

    /// The address that the peer may have or know by an option.
    fn address(&self, kind: u8) -> Option<Ipv4Addr> {
        match kind {
            OPTION_ADDRESS => Some(self.theirs),
            OPTION_DNS => self.dns.first().copied(),
            OPTION_SECOND_DNS => self.dns.get(1).copied(),
            _ => None,
        }
    }
}

const OPTION_ADDRESS: u8 = 3;
const OPTION_DNS: u8 = 129;
const OPTION_SECOND_DNS: u8 = 131;

impl Layer for Network {
    const PROTOCOL: u16 = ppp::IPCP;

    fn wanted(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if self.asks {
            put(&mut options, OPTION_ADDRESS, &self.ours.octets());
        }
        options
    }

    fn judge(&mut self, options: Options<'_>, _: &mut Moment<'_>) -> Verdict {
        let (mut naks, mut rejects, mut named) = (Vec::new(), Vec::new(), false);
        for option in options {
            match self.address(option.kind) {
                Some(address) if option.value.len() == 4 => {
                    named |= option.kind == OPTION_ADDRESS;
                    if option.value != address.octets() {
                        put(&mut naks, option.kind, &address.octets());
                    }
                }
                _ => rejects.extend(option.whole),
            }
        }
        if !named {
            put(&mut naks, OPTION_ADDRESS, &self.theirs.octets());
        }
        Verdict::of(naks, rejects)
    }

    fn refused(&mut self, mut options: Options<'_>, rejected: bool, _: &mut Moment<'_>) -> bool {
        self.asks &= !(rejected && options.any(|o| o.kind == OPTION_ADDRESS));
        true
    }
}
