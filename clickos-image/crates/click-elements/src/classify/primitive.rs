// SPDX-License-Identifier: Apache-2.0
//! From qualifiers, operator and value to a test: `src tcp port & 10 == 8`.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use click_core::ArgContext;
use click_core::value::{EtherAddr, FromArg, Prefix, number};

use super::expr::{Base, Compare, Expr, Side, Test};
use super::names::{ANY_TRANSPORT, ICMP6, Kind, Lookup, TCP_OR_UDP, lookup, lookup_at};
use super::subject::{Field, ICMP_TYPE, ICMP6_TYPE, SUBJECTS, Subject};
use crate::ip6::EXTENSIONS;

/// The value of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Data {
    #[default]
    None,
    Int(u32),
    Named(Kind, u32),
    Host(u32),
    Net(u32, u32),
    /// An address of IPv6, and a network's address and mask.
    Host6(u128),
    Net6(u128, u128),
    Ether(u64),
}

/// The header a test is confined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Ip,
    Ip6,
    Ether,
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    #[default]
    Equal,
    Greater,
    Less,
}

/// A test as it was written; what was left out may come from the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Primitive {
    pub subject: Option<Subject>,
    pub side: Option<Side>,
    pub protocol: Option<u32>,
    pub data: Data,
    pub operator: Operator,
    pub negated: bool,
    pub mask: Data,
}

/// The test for a protocol, one of the pseudo ones included; none where every packet passes.
fn protocol_is(protocol: u32) -> Option<Test> {
    match protocol {
        TCP_OR_UDP => Some(Test::TcpOrUdp),
        ANY_TRANSPORT => None,
        one => Some(Test::Protocol(Compare {
            mask: 0xff,
            value: one,
            greater: false,
            negated: false,
        })),
    }
}

fn described(subject: Option<Subject>) -> &'static str {
    let of = |s: Subject| {
        SUBJECTS
            .iter()
            .find(|(_, known)| *known == s)
            .map(|(name, _)| *name)
    };
    subject
        .and_then(of)
        .unwrap_or(if subject == Some(Subject::Ether) {
            "ether host"
        } else {
            "field"
        })
}

impl Primitive {
    /// Parses the word of a value.
    pub fn parse_data(
        &mut self,
        word: &str,
        layer: Option<Layer>,
        at: ArgContext<'_>,
    ) -> Result<bool, String> {
        let wanted = match self.subject {
            Some(Subject::Protocol) => Some(Kind::Protocol),
            Some(Subject::Port) => Some(Kind::Port),
            Some(Subject::TcpFlag) => Some(Kind::TcpFlag),
            Some(ICMP_TYPE | ICMP6_TYPE) => Some(Kind::IcmpType),
            _ => None,
        };
        let other = self.subject.is_some() && wanted.is_none();
        let found = match wanted {
            Some(_) => lookup_at(at, word, wanted, self.protocol),
            None => lookup(word, None, self.protocol),
        };
        match found {
            Lookup::Value(kind, value) if !other => self.data = Data::Named(kind, value),
            Lookup::Unknown => match plain_data(word, self.subject, layer, at) {
                Some(data) => self.data = data,
                None if other || wanted.is_some() => return Ok(false),
                // without a subject an address comes first
                None => match lookup_at(at, word, None, self.protocol) {
                    Lookup::Value(kind, value) => self.data = Data::Named(kind, value),
                    _ => return Ok(false),
                },
            },
            _ => {
                return Err(format!(
                    "\"{word}\" is ambiguous or has no meaning here; say more"
                ));
            }
        }
        Ok(true)
    }

    /// Fills in what was left out and makes the test.
    pub fn finish(&mut self, before: &Self, layer: Option<Layer>) -> Result<Expr, String> {
        let is_bare = self.subject.is_none() && self.protocol.is_none() && self.data == Data::None;
        if is_bare && layer == Some(Layer::Ip6) {
            return Ok(is_ip6());
        }
        self.infer_subject(before)?;
        let by_data = match self.data {
            Data::Ether(_) => Layer::Ether,
            _ => Layer::Ip,
        };
        let only6 = matches!(self.data, Data::Host6(_) | Data::Net6(..));
        if only6 && layer == Some(Layer::Ip) {
            return self.refuse("an address of IPv6 belongs to ip6");
        }
        if layer == Some(Layer::Ip6) || only6 {
            let test = self.ip6_test()?;
            return Ok(Expr::And([is_ip6(), test].into()));
        }
        let layer = layer.unwrap_or(by_data);
        if layer == Layer::Ether && self.subject == Some(Subject::Host) {
            self.subject = Some(Subject::Ether);
        }
        if layer == Layer::Ether && self.subject != Some(Subject::Ether) {
            return self.refuse("belongs to IP, not Ethernet");
        }
        self.test()
    }

    /// The test of an IPv6 packet.
    #[inline(never)]
    fn ip6_test(&mut self) -> Result<Expr, String> {
        match self.subject {
            Some(Subject::Host | Subject::Net) => self.host6(),
            Some(Subject::Hidden) => self.without_value(hidden()),
            Some(Subject::Ect) if self.data == Data::None => Ok(ecn(Base::Ip6, 0, true)),
            Some(Subject::Ect) => self.field6(10, 2),
            Some(Subject::Ce) => self.without_value(ecn(Base::Ip6, 3, false)),
            Some(Subject::Field(Field {
                transport: false,
                offset,
                len,
                ..
            })) => self.field6(offset, len),
            Some(Subject::Ether) => self.refuse("belongs to Ethernet, not IP"),
            _ => self.test(),
        }
    }

    /// A field of the header of IPv6.
    fn field6(&mut self, offset: u32, len: u8) -> Result<Expr, String> {
        let compare = self.compare_field(len)?;
        Ok(Expr::Test(Test::Field {
            base: Base::Ip6,
            offset,
            len,
            compare,
        }))
    }

    /// The test of a packet of either version, or of IPv4.
    fn test(&mut self) -> Result<Expr, String> {
        match self.subject {
            Some(Subject::Hidden) => self.refuse("belongs to ip6"),
            Some(Subject::Host | Subject::Net) => self.host(),
            Some(Subject::Ether) => self.ether(),
            Some(Subject::Protocol) => self.protocol_test(),
            Some(Subject::Port) => self.port(),
            Some(Subject::TcpFlag) => self.tcp_flag(),
            Some(Subject::Fragment) => self.without_value(Expr::Test(Test::Fragment(true))),
            Some(Subject::Unfragmented) => self.without_value(Expr::Test(Test::Fragment(false))),
            Some(Subject::Ect) if self.data == Data::None => Ok(ecn(Base::Network, 0, true)),
            Some(Subject::Ect) => self.field(Field {
                transport: false,
                protocol: None,
                offset: 14,
                len: 2,
            }),
            Some(Subject::Ce) => self.without_value(ecn(Base::Network, 3, false)),
            Some(Subject::Field(field)) => self.field(field),
            None => Err("incomplete directive".into()),
        }
    }

    fn refuse<T>(&self, message: &str) -> Result<T, String> {
        Err(format!("\"{}\": {message}", described(self.subject)))
    }

    fn infer_subject(&mut self, before: &Self) -> Result<(), String> {
        if self.subject.is_some() {
            return Ok(());
        }
        let inferred = match self.data {
            Data::Host(_) | Data::Host6(_) => Subject::Host,
            Data::Net(..) | Data::Net6(..) => Subject::Net,
            Data::Ether(_) => Subject::Ether,
            Data::Named(Kind::TcpFlag, _) => Subject::TcpFlag,
            Data::Named(Kind::Protocol, _) => Subject::Protocol,
            Data::Named(Kind::Port, _) => Subject::Port,
            Data::Named(Kind::IcmpType, _) if self.protocol == Some(ICMP6) => ICMP6_TYPE,
            Data::Named(Kind::IcmpType, _) => ICMP_TYPE,
            Data::Int(_) => match before.subject {
                Some(s @ (Subject::Field(_) | Subject::Protocol | Subject::Port)) => s,
                _ => return Err("a number alone means nothing; name a field or \"port\"".into()),
            },
            Data::None if self.protocol.is_some() => Subject::Protocol,
            Data::None => return Err("incomplete directive".into()),
        };
        let has_side = matches!(
            inferred,
            Subject::Host | Subject::Net | Subject::Ether | Subject::TcpFlag | Subject::Port
        );
        if has_side {
            self.side = self.side.or(before.side);
        }
        if inferred == Subject::Port {
            self.protocol = self.protocol.or(before.protocol);
        }
        self.subject = Some(inferred);
        Ok(())
    }

    fn side(&self) -> Side {
        self.side.unwrap_or(Side::Either)
    }

    fn only_equality(&self) -> Result<(), String> {
        if self.operator == Operator::Equal {
            Ok(())
        } else {
            self.refuse("only == and != have a meaning")
        }
    }

    fn without_value(&self, expr: Expr) -> Result<Expr, String> {
        if self.data != Data::None || self.mask != Data::None {
            return self.refuse("takes no value");
        }
        Ok(expr)
    }

    fn host(&self) -> Result<Expr, String> {
        let (value, mask) = match (self.subject, self.data) {
            (Some(Subject::Host), Data::Host(a)) => (a, u32::MAX),
            (Some(Subject::Net), Data::Net(a, m)) => (a, m),
            (Some(Subject::Net), _) => return self.refuse("expected a network such as 10.0.0.0/8"),
            _ => return self.refuse("expected an address"),
        };
        self.only_equality()?;
        let mask = match self.mask {
            Data::None => mask,
            Data::Int(m) | Data::Host(m) => m,
            _ => return self.refuse("the mask does not fit"),
        };
        Ok(Expr::Test(Test::Host(
            self.side(),
            Compare {
                mask,
                value,
                greater: false,
                negated: self.negated,
            },
        )))
    }

    #[inline(never)]
    fn host6(&self) -> Result<Expr, String> {
        let (value, mask) = match (self.subject, self.data) {
            (Some(Subject::Host), Data::Host6(address)) => (address, u128::MAX),
            (Some(Subject::Net), Data::Net6(address, mask)) => (address, mask),
            (Some(Subject::Net), _) => {
                return self.refuse("expected a network such as 2001:db8::/32");
            }
            _ => return self.refuse("expected an address of IPv6"),
        };
        self.only_equality()?;
        if self.mask != Data::None {
            return self.refuse("the mask does not fit");
        }
        let [source, destination] = [64, 192].map(|offset| address_is(offset, value, mask));
        let is = match self.side() {
            Side::Source => source,
            Side::Destination => destination,
            Side::Either => Expr::Or([source, destination].into()),
            Side::Both => Expr::And([source, destination].into()),
        };
        Ok(match self.negated {
            true => Expr::Not(Box::new(is)),
            false => is,
        })
    }

    fn ether(&self) -> Result<Expr, String> {
        let Data::Ether(address) = self.data else {
            return self.refuse("expected an Ethernet address");
        };
        self.only_equality()?;
        let mask = match self.mask {
            Data::None => u64::MAX,
            Data::Ether(m) => m,
            _ => return self.refuse("the mask does not fit"),
        };
        Ok(Expr::Test(Test::Ether {
            side: self.side(),
            address,
            mask,
            negated: self.negated,
        }))
    }

    fn protocol_test(&mut self) -> Result<Expr, String> {
        let given = match self.data {
            Data::Int(n) | Data::Named(_, n) => Some(n),
            _ => None,
        };
        let Some(value) = given.or(self.protocol) else {
            return self.refuse("expected a protocol");
        };
        if self.protocol.is_some_and(|p| p != value) {
            return self.refuse("two protocols");
        }
        if value >= TCP_OR_UDP {
            if self.operator != Operator::Equal || self.negated || self.mask != Data::None {
                return self.refuse("this protocol takes no operator");
            }
            self.protocol = Some(value);
            return Ok(protocol_is(value).map_or(Expr::Const(true), Expr::Test));
        }
        let compare = self.compare(value, 0xff)?;
        let plain = !compare.negated && !compare.greater && compare.mask == 0xff;
        self.protocol = plain.then_some(value);
        Ok(Expr::Test(Test::Protocol(compare)))
    }

    fn port(&mut self) -> Result<Expr, String> {
        let (Data::Int(value) | Data::Named(Kind::Port, value)) = self.data else {
            return self.refuse("expected a port");
        };
        let protocol = *self.protocol.get_or_insert(TCP_OR_UDP);
        if ![6, 17, 33, TCP_OR_UDP].contains(&protocol) {
            return self.refuse("this protocol has no ports");
        }
        let compare = self.compare(value, 0xffff)?;
        Ok(Expr::Test(Test::Port {
            protocol,
            side: self.side(),
            compare,
        }))
    }

    fn tcp_flag(&mut self) -> Result<Expr, String> {
        let (Data::Int(value) | Data::Named(Kind::TcpFlag, value)) = self.data else {
            return self.refuse("expected a TCP flag");
        };
        if *self.protocol.get_or_insert(6) != 6 {
            return self.refuse("only TCP has flags");
        }
        if self.operator != Operator::Equal || self.negated || self.mask != Data::None {
            return self.refuse("takes no operator");
        }
        match u8::try_from(value) {
            Ok(flags) => Ok(Expr::Test(Test::TcpFlags(flags))),
            Err(_) => self.refuse("a value above 255"),
        }
    }

    /// The comparison of a field of `len` bits.
    #[inline(never)]
    fn compare_field(&self, len: u8) -> Result<Compare, String> {
        let (Data::Int(value) | Data::Named(_, value)) = self.data else {
            return self.refuse("expected a number");
        };
        let max = u32::try_from((1u64 << len) - 1).expect("at most 32 bits");
        self.compare(value, max)
    }

    fn field(&mut self, field: Field) -> Result<Expr, String> {
        let compare = self.compare_field(field.len)?;
        let protocol = field.protocol.or(self.protocol);
        let base = match (field.transport, protocol) {
            (true, Some(protocol)) => match u16::try_from(protocol) {
                Ok(protocol) => Base::Transport(protocol),
                Err(_) => return self.refuse("expected a protocol"),
            },
            (false, Some(protocol)) => {
                let test = Test::Field {
                    base: Base::Network,
                    offset: field.offset,
                    len: field.len,
                    compare,
                };
                return Ok(match protocol_is(protocol) {
                    Some(is) => Expr::And([is, test].map(Expr::Test).into()),
                    None => Expr::Test(test),
                });
            }
            _ if (field.offset, field.len) == VERSION => Base::Either,
            _ => Base::Network,
        };
        Ok(Expr::Test(Test::Field {
            base,
            offset: field.offset,
            len: field.len,
            compare,
        }))
    }

    /// The comparison of a field whose largest value is `max`.
    fn compare(&self, value: u32, max: u32) -> Result<Compare, String> {
        let mask = match self.mask {
            Data::None => max,
            Data::Int(m) if m & max == m => m,
            Data::Int(m) => {
                return self.refuse(&format!(
                    "mask {m:#x} is out of range, the most is {max:#x}"
                ));
            }
            _ => return self.refuse("the mask does not fit"),
        };
        let negated = self.negated;
        let always = |truth: bool| Compare {
            mask: 0,
            value: 0,
            greater: false,
            negated: !truth,
        };
        Ok(match self.operator {
            Operator::Equal if value > max => {
                return self.refuse(&format!("{value} is out of range, the most is {max}"));
            }
            Operator::Equal => Compare {
                mask,
                value,
                greater: false,
                negated,
            },
            Operator::Greater if value >= mask => always(negated),
            Operator::Greater => Compare {
                mask,
                value,
                greater: true,
                negated,
            },
            Operator::Less if value == 0 => always(negated),
            Operator::Less if value > mask => always(!negated),
            // x < v is not (x > v - 1)
            Operator::Less => Compare {
                mask,
                value: value - 1,
                greater: true,
                negated: !negated,
            },
        })
    }
}

/// Offset and bits of the version, which IPv4 and IPv6 have at one place.
const VERSION: (u32, u8) = (0, 4);

/// The address at an offset is as it must be in the bits of a mask.
#[inline(never)]
fn address_is(offset: u32, value: u128, mask: u128) -> Expr {
    let word = |of: u128, n: usize| (of >> (96 - 32 * n)) as u32;
    let test = |n: usize| {
        let (value, mask) = (word(value, n), word(mask, n));
        let compare = Compare {
            mask,
            value,
            greater: false,
            negated: false,
        };
        (mask != 0).then_some(Expr::Test(Test::Field {
            base: Base::Ip6,
            offset: offset + 32 * n as u32,
            len: 32,
            compare,
        }))
    };
    let tests: Vec<Expr> = (0..4).filter_map(test).collect();
    match tests.is_empty() {
        true => Expr::Const(true),
        false => Expr::And(tests),
    }
}

fn ecn(base: Base, value: u32, negated: bool) -> Expr {
    let compare = Compare {
        mask: 3,
        value,
        greater: false,
        negated,
    };
    let offset = if base == Base::Ip6 { 4 } else { 8 };
    Expr::Test(Test::Field {
        base,
        offset,
        len: 8,
        compare,
    })
}

/// Every packet of IPv6 passes.
fn is_ip6() -> Expr {
    Expr::Test(Test::Field {
        base: Base::Ip6,
        offset: 48,
        len: 8,
        compare: Compare {
            mask: 0,
            value: 0,
            greater: false,
            negated: false,
        },
    })
}

/// The first header that was not skipped is an extension header.
#[inline(never)]
fn hidden() -> Expr {
    let is = |number: &u8| protocol_is((*number).into()).map(Expr::Test);
    Expr::Or(EXTENSIONS.iter().filter_map(is).collect())
}

fn plain_data(
    word: &str,
    subject: Option<Subject>,
    layer: Option<Layer>,
    at: ArgContext<'_>,
) -> Option<Data> {
    if let Some(n) = number(word).and_then(|n| u32::try_from(n).ok()) {
        return Some(Data::Int(n));
    }
    let ip = match layer {
        Some(Layer::Ether | Layer::Ip6) => None,
        _ => ip_data(word, subject, at),
    };
    let ether = || ether_data(word, layer, at);
    ip.or_else(ether).or_else(|| ip6_data(word, layer))
}

#[inline(never)]
fn ip6_data(word: &str, layer: Option<Layer>) -> Option<Data> {
    if layer == Some(Layer::Ether) {
        return None;
    }
    let Some((address, bits)) = word.split_once('/') else {
        return word.parse().ok().map(|a: Ipv6Addr| Data::Host6(a.into()));
    };
    let (address, bits): (Ipv6Addr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    let mask = match bits {
        0 => 0,
        1..=128 => u128::MAX << (128 - bits),
        _ => return None,
    };
    Some(Data::Net6(u128::from(address) & mask, mask))
}

/// A name that is both is a network behind `net`, else an address.
fn ip_data(word: &str, subject: Option<Subject>, at: ArgContext<'_>) -> Option<Data> {
    let named = || at.names.find(at.element, word)?.network(word);
    let net = |net: Prefix| Data::Net(net.address.into(), net.mask.into());
    match Ipv4Addr::from_arg(word, at) {
        Ok(host) => {
            let network = named().filter(|_| subject == Some(Subject::Net));
            Some(network.map_or(Data::Host(host.into()), net))
        }
        Err(_) => Prefix::from_arg(word, at).ok().map(net),
    }
}

fn ether_data(word: &str, layer: Option<Layer>, at: ArgContext<'_>) -> Option<Data> {
    if matches!(layer, Some(Layer::Ip | Layer::Ip6)) {
        return None;
    }
    let EtherAddr(address) = EtherAddr::from_arg(word, at).ok()?;
    Some(Data::Ether(
        address.iter().fold(0, |v, b| (v << 8) | u64::from(*b)),
    ))
}

/// Parses the mask behind `&`.
pub fn mask_data(word: &str, layer: Option<Layer>, at: ArgContext<'_>) -> Option<Data> {
    match plain_data(word, None, layer, at)? {
        data @ (Data::Int(_) | Data::Host(_) | Data::Ether(_)) => Some(data),
        _ => None,
    }
}
