// SPDX-License-Identifier: Apache-2.0
//! Expressions as text, in the language they are parsed from.
use core::fmt::{Display, Formatter, Result};
use core::net::Ipv4Addr;

use click_core::value::EtherAddr;

use super::expr::{Base, Compare, Expr, Side, Test};
use super::names::{ANY_TRANSPORT, TCP_OR_UDP};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Const(value) => value.fmt(f),
            Self::Test(test) => test.fmt(f),
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::And(list) => joined(f, list, " and "),
            Self::Or(list) => joined(f, list, " or "),
            Self::If(parts) => {
                let [condition, yes, no] = &**parts;
                write!(f, "(({condition}) ? ({yes}) : ({no}))")
            }
        }
    }
}

fn joined(f: &mut Formatter<'_>, list: &[Expr], word: &str) -> Result {
    for (index, expr) in list.iter().enumerate() {
        if index > 0 {
            f.write_str(word)?;
        }
        write!(f, "({expr})")?;
    }
    Ok(())
}

impl Display for Side {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Source => "src",
            Self::Destination => "dst",
            Self::Either => "src or dst",
            Self::Both => "src and dst",
        })
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Protocol(compare) => write!(f, "ip proto {}", Relation(compare, 0xff)),
            Self::TcpOrUdp => f.write_str("tcpudp"),
            Self::Host(side, c) => {
                let (operator, mask) =
                    (if c.negated { "!=" } else { "==" }, Ipv4Addr::from(c.mask));
                write!(
                    f,
                    "{side} net {operator} {} mask {mask}",
                    Ipv4Addr::from(c.value & c.mask)
                )
            }
            Self::Port {
                protocol,
                side,
                compare,
            } => {
                write!(
                    f,
                    "{side} {} port {}",
                    Protocol(protocol),
                    Relation(compare, 0xffff)
                )
            }
            Self::TcpFlags(mask) => write!(f, "tcp opt {mask}"),
            Self::Fragment(true) => f.write_str("ip frag"),
            Self::Fragment(false) => f.write_str("ip unfrag"),
            Self::Field {
                base,
                offset,
                len,
                compare,
            } => field(f, base, offset, len, compare),
            Self::Ether {
                side,
                address,
                mask,
                negated,
            } => {
                let (operator, mask) = (if negated { "!=" } else { "==" }, ether(mask));
                write!(
                    f,
                    "{side} ether host & {mask} {operator} {}",
                    ether(address & mask_bits(mask))
                )
            }
        }
    }
}

fn ether(address: u64) -> EtherAddr {
    let [_, _, mac @ ..] = address.to_be_bytes();
    EtherAddr(mac)
}

fn mask_bits(mask: EtherAddr) -> u64 {
    mask.0.iter().fold(0, |v, b| (v << 8) | u64::from(*b))
}

struct Protocol(u32);

impl Display for Protocol {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            1 => f.write_str("icmp"),
            2 => f.write_str("igmp"),
            4 => f.write_str("ipip"),
            6 => f.write_str("tcp"),
            17 => f.write_str("udp"),
            33 => f.write_str("dccp"),
            58 => f.write_str("icmp6"),
            TCP_OR_UDP => f.write_str("tcpudp"),
            ANY_TRANSPORT => f.write_str("transp"),
            other => write!(f, "ip proto {other}"),
        }
    }
}

/// A comparison of a field whose largest value is the second number.
struct Relation(Compare, u32);

impl Display for Relation {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self(c, max) = *self;
        if c.mask == 0 {
            // Decided by the operator alone; a mask of zero cannot be written.
            return f.write_str(if c.negated { "< 0" } else { ">= 0" });
        }
        if c.mask & max != max {
            write!(f, "& {:#x} ", c.mask)?;
        }
        let operator = match (c.greater, c.negated) {
            (false, false) => "==",
            (false, true) => "!=",
            (true, false) => ">",
            (true, true) => "<=",
        };
        write!(f, "{operator} {}", c.value)
    }
}

fn field(f: &mut Formatter<'_>, base: Base, offset: u32, len: u8, compare: Compare) -> Result {
    let max = u32::try_from((1u64 << len) - 1).unwrap_or(u32::MAX);
    let named = [
        (0, 4, "vers"),
        (4, 4, "hl"),
        (8, 8, "tos"),
        (8, 6, "dscp"),
        (14, 2, "ect"),
        (16, 16, "len"),
        (32, 16, "id"),
        (64, 8, "ttl"),
    ];
    let name = named.iter().find(|(o, l, _)| (*o, *l) == (offset, len));
    let name6 = [
        (0, 4, "vers"),
        (4, 8, "tos"),
        (4, 6, "dscp"),
        (10, 2, "ect"),
    ];
    let name6 = name6.iter().find(|(o, l, _)| (*o, *l) == (offset, len));
    match (base, name) {
        (Base::Network | Base::Either, Some((_, _, name))) => write!(f, "ip {name} ")?,
        (Base::Network | Base::Either, None) => write!(f, "ip[{}:{}] ", offset / 8, len / 8)?,
        (Base::Ip6, _) => match name6 {
            Some((_, _, name)) => write!(f, "ip6 {name} ")?,
            None => write!(f, "ip6[{}:{}] ", offset / 8, len / 8)?,
        },
        (Base::Transport(protocol), _) => write!(
            f,
            "{}[{}:{}] ",
            Protocol(protocol.into()),
            offset / 8,
            len / 8
        )?,
    }
    Relation(compare, max).fmt(f)
}
