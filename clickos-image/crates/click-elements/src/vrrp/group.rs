// SPDX-License-Identifier: Apache-2.0
//! What the elements of a router of a pair have in common: one state for all its sides.
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;
use core::net::{IpAddr, Ipv6Addr};

use click_core::ArgContext;
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
    /// The first ones are of the IP version of `own`.
    pub addresses: Vec<IpAddr>,
    /// The sum of advertisements is as the other router writes it: it may drop others.
    has_pseudo: bool,
    frames: Vec<Vec<u8>>,
}

impl FromArg for Side {
    /// `VRID IP ETH PEER PEER_ETH ADDRESS ...`; no peer is `- -`.
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(&unquote(text));
        let [vrid, ip, mac, peer, peer_mac, addresses @ ..] = words.as_slice() else {
            return Err(format!("expected {FORM}, got \"{}\"", text.shown()));
        };
        let station = |ip: &str, mac: &str| -> Result<Station, String> {
            let (ip, mac) = (ip_of(ip, at)?, EtherAddr::from_arg(mac, at)?.0);
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
        let addresses = addresses.iter().map(|word| ip_of(word, at));
        let side = Self {
            name: String::new(),
            vrid,
            own: station(ip, mac)?,
            peer: has_peer.then(|| station(peer, peer_mac)).transpose()?,
            addresses: addresses.collect::<Result<_, _>>()?,
            has_pseudo: false,
            frames: Vec::new(),
        };
        side.check()?;
        Ok(side)
    }
}

fn ip_of(text: &str, at: ArgContext<'_>) -> Result<IpAddr, String> {
    match text.parse::<Ipv6Addr>() {
        Ok(ip) => Ok(ip.into()),
        Err(_) => Ipv4Addr::from_arg(text, at).map(IpAddr::from),
    }
}

impl Side {
    /// Refuses addresses that do not go together.
    fn check(&self) -> Result<(), String> {
        let (own, first) = (self.own.ip, self.addresses[0]);
        let local = |name: &str, ip: IpAddr| match ip {
            IpAddr::V6(ip) if !ip.is_unicast_link_local() => {
                Err(format!("{name} {ip} is not a link-local address"))
            }
            _ => Ok(()),
        };
        local("IP", own)?;
        let others = self.peer.map(|peer| ("PEER", peer.ip));
        for (name, ip) in others.into_iter().chain([("the first ADDRESS", first)]) {
            if ip.is_ipv6() != own.is_ipv6() {
                return Err(format!("{name} {ip} is not of the IP version of {own}"));
            }
            local(name, ip)?;
        }
        let other = self
            .addresses
            .iter()
            .find(|ip| own.is_ipv6() && ip.is_ipv4());
        other.map_or(Ok(()), |ip| {
            Err(format!("ADDRESS {ip} is not of the IP version of {own}"))
        })
    }

    /// The virtual router's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        virtual_mac(self.own.ip, self.vrid)
    }

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
        let own = self.own.ip;
        let addresses = self.addresses.iter().copied();
        let message = Advertisement {
            vrid: self.vrid,
            priority,
            interval_cs,
            addresses: addresses
                .filter(|ip| ip.is_ipv6() == own.is_ipv6())
                .collect(),
            has_pseudo: self.has_pseudo,
        };
        self.send(frame::advertisement(own, &message));
    }

    fn announce(&mut self) {
        let mac = self.mac();
        for n in 0..self.addresses.len() {
            self.send(frame::announcement(self.addresses[n], mac));
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
    /// station decides; else it is a station that may send from the virtual Ethernet address. One for other addresses is of a router that is configured differently; it counts as
    /// well (RFC 9568, section 7.1).
    pub fn receive(&mut self, side: usize, from: IpAddr, message: &Advertisement, now_ns: u64) {
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
