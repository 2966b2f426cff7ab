// SPDX-License-Identifier: Apache-2.0
use std::net::Ipv4Addr;

use super::connections::CONNECTIONS;
use super::*;
use crate::frame::key::SCTP;

const GUEST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FRIEND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SECOND: Nanoseconds = 1_000_000_000;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_LITE: u8 = 136;

fn filter(rules: &[&str]) -> Filter {
    let rules: Vec<Rule> = rules.iter().map(|r| r.parse().unwrap()).collect();
    Filter::new(&rules)
}

fn packet(source: IpAddr, destination: IpAddr, protocol: u8, ports: (u16, u16)) -> FlowKey {
    FlowKey {
        source,
        destination,
        protocol,
        ports,
        icmp: 0,
        code: 0,
        quote: None,
        later: false,
    }
}

/// The frame of an IPv4 packet.
fn ipv4(source: IpAddr, destination: IpAddr, protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend(bare_ipv4(source, destination, protocol, body));
    frame
}

fn bare_ipv4(source: IpAddr, destination: IpAddr, protocol: u8, body: &[u8]) -> Vec<u8> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (source, destination) else {
        panic!("addresses of IPv4");
    };
    let length = 20 + body.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(body);
    packet
}

fn ends(source: u16, destination: u16) -> Vec<u8> {
    let mut body = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    body.extend([0; 8]);
    body
}

/// An ICMP error about a packet, which it may quote in part.
fn error(kind: u8, code: u8, quoted: &[u8]) -> Vec<u8> {
    [&[kind, code, 0, 0, 0, 0, 5, 0x14], quoted].concat()
}

fn seen(frame: &[u8]) -> FilterKey {
    FilterKey::parse(
        &crate::frame::headers::Ethernet::parse(frame).unwrap(),
        frame,
    )
}

fn to_guest(filter: &mut Filter, key: FlowKey, now: Nanoseconds) -> bool {
    filter.admits(&FilterKey::Packet(key), Direction::Ingress, now)
}

fn from_guest(filter: &mut Filter, key: FlowKey, now: Nanoseconds) -> bool {
    filter.admits(&FilterKey::Packet(key), Direction::Egress, now)
}

#[test]
fn rules_permit_by_direction_protocol_port_and_remote() {
    for (rules, source, protocol, port, good) in [
        (&["ingress,tcp,80-90,10.0.0.0/8"][..], FRIEND, TCP, 80, true),
        (&["ingress,tcp,80-90,10.0.0.0/8"], FRIEND, TCP, 91, false),
        (&["ingress,tcp,80-90,10.0.0.0/8"], FRIEND, UDP, 80, false),
        (&["ingress,tcp,80-90,10.0.0.0/8"], STRANGER, TCP, 80, false),
        (&["egress"], FRIEND, TCP, 80, false),
        (&["ingress,ipv6"], FRIEND, TCP, 80, false),
        (&["ingress,tcp,1", "ingress,udp"], STRANGER, UDP, 9, true),
        (&[], FRIEND, TCP, 80, false),
    ] {
        let key = packet(source, GUEST, protocol, (5000, port));
        let found = to_guest(&mut filter(rules), key, 0);
        assert_eq!(found, good, "{rules:?} {source} {protocol} {port}");
    }
}

#[test]
fn answers_pass_until_the_connection_is_silent_too_long() {
    let mut rules = filter(&["egress"]);
    let asked = packet(GUEST, FRIEND, UDP, (5000, 53));
    let answer = packet(FRIEND, GUEST, UDP, (53, 5000));
    assert!(!to_guest(&mut rules, answer, 0), "not asked for");
    assert!(from_guest(&mut rules, asked, 0));
    assert!(to_guest(&mut rules, answer, 100 * SECOND));
    assert!(to_guest(&mut rules, answer, 200 * SECOND), "it was renewed");
    let other = packet(FRIEND, GUEST, UDP, (53, 5001));
    assert!(!to_guest(&mut rules, other, 200 * SECOND));
    assert!(!to_guest(&mut rules, answer, 400 * SECOND));
}

#[test]
fn ports_of_sctp_dccp_and_udp_lite_and_codes_of_icmp_count() {
    for (rule, protocol, body, good) in [
        ("ingress,sctp,5060", SCTP, ends(1, 5060), true),
        ("ingress,sctp,5060", SCTP, ends(1, 5061), false),
        ("ingress,dccp,9", 33, ends(1, 9), true),
        ("ingress,dccp,9", 33, ends(9, 1), false),
        ("ingress,udplite,9", UDP_LITE, ends(1, 9), true),
        ("ingress,udplite,9", UDP_LITE, vec![0, 1], false),
        ("ingress,icmp,3,code=1", ICMP, error(3, 1, &[]), true),
        ("ingress,icmp,3,code=1", ICMP, error(3, 2, &[]), false),
        ("ingress,icmp,3", ICMP, error(3, 2, &[]), true),
        ("ingress,icmp,3", ICMP, error(4, 0, &[]), false),
    ] {
        let frame = ipv4(FRIEND, GUEST, protocol, &body);
        let found = filter(&[rule]).admits(&seen(&frame), Direction::Ingress, 0);
        assert_eq!(found, good, "{rule} {body:?}");
    }
    let mut rules = filter(&["egress,sctp,5060"]);
    let asked = ipv4(GUEST, FRIEND, SCTP, &ends(7, 5060));
    assert!(rules.admits(&seen(&asked), Direction::Egress, 0));
    for (ports, good) in [(ends(5060, 7), true), (ends(5060, 8), false)] {
        let frame = ipv4(FRIEND, GUEST, SCTP, &ports);
        assert_eq!(rules.admits(&seen(&frame), Direction::Ingress, 0), good);
    }
}

#[test]
fn a_stateless_rule_begins_no_connection() {
    let asked = packet(GUEST, FRIEND, UDP, (5000, 53));
    let answer = packet(FRIEND, GUEST, UDP, (53, 5000));
    let mut rules = filter(&["egress,stateless"]);
    assert!(from_guest(&mut rules, asked, 0));
    assert!(!to_guest(&mut rules, answer, 0), "no rule for answers");
    assert_eq!(rules.info().connections, 0);
    let mut both = filter(&["egress,stateless", "egress,udp"]);
    assert!(from_guest(&mut both, asked, 0) && to_guest(&mut both, answer, 0));
}

/// Path MTU discovery and traceroute work for a guest that may only send.
#[test]
fn errors_about_packets_of_the_guest_come_back_from_anywhere() {
    let asked = bare_ipv4(GUEST, FRIEND, UDP, &ends(5000, 33434));
    let other = bare_ipv4(GUEST, FRIEND, UDP, &ends(5000, 33435));
    let of_stranger = bare_ipv4(STRANGER, FRIEND, UDP, &ends(5000, 33434));
    let mut later = asked.clone();
    later[7] = 3;
    for (message, good) in [
        (error(11, 0, &asked), true),
        (error(3, 4, &asked), true),
        (error(3, 3, &asked[..28]), true),
        (error(12, 0, &asked), true),
        (error(5, 0, &asked), false),
        (error(3, 4, &other), false),
        (error(3, 4, &of_stranger), false),
        (error(3, 4, &later), false),
        (error(3, 4, &asked[..22]), false),
        (error(3, 4, &[]), false),
    ] {
        let mut rules = filter(&["egress"]);
        let key = seen(&[&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], &asked[..]].concat());
        assert!(rules.admits(&key, Direction::Egress, 0));
        let frame = ipv4(STRANGER, GUEST, ICMP, &message);
        let key = seen(&frame);
        let related = matches!(rules.explain(key, Direction::Ingress, 0), Why::Related);
        assert_eq!(related, good, "{message:?}");
        assert_eq!(
            rules.admits(&key, Direction::Ingress, 0),
            good,
            "{message:?}"
        );
        assert_eq!(rules.info().connections, 1, "an error begins none");
        let after = 121 * SECOND;
        assert!(
            !rules.admits(&key, Direction::Ingress, after),
            "it renews none"
        );
    }
}

#[test]
fn errors_of_ipv6_and_about_an_echo_come_back() {
    let (guest, router) = ("2001:db8::5", "2001:db8:9::1");
    let [guest, router] = [guest, router].map(|a| a.parse::<std::net::Ipv6Addr>().unwrap());
    let v6 = |source: std::net::Ipv6Addr, destination: std::net::Ipv6Addr, next, body: &[u8]| {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((body.len() as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend(source.octets());
        packet.extend(destination.octets());
        packet.extend(body);
        packet
    };
    let frame =
        |packet: &[u8]| [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd], packet].concat();
    let friend = "2001:db8:1::9".parse().unwrap();
    let mut rules = filter(&["egress"]);
    let echo = v6(guest, friend, ICMPV6, &[128, 0, 0, 0, 0, 77, 0, 1]);
    assert!(rules.admits(&seen(&frame(&echo)), Direction::Egress, 0));
    for (kind, good) in [(1, true), (2, true), (3, true), (4, true), (128, false)] {
        let message = v6(router, guest, ICMPV6, &error(kind, 0, &echo));
        let found = rules.admits(&seen(&frame(&message)), Direction::Ingress, 0);
        assert_eq!(found, good, "{kind}");
    }
    let other = v6(guest, friend, ICMPV6, &[128, 0, 0, 0, 0, 78, 0, 1]);
    let message = v6(router, guest, ICMPV6, &error(2, 0, &other));
    assert!(!rules.admits(&seen(&frame(&message)), Direction::Ingress, 0));
}

/// A guest that serves may tell about a packet that a rule admitted.
#[test]
fn a_guest_may_send_an_error_about_what_it_got() {
    let mut rules = filter(&["ingress,udp,53"]);
    let asked = bare_ipv4(FRIEND, GUEST, UDP, &ends(5000, 53));
    let wire = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], &asked[..]].concat();
    let refusal = ipv4(GUEST, FRIEND, ICMP, &error(3, 3, &asked));
    assert!(!rules.admits(&seen(&refusal), Direction::Egress, 0));
    assert!(rules.admits(&seen(&wire), Direction::Ingress, 0));
    assert!(rules.admits(&seen(&refusal), Direction::Egress, 0));
}

#[test]
fn what_a_guest_needs_for_an_address_passes_and_no_more() {
    let mut none = filter(&[]);
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let all = IpAddr::V4(Ipv4Addr::BROADCAST);
    assert!(none.admits(&FilterKey::Arp, Direction::Ingress, 0));
    assert!(!none.admits(&FilterKey::Other, Direction::Ingress, 0));
    assert!(from_guest(&mut none, packet(any, all, UDP, (68, 67)), 0));
    assert!(to_guest(&mut none, packet(FRIEND, all, UDP, (67, 68)), 0));
    assert!(!from_guest(&mut none, packet(GUEST, all, UDP, (67, 68)), 0));
    assert!(!to_guest(
        &mut none,
        packet(FRIEND, GUEST, UDP, (67, 69)),
        0
    ));
    let v6 = |icmp| FlowKey {
        icmp,
        ..packet(
            "fe80::1".parse().unwrap(),
            "ff02::1".parse().unwrap(),
            ICMPV6,
            (0, 0),
        )
    };
    assert!(to_guest(&mut none, v6(135), 0) && !to_guest(&mut none, v6(128), 0));
}

#[test]
fn later_fragments_need_a_rule_for_their_addresses() {
    let mut rules = filter(&["ingress,udp,53,10.0.0.0/8"]);
    let later = |source| FlowKey {
        later: true,
        ..packet(source, GUEST, UDP, (0, 0))
    };
    assert!(to_guest(&mut rules, later(FRIEND), 0));
    assert!(!to_guest(&mut rules, later(STRANGER), 0));
}

/// A flood of connections keeps the newest, and its memory has a bound.
#[test]
fn a_flood_of_connections_costs_no_memory() {
    let mut rules = filter(&["egress"]);
    for n in 0..3 * CONNECTIONS {
        let key = packet(
            GUEST,
            FRIEND,
            TCP,
            ((n % 60_000) as u16, (n / 60_000) as u16),
        );
        let answer = packet(FRIEND, GUEST, TCP, (key.ports.1, key.ports.0));
        let now = n as u64 * 1000;
        assert!(from_guest(&mut rules, key, now) && to_guest(&mut rules, answer, now));
    }
}

/// The fast form of the rules and the rules themselves permit the same packets.
#[test]
fn the_scan_and_the_trace_agree() {
    let parts = [
        &["", ",ipv4", ",ipv6"][..],
        &["", ",tcp", ",udp", ",sctp", ",udplite", ",icmp", ",icmpv6"],
        &["", ",0", ",53-90", ",53,code=0", ",53,code=9"],
        &[
            "",
            ",10.0.0.0/8",
            ",10.0.0.2/32",
            ",0.0.0.0/0",
            ",2001:db8::/33",
            ",::/0",
        ],
    ];
    let mut texts = vec!["ingress".to_owned()];
    for part in parts {
        texts = texts
            .iter()
            .flat_map(|t| part.iter().map(move |p| format!("{t}{p}")))
            .collect();
    }
    let rules: Vec<Rule> = texts.iter().filter_map(|t| t.parse().ok()).collect();
    assert!(rules.len() > 100);
    let v6 = [
        "2001:db8::2",
        "2001:db8:8000::2",
        "::ffff:10.0.0.2",
        "::a00:2",
    ];
    let v6 = v6.map(|a| a.parse::<IpAddr>().unwrap());
    let sources = [FRIEND, STRANGER].into_iter().chain(v6);
    for source in sources {
        for protocol in [TCP, UDP, SCTP, UDP_LITE, ICMP, ICMPV6, 0, 47, 255] {
            for (port, code, later) in [
                (0, 0, false),
                (53, 0, false),
                (53, 9, false),
                (90, 255, false),
                (91, 0, false),
                (0, 0, true),
            ] {
                let key = FlowKey {
                    later,
                    code,
                    icmp: port as u8,
                    ..packet(source, GUEST, protocol, (1, port))
                };
                for rule in &rules {
                    let slow = matches(rule, &key, source);
                    let fast = Scan::new(std::slice::from_ref(rule)).permits(&key, source);
                    assert_eq!(fast, slow, "{rule:?} {key:?}");
                }
            }
        }
    }
}
