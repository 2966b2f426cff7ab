// SPDX-License-Identifier: Apache-2.0
//! Names that patterns may use for numbers (Click's IPClassifier documentation).
use click_core::ArgContext;
use click_core::value::number;
use click_wire::{icmp, tcp};

/// Kinds of names that PortInfo defines.
pub const TCP_PORTS: &str = "TCP port";
pub const UDP_PORTS: &str = "UDP port";

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Protocol,
    Port,
    TcpFlag,
    IcmpType,
}

const PROTOCOLS: [(&str, u32); 11] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("icmp6", ICMP6),
    ("sctp", 132),
    ("tcpudp", TCP_OR_UDP),
    ("transp", ANY_TRANSPORT),
];

pub const ICMP6: u32 = 58;

/// Types of ICMPv6 (RFC 4443, RFC 4861), by the names that those of ICMP have where there are such.
const ICMP6_TYPES: [(&str, u32); 11] = [
    ("unreachable", 1),
    ("packet-too-big", 2),
    ("timeexceeded", 3),
    ("parameterproblem", 4),
    ("echo", 128),
    ("echo-reply", 129),
    ("routersolicit", 133),
    ("routeradvert", 134),
    ("neighborsolicit", 135),
    ("neighboradvert", 136),
    ("redirect", 137),
];

/// A protocol that stands for two.
pub const TCP_OR_UDP: u32 = 256;
/// Any protocol with a transport header.
pub const ANY_TRANSPORT: u32 = 257;

/// Names of ports, the same for TCP and UDP.
const PORTS: [(&str, u32); 34] = [
    ("echo", 7),
    ("discard", 9),
    ("daytime", 13),
    ("chargen", 19),
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("dns", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("finger", 79),
    ("www", 80),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("irc", 194),
    ("imap3", 220),
    ("https", 443),
    ("rip", 520),
    ("route", 520),
    ("imaps", 993),
    ("pop3s", 995),
    ("pptp", 1723),
];

fn flag(name: &str) -> Option<u32> {
    let known = ["syn", "fin", "ack", "rst", "psh", "urg"].contains(&name);
    let flags = tcp::FLAGS.iter().filter(|_| known);
    flags
        .filter(|(n, _)| *n == name)
        .map(|(_, v)| u32::from(*v))
        .next()
}

#[inline(never)]
fn icmp_type(name: &str, protocol: Option<u32>) -> Option<u32> {
    if protocol == Some(ICMP6) {
        let mut types = ICMP6_TYPES.iter();
        return types.find(|(n, _)| *n == name).map(|(_, v)| *v);
    }
    icmp::TYPES
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, v)| u32::from(*v))
}

/// All names.
pub fn all() -> impl Iterator<Item = &'static str> {
    let flags = tcp::FLAGS.iter().map(|(name, _)| *name);
    let types = icmp::TYPES.iter().map(|(name, _)| *name);
    let numbers = PROTOCOLS.iter().chain(&PORTS).map(|(name, _)| *name);
    numbers.chain(flags).chain(types)
}

/// The name of a protocol.
pub fn protocol_name(protocol: u32) -> Option<&'static str> {
    let named = PROTOCOLS.iter().find(|(_, number)| *number == protocol);
    named.map(|(name, _)| *name)
}

/// The meanings that a name may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing.
    Unknown,
    /// Several things, or nothing that fits here.
    Unclear,
    /// This.
    Value(Kind, u32),
}

/// Looks a name up, also among those that PortInfo defines and those of the system; `wanted` and
/// `protocol` narrow it down.
pub fn lookup_at(
    at: ArgContext<'_>,
    name: &str,
    wanted: Option<Kind>,
    protocol: Option<u32>,
) -> Lookup {
    let is_number = |kind| wanted.is_none_or(|w| w == kind);
    if is_number(Kind::Port) {
        if let Some(port) = port_at(protocol, |kind| {
            let named = at.names.find(at.element, name)?;
            number(named.meanings.get(kind.0)?)?.try_into().ok()
        }) {
            return Lookup::Value(Kind::Port, port);
        }
    }
    match (lookup(name, wanted, protocol), &at.environment.host) {
        (Lookup::Unknown, Some(host)) => {
            let service = |kind: &PortKind| host.service(name, kind.1);
            let port = port_at(protocol, service).filter(|_| is_number(Kind::Port));
            let number = host.protocol(name).filter(|_| is_number(Kind::Protocol));
            match (number, port) {
                (Some(number), None) => Lookup::Value(Kind::Protocol, number.into()),
                (None, Some(port)) => Lookup::Value(Kind::Port, port),
                (Some(_), Some(_)) => Lookup::Unclear,
                (None, None) => Lookup::Unknown,
            }
        }
        (found, _) => found,
    }
}

/// The kind of names that PortInfo defines, and the protocol's name and number.
type PortKind = (&'static str, &'static str, u32);

const PORT_KINDS: [PortKind; 2] = [(TCP_PORTS, "tcp", 6), (UDP_PORTS, "udp", 17)];

/// The port that `find` knows for each protocol that is meant; none if they differ.
fn port_at(protocol: Option<u32>, find: impl Fn(&PortKind) -> Option<u16>) -> Option<u32> {
    let any = protocol.is_none_or(|p| p == TCP_OR_UDP || p == ANY_TRANSPORT);
    let meant = PORT_KINDS.iter().filter(|k| any || protocol == Some(k.2));
    let mut ports = meant.filter_map(find);
    let first = ports.next()?;
    ports.all(|port| port == first).then_some(first.into())
}

/// Looks a name up among those that are the same everywhere.
pub fn lookup(name: &str, wanted: Option<Kind>, protocol: Option<u32>) -> Lookup {
    let port = PORTS.iter().find(|p| p.0 == name).map(|p| p.1);
    let for_protocol = |one: u32| protocol.is_none_or(|p| p == one || p == TCP_OR_UDP);
    let protocol_number = PROTOCOLS.iter().find(|p| p.0 == name).map(|p| p.1);
    let all = [
        (Kind::Protocol, protocol_number, true),
        (Kind::Port, port, for_protocol(6) || for_protocol(17)),
        (Kind::TcpFlag, flag(name), for_protocol(6)),
        (
            Kind::IcmpType,
            icmp_type(name, protocol),
            protocol.is_none_or(|p| p == 1 || p == ICMP6),
        ),
    ];
    if all.iter().all(|(_, value, _)| value.is_none()) {
        return Lookup::Unknown;
    }
    let fits =
        |(kind, _, fits): &(Kind, Option<u32>, bool)| *fits && wanted.is_none_or(|w| w == *kind);
    let mut fitting = all
        .into_iter()
        .filter(fits)
        .filter_map(|(kind, value, _)| Some((kind, value?)));
    match (fitting.next(), fitting.next()) {
        (Some((kind, value)), None) => Lookup::Value(kind, value),
        _ => Lookup::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_fit() {
        assert_eq!(lookup("tcp", None, None), Lookup::Value(Kind::Protocol, 6));
        assert_eq!(lookup("www", None, None), Lookup::Value(Kind::Port, 80));
        assert_eq!(lookup("syn", None, None), Lookup::Value(Kind::TcpFlag, 2));
        assert_eq!(lookup("echo", None, None), Lookup::Unclear);
        assert_eq!(
            lookup("echo", Some(Kind::IcmpType), Some(1)),
            Lookup::Value(Kind::IcmpType, 8)
        );
        assert_eq!(
            lookup("echo", Some(Kind::Port), Some(17)),
            Lookup::Value(Kind::Port, 7)
        );
        assert_eq!(lookup("www", None, Some(17)), Lookup::Value(Kind::Port, 80));
        assert_eq!(lookup("www", None, Some(1)), Lookup::Unclear);
        assert_eq!(lookup("10.0.0.1", None, None), Lookup::Unknown);
        let of_six = |name| lookup(name, Some(Kind::IcmpType), Some(ICMP6));
        assert_eq!(of_six("echo"), Lookup::Value(Kind::IcmpType, 128));
        assert_eq!(of_six("packet-too-big"), Lookup::Value(Kind::IcmpType, 2));
    }
}
