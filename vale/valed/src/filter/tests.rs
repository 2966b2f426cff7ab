// SPDX-License-Identifier: Apache-2.0
use std::net::Ipv4Addr;

use super::connections::CONNECTIONS;
use super::*;

const GUEST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FRIEND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SECOND: Nanoseconds = 1_000_000_000;

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
        later: false,
    }
}

fn to_guest(filter: &mut Filter, key: FlowKey, now: Nanoseconds) -> bool {
    filter.admits(FilterKey::Packet(key), Direction::Ingress, now)
}

fn from_guest(filter: &mut Filter, key: FlowKey, now: Nanoseconds) -> bool {
    filter.admits(FilterKey::Packet(key), Direction::Egress, now)
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
fn what_a_guest_needs_for_an_address_passes_and_no_more() {
    let mut none = filter(&[]);
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let all = IpAddr::V4(Ipv4Addr::BROADCAST);
    assert!(none.admits(FilterKey::Arp, Direction::Ingress, 0));
    assert!(!none.admits(FilterKey::Other, Direction::Ingress, 0));
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
        &["", ",tcp", ",udp", ",icmp", ",icmpv6"],
        &["", ",0", ",53-90"],
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
        for protocol in [TCP, UDP, ICMP, ICMPV6, 0, 47, 255] {
            for (port, later) in [(0, false), (53, false), (91, false), (0, true)] {
                let key = FlowKey {
                    later,
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
