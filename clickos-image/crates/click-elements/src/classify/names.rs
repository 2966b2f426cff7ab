// SPDX-License-Identifier: Apache-2.0
//! Names that patterns may use for numbers (Click's IPClassifier documentation).
use click_wire::{icmp, tcp};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Protocol,
    Port,
    TcpFlag,
    IcmpType,
}

const PROTOCOLS: [(&str, u32); 8] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("tcpudp", TCP_OR_UDP),
    ("transp", ANY_TRANSPORT),
];

/// A protocol that stands for two.
pub const TCP_OR_UDP: u32 = 256;
/// Any protocol with a transport header.
pub const ANY_TRANSPORT: u32 = 257;

/// Port names: for TCP, for UDP.
const PORTS: [(&str, u32, bool, bool); 33] = [
    ("echo", 7, true, true),
    ("discard", 9, true, true),
    ("daytime", 13, true, true),
    ("chargen", 19, true, true),
    ("ftp-data", 20, true, false),
    ("ftp", 21, true, false),
    ("ssh", 22, true, true),
    ("telnet", 23, true, false),
    ("smtp", 25, true, false),
    ("domain", 53, true, true),
    ("dns", 53, true, true),
    ("bootps", 67, false, true),
    ("bootpc", 68, false, true),
    ("tftp", 69, false, true),
    ("finger", 79, true, false),
    ("www", 80, true, false),
    ("pop3", 110, true, false),
    ("sunrpc", 111, true, true),
    ("auth", 113, true, false),
    ("nntp", 119, true, false),
    ("ntp", 123, false, true),
    ("netbios-ns", 137, false, true),
    ("netbios-dgm", 138, false, true),
    ("netbios-ssn", 139, true, false),
    ("snmp", 161, false, true),
    ("snmp-trap", 162, false, true),
    ("irc", 194, true, false),
    ("imap3", 220, true, false),
    ("https", 443, true, false),
    ("rip", 520, false, true),
    ("route", 520, false, true),
    ("imaps", 993, true, false),
    ("pop3s", 995, true, false),
];

fn flag(name: &str) -> Option<u32> {
    let known = ["syn", "fin", "ack", "rst", "psh", "urg"].contains(&name);
    let flags = tcp::FLAGS.iter().filter(|_| known);
    flags
        .filter(|(n, _)| *n == name)
        .map(|(_, v)| u32::from(*v))
        .next()
}

fn icmp_type(name: &str) -> Option<u32> {
    icmp::TYPES
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, v)| u32::from(*v))
}

/// What a name may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing.
    Unknown,
    /// Several things, or nothing that fits here.
    Unclear,
    /// This.
    Value(Kind, u32),
}

/// Looks a name up; `wanted` and `protocol` narrow it down.
pub fn lookup(name: &str, wanted: Option<Kind>, protocol: Option<u32>) -> Lookup {
    let port = PORTS.iter().find(|p| p.0 == name);
    let for_protocol = |one: u32| protocol.is_none_or(|p| p == one || p == TCP_OR_UDP);
    let fits_port =
        |p: &&(&str, u32, bool, bool)| (p.2 && for_protocol(6)) || (p.3 && for_protocol(17));
    let protocol_number = PROTOCOLS.iter().find(|p| p.0 == name).map(|p| p.1);
    let all = [
        (Kind::Protocol, protocol_number, true),
        (
            Kind::Port,
            port.map(|p| p.1),
            port.as_ref().is_some_and(fits_port),
        ),
        (Kind::TcpFlag, flag(name), for_protocol(6)),
        (
            Kind::IcmpType,
            icmp_type(name),
            protocol.is_none_or(|p| p == 1),
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
        assert_eq!(lookup("www", None, Some(17)), Lookup::Unclear);
        assert_eq!(lookup("10.0.0.1", None, None), Lookup::Unknown);
    }
}
