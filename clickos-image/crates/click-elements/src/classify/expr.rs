// SPDX-License-Identifier: Apache-2.0
//! Expressions over tests of header fields. A test of a field that is not there is false,
//! whatever its operator; `not` turns that around.
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::names::{ANY_TRANSPORT, TCP_OR_UDP};
use crate::headers::{Axis, Headers, Start, bits_at};

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// `true` or `false`.
    Const(bool),
    /// One field.
    Test(Test),
    /// No part.
    Not(Box<Expr>),
    /// All of them.
    And(Vec<Expr>),
    /// One of them at least.
    Or(Vec<Expr>),
    /// `a ? b : c`
    If(Box<[Expr; 3]>),
}

/// The address or port, of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Destination,
    Either,
    Both,
}

/// `(field & mask) == value` or `> value`, or the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    pub mask: u32,
    pub value: u32,
    pub greater: bool,
    pub negated: bool,
}

impl Compare {
    /// True if a field's value fits, the negation left out.
    fn raw(&self, field: u32) -> bool {
        let field = field & self.mask;
        if self.greater {
            field > self.value
        } else {
            field == self.value & self.mask
        }
    }

    fn holds(&self, field: Option<u32>) -> bool {
        field.is_some_and(|f| self.raw(f) != self.negated)
    }

    /// One or both of two fields; the negation is that of the whole.
    fn holds_for(&self, side: Side, source: Option<u32>, destination: Option<u32>) -> bool {
        let (Some(s), Some(d)) = (source, destination) else {
            return false;
        };
        let raw = match side {
            Side::Source => self.raw(s),
            Side::Destination => self.raw(d),
            Side::Either => self.raw(s) || self.raw(d),
            Side::Both => self.raw(s) && self.raw(d),
        };
        raw != self.negated
    }
}

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// In the header of IPv4.
    Network,
    /// In the first byte of either version.
    Either,
    /// In the header of IPv6.
    Ip6,
    /// In the transport header of this protocol.
    Transport(u16),
}

impl Base {
    /// Where its offsets are counted from.
    pub fn start(self) -> Start {
        match self {
            Self::Network => Start::Ip4,
            Self::Either => Start::Either,
            Self::Ip6 => Start::Ip6,
            Self::Transport(_) => Start::Transport,
        }
    }

    /// The protocol whose packets have it.
    pub fn protocol(self) -> u32 {
        match self {
            Self::Transport(protocol) => protocol.into(),
            _ => ANY_TRANSPORT,
        }
    }
}

/// A test of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Protocol(Compare),
    /// TCP or UDP.
    TcpOrUdp,
    Host(Side, Compare),
    Port {
        protocol: u32,
        side: Side,
        compare: Compare,
    },
    /// All of these TCP flags are set.
    TcpFlags(u8),
    /// The packet is a fragment, or (false) is not.
    Fragment(bool),
    Field {
        base: Base,
        offset: u32,
        len: u8,
        compare: Compare,
    },
    Ether {
        side: Side,
        address: u64,
        mask: u64,
        negated: bool,
    },
}

/// True if the packet's protocol is the one a test is about.
fn is_protocol(headers: &Headers<'_>, protocol: u32) -> bool {
    match (headers.protocol(), protocol) {
        (None, _) => false,
        (Some(_), ANY_TRANSPORT) => true,
        (Some(p), TCP_OR_UDP) => p == 6 || p == 17,
        (Some(p), one) => p == one,
    }
}

impl Test {
    fn holds(&self, h: &Headers<'_>) -> bool {
        match *self {
            Self::Protocol(compare) => compare.holds(h.protocol()),
            Self::TcpOrUdp => is_protocol(h, TCP_OR_UDP),
            Self::Host(side, compare) => {
                compare.holds_for(side, h.value(Axis::SOURCE), h.value(Axis::DESTINATION))
            }
            Self::Port {
                protocol,
                side,
                compare,
            } => is_protocol(h, protocol) && ports(h, side, &compare),
            Self::TcpFlags(mask) => {
                let flags = h.value(Axis::TCP_FLAGS);
                let mask = u32::from(mask);
                is_protocol(h, 6) && flags.is_some_and(|f| f & mask == mask)
            }
            Self::Fragment(wanted) => h.is_fragment() == Some(wanted),
            Self::Field {
                base,
                offset,
                len,
                compare,
            } => {
                let field = || bits_at(h.from(base.start()), offset as usize, len.into());
                is_protocol(h, base.protocol()) && compare.holds(field())
            }
            Self::Ether {
                side,
                address,
                mask,
                negated,
            } => ether(h, side, address, mask, negated),
        }
    }
}

fn ports(h: &Headers<'_>, side: Side, compare: &Compare) -> bool {
    let (source, destination) = (h.value(Axis::SOURCE_PORT), h.value(Axis::DESTINATION_PORT));
    let alone = Some(0);
    match side {
        Side::Source => compare.holds_for(side, source, alone),
        Side::Destination => compare.holds_for(side, alone, destination),
        _ => compare.holds_for(side, source, destination),
    }
}

fn ether(h: &Headers<'_>, side: Side, address: u64, mask: u64, negated: bool) -> bool {
    let number = |b: &[u8]| b.iter().fold(0u64, |v, b| (v << 8) | u64::from(*b));
    let Some(both) = h.packet.and_then(|p| p.mac()?.first_chunk::<12>()) else {
        return false;
    };
    let fits = |b: &[u8]| number(b) & mask == address & mask;
    let (destination, source) = (fits(&both[..6]), fits(&both[6..]));
    let raw = match side {
        Side::Source => source,
        Side::Destination => destination,
        Side::Either => source || destination,
        Side::Both => source && destination,
    };
    raw != negated
}

impl Expr {
    /// True if the expression is true of a packet.
    pub fn holds(&self, headers: &Headers<'_>) -> bool {
        match self {
            Self::Const(value) => *value,
            Self::Test(test) => test.holds(headers),
            Self::Not(inner) => !inner.holds(headers),
            Self::And(list) => list.iter().all(|e| e.holds(headers)),
            Self::Or(list) => list.iter().any(|e| e.holds(headers)),
            Self::If(parts) => {
                let [condition, yes, no] = &**parts;
                if condition.holds(headers) {
                    yes.holds(headers)
                } else {
                    no.holds(headers)
                }
            }
        }
    }
}
