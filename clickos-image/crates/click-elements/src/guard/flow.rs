// SPDX-License-Identifier: Apache-2.0
//! One flow, and its line in a guest's state.
use super::ends::{Ends, number};
use super::seen::Tcp;
use super::slots::Member;
use super::targets::Target;
use super::window::{Side, Windows};
use crate::carried;
use crate::flows::ListId;
use crate::prelude::*;

/// Times of flows, one for each list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP before it is open, and after it is over.
    Transitory,
    Ping,
    /// UDP and other protocols.
    Other,
    Open,
}

/// All kinds: a new flow takes the place of one of an earlier kind first, never that of an open connection.
pub const KINDS: [Kind; 4] = [Kind::Transitory, Kind::Ping, Kind::Other, Kind::Open];

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// As its first packet has them.
    pub ends: Ends,
    pub list: ListId,
    pub kind: Kind,
    /// Where a balancer sends its packets.
    pub target: Target,
    pub heard_ns: u64,
    /// It was begun outside.
    pub is_inbound: bool,
    /// Another guest's, without a packet here.
    pub is_copy: bool,
    pub windows: Option<Windows>,
    pub again: Option<Box<Again>>,
}

impl Member for Flow {
    fn ends(&self) -> Ends {
        self.ends
    }

    fn heard_ns(&self) -> u64 {
        self.heard_ns
    }

    fn list(&self) -> ListId {
        self.list
    }

    fn set_list(&mut self, list: ListId) {
        self.list = list;
    }
}

/// A first packet in an open connection. It may be a stranger's, so the connection stays as it is until the other
/// end starts again: one that knows the connection answers within its windows (RFC 5961, section 4).
#[derive(Clone, Debug)]
pub struct Again {
    asker: usize,
    windows: Windows,
}

const TCP: u8 = 6;
const PINGS: [u8; 2] = [1, 58];

impl Flow {
    /// The kind that it should be of.
    pub fn kind_now(&self) -> Kind {
        match &self.windows {
            Some(windows) if windows.is_open() && !windows.is_over() => Kind::Open,
            Some(_) => Kind::Transitory,
            None if PINGS.contains(&self.ends.protocol) => Kind::Ping,
            None => Kind::Other,
        }
    }

    /// Notes the first packet of a side in an open connection.
    pub fn ask_again(&mut self, asker: usize, tcp: &Tcp) {
        let mut windows = Windows::new(tcp);
        windows.take(0, tcp);
        self.again = Some(Box::new(Again { asker, windows }));
    }

    /// True if a packet answers such a first packet, with which the connection starts again.
    pub fn begins_anew(&mut self, side: usize, tcp: &Tcp) -> bool {
        let Some(again) = self.again.as_deref() else {
            return false;
        };
        let mut windows = again.windows;
        let begins = again.asker != side && tcp.is_syn_ack() && windows.take(1, tcp);
        if begins {
            windows.sides.rotate_left(again.asker);
            (self.windows, self.again) = (Some(windows), None);
        }
        begins
    }

    /// Its line: ends, direction, age, and for TCP what both sides are.
    pub fn line(&self, now_ns: u64) -> String {
        let age_ms = carried::age_ms(now_ns, self.heard_ns);
        let way = if self.is_inbound { "in" } else { "out" };
        let head = format!("{} {way} {age_ms}", self.ends);
        match &self.windows {
            None => head,
            Some(windows) => {
                let sides: String = windows.sides.iter().map(side_text).collect();
                let unknown = u8::from(windows.unknown);
                let reset = u8::from(windows.is_reset());
                format!("{head} {unknown}{reset}{sides}")
            }
        }
    }

    /// Reads a line.
    pub fn of(words: &[&str], now_ns: u64) -> Option<Self> {
        let [
            protocol,
            source,
            sport,
            destination,
            dport,
            way,
            age_ms,
            rest @ ..,
        ] = words
        else {
            return None;
        };
        let ends = Ends {
            source: number(source)?,
            destination: number(destination)?,
            sport: carried::number(sport)?,
            dport: carried::number(dport)?,
            protocol: carried::number(protocol)?,
        };
        let windows = match (ends.protocol, rest) {
            (TCP, [flags, first, second]) => Some(Windows {
                sides: [side(first)?, side(second)?],
                unknown: flags.starts_with('1'),
            }),
            (TCP, _) | (_, [_, ..]) => return None,
            _ => None,
        };
        let mut flow = Self {
            ends,
            list: ListId::NONE,
            kind: Kind::Other,
            target: 0,
            heard_ns: carried::at_ns(now_ns, carried::number(age_ms)?),
            is_inbound: *way == "in",
            is_copy: false,
            windows,
            again: None,
        };
        flow.kind = flow.kind_now();
        ["in", "out"].contains(way).then_some(flow)
    }
}

fn side_text(side: &Side) -> String {
    let flags = [side.known, side.is_done, side.is_behind, side.is_reset];
    let flags = (0..)
        .zip(flags)
        .fold(0, |sum, (n, is)| sum | u8::from(is) << n);
    let Side {
        end,
        edge,
        window,
        scale,
        ..
    } = side;
    format!(" {flags}/{end}/{edge}/{window}/{scale}")
}

fn side(text: &str) -> Option<Side> {
    let mut parts = text.split('/');
    let flags: u8 = carried::number(parts.next()?)?;
    let mut next = || parts.next();
    let side = Side {
        known: flags & 1 != 0,
        is_done: flags & 2 != 0,
        is_behind: flags & 4 != 0,
        is_reset: flags & 8 != 0,
        end: carried::number(next()?)?,
        edge: carried::number(next()?)?,
        window: carried::number(next()?)?,
        scale: carried::number(next()?).filter(|scale| *scale <= 14)?,
    };
    next().is_none().then_some(side)
}
