// SPDX-License-Identifier: Apache-2.0
//! What the elements of a router of a pair have in common: one state for all its sides.
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::Surroundings;
use click_core::text::{split_words, unquote};

use super::advertisement::{Advertisement, MAX_ADDRESSES, virtual_mac};
use super::frame::{self, Station};
use super::instance::{Instance, Send, Settings, State};
use crate::prelude::*;

/// Frames that wait to be sent on a side, and messages of the other router that wait to be read.
const MAX_WAITING: usize = 128;
/// The most sides: vifs of a guest.
pub const MAX_SIDES: usize = 16;
const FORM: &str = "VRID IP ETH PEER PEER_ETH ADDRESS ...";

/// The network of a vif.
#[derive(Debug)]
pub struct Side {
    /// The element that sends and receives there, once there is one.
    pub name: String,
    pub vrid: u8,
    pub own: Station,
    pub peer: Option<Station>,
    pub addresses: Vec<Ipv4Addr>,
    /// The sum of advertisements is as the other router writes it: it may drop others.
    has_pseudo: bool,
    frames: Vec<Vec<u8>>,
}

impl FromArg for Side {
    /// `VRID IP ETH PEER PEER_ETH ADDRESS ...`; no peer is `- -`.
    fn from_arg(text: &str, at: Surroundings<'_>) -> Result<Self, String> {
        let words = split_words(&unquote(text));
        let [vrid, ip, mac, peer, peer_mac, addresses @ ..] = words.as_slice() else {
            return Err(format!("expected {FORM}, got \"{}\"", text.escape_debug()));
        };
        let station = |ip: &str, mac: &str| -> Result<Station, String> {
            let (ip, mac) = (Ipv4Addr::from_arg(ip, at)?, EtherAddr::from_arg(mac, at)?.0);
            Ok(Station { ip, mac })
        };
        let vrid = u8::from_arg(vrid, at)?;
        if vrid == 0 {
            return Err("VRID 0 is out of range, the least is 1".to_string());
        }
        if !(1..=MAX_ADDRESSES).contains(&addresses.len()) {
            let got = addresses.len();
            return Err(format!("{got} addresses, expected 1 to {MAX_ADDRESSES}"));
        }
        let has_peer = (peer.as_str(), peer_mac.as_str()) != ("-", "-");
        let addresses = addresses.iter().map(|word| Ipv4Addr::from_arg(word, at));
        Ok(Self {
            name: String::new(),
            vrid,
            own: station(ip, mac)?,
            peer: has_peer.then(|| station(peer, peer_mac)).transpose()?,
            addresses: addresses.collect::<Result<_, _>>()?,
            has_pseudo: false,
            frames: Vec::new(),
        })
    }
}

impl Side {
    /// Sends a frame soon; it is lost if too many wait.
    pub fn send(&mut self, frame: Vec<u8>) {
        if self.frames.len() < MAX_WAITING && !self.name.is_empty() {
            self.frames.push(frame);
        }
    }

    /// The frames that wait.
    pub fn take_frames(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.frames)
    }

    fn advertise(&mut self, priority: u8, interval_cs: u16) {
        let message = Advertisement {
            vrid: self.vrid,
            priority,
            interval_cs,
            addresses: self.addresses.clone(),
            has_pseudo: self.has_pseudo,
        };
        self.send(frame::advertisement(self.own.ip, &message));
    }

    fn announce(&mut self) {
        for n in 0..self.addresses.len() {
            self.send(frame::announcement(
                self.addresses[n],
                virtual_mac(self.vrid),
            ));
        }
    }
}

/// What the elements share.
#[derive(Debug)]
pub struct Group {
    pub instance: Instance,
    pub sides: Vec<Side>,
    /// Messages of the other router.
    pub inbox: VecDeque<Vec<u8>>,
}

/// A group of elements.
pub type Shared = Rc<RefCell<Group>>;

impl Group {
    pub fn new(settings: Settings, sides: Vec<Side>) -> Self {
        Self {
            instance: Instance::new(settings),
            sides,
            inbox: VecDeque::new(),
        }
    }

    pub fn is_active(&self) -> bool {
        self.instance.state() == State::Active
    }

    /// Takes over the state of this router's former configuration.
    pub fn take_from(&mut self, old: &Self) {
        self.instance.take_from(&old.instance);
        for side in &mut self.sides {
            let is_same = |old: &&Side| (old.vrid, old.own) == (side.vrid, side.own);
            side.has_pseudo = old
                .sides
                .iter()
                .find(is_same)
                .is_some_and(|old| old.has_pseudo);
        }
    }

    /// Sends on all sides.
    pub fn send(&mut self, send: Send) {
        let interval_cs = self.instance.settings.interval_cs;
        for side in &mut self.sides {
            if let Some(priority) = send.advertisement {
                side.advertise(priority, interval_cs);
            }
            if send.announcement {
                side.announce();
            }
        }
    }

    /// An advertisement arrived on a side. VRRP has no secrets: where the other router is known, no other
    /// station decides. One for other addresses is of a router that is configured differently; it counts as
    /// well (RFC 9568, section 7.1).
    pub fn receive(&mut self, side: usize, from: Ipv4Addr, message: &Advertisement, now_ns: u64) {
        let side = &mut self.sides[side];
        let is_other = side
            .peer
            .map_or(from != side.own.ip, |peer| from == peer.ip);
        if message.vrid != side.vrid || !is_other {
            return;
        }
        side.has_pseudo = message.has_pseudo;
        let is_higher = from > side.own.ip;
        let (priority, interval_cs) = (message.priority, message.interval_cs);
        let send = self
            .instance
            .receive(priority, interval_cs, is_higher, now_ns);
        self.send(send);
    }

    /// Keeps a message of the other router; it is lost if too many wait.
    pub fn keep(&mut self, message: Vec<u8>) {
        if self.inbox.len() < MAX_WAITING {
            self.inbox.push_back(message);
        }
    }

    /// The elements with frames to send.
    pub fn waiting(&self) -> Vec<String> {
        let sides = self.sides.iter().filter(|side| !side.frames.is_empty());
        sides.map(|side| side.name.clone()).collect()
    }
}
