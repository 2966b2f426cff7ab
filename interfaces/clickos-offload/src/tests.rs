// SPDX-License-Identifier: Apache-2.0
use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::view::{View, sum};
use crate::{first, redirect};

#[path = "ip6_tests.rs"]
mod ip6;

fn rule(text: &str) -> Rule {
    text.parse().unwrap()
}

/// A UDP packet from 10.0.0.1 to 10.0.0.2 with right checksums.
fn udp(source_port: u16, destination_port: u16) -> Vec<u8> {
    let mut frame: Vec<u8> = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
    frame.extend([
        8, 0, 0x45, 0xb8, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend(source_port.to_be_bytes());
    frame.extend(destination_port.to_be_bytes());
    frame.extend([0, 12, 0, 0, 1, 2, 3, 4]);
    let header = !sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    let transport = !transport_sum(&frame);
    frame[40..42].copy_from_slice(&transport.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// The sum of UDP's pseudo header and the datagram.
fn transport_sum(frame: &[u8]) -> u16 {
    let pseudo = [&frame[26..34], &[0, 17, 0, 12]].concat();
    sum(&[&pseudo, &frame[34..46]].concat())
}

fn view(frame: &[u8]) -> View {
    View::of(frame, frame.len()).unwrap()
}

#[test]
fn each_field_decides() {
    let seen = view(&udp(1000, 53));
    for (text, matches) in [
        ("drop", true),
        ("drop ip", true),
        (
            "drop ether-src 02:00:00:00:00:01 ether-dst 02:00:00:00:00:02",
            true,
        ),
        ("drop ether-src 02:00:00:00:00:02", false),
        ("drop ether-type 0800", true),
        ("drop ether-type 0806", false),
        ("drop src 10.0.0.0/8 dst 10.0.0.2", true),
        ("drop src 10.0.0.0-10.0.0.1", true),
        ("drop src 10.0.0.2-10.0.0.9", false),
        ("drop dst 0.0.0.0/1", true),
        ("drop proto 17 sport 1000 dport 1-53", true),
        ("drop proto 17 dport 54-65535", false),
        ("drop proto 6", false),
        ("drop tos 184", true),
        ("drop tos 0-183", false),
    ] {
        assert_eq!(rule(text).matches(&seen), matches, "{text}");
    }
    let rules = ["pass proto 6", "drop proto 17 dport 53", "drop"].map(rule);
    assert_eq!(first(&rules, &seen), Some(1));
    assert_eq!(first(&rules[..1], &seen), None);
}

#[test]
fn only_valid_packets_have_ip_fields() {
    let good = udp(1, 2);
    let broken = |at: usize, to: u8| {
        let mut frame = good.clone();
        frame[at] = to;
        view(&frame).ip
    };
    assert!(view(&good).ip.is_some());
    for (at, to) in [
        (14, 0x55),
        (14, 0x44),
        (17, 60),
        (17, 19),
        (24, 7),
        (22, 63),
    ] {
        assert_eq!(broken(at, to), None, "byte {at}");
    }
    assert_eq!(View::of(&good[..13], 13), None);
    assert_eq!(View::of(&good[..30], 30).unwrap().ip, None);
    let mut later = good.clone();
    later[21] = 1;
    let header = {
        later[24..26].fill(0);
        !sum(&later[14..34])
    };
    later[24..26].copy_from_slice(&header.to_be_bytes());
    assert_eq!(view(&later).ip.unwrap().destination_port, None);
    assert!(!rule("drop proto 17 dport 2").matches(&view(&later)));
    assert!(rule("drop proto 17").matches(&view(&later)));
}

#[test]
fn wrong_rules_name_field_and_form() {
    for (bad, words) in [
        ("", "pass, drop or redirect"),
        ("allow", "pass, drop or redirect"),
        ("drop src", "the value is missing"),
        ("drop src 10.0.0.1/8", "no bits behind"),
        ("drop src 10.0.0.0/33", "0 to 32"),
        ("drop src 10.0.0.9-10.0.0.1", "smaller value first"),
        ("drop proto 256", "8 bits"),
        ("drop proto +6", "8 bits"),
        ("drop dport 80", "need proto"),
        ("drop to 10.0.0.1", "field: expected"),
        ("drop colour red", "field: expected"),
        ("redirect", "the value is missing"),
        ("redirect ff:ff:ff:ff:ff:ff", "one station"),
        ("redirect 02:00:00:00:00:1", "a MAC address"),
        ("redirect 02:00:00:00:00:01:02", "a MAC address"),
        ("redirect 02:00:00:00:00:01 to x", "an IPv4 address"),
        ("drop ether-type 800", "4 hexadecimal"),
    ] {
        let error = bad.parse::<Rule>().unwrap_err();
        assert!(error.contains(words), "{bad}: {error}");
    }
    let long = "x".repeat(10_000).parse::<Rule>().unwrap_err();
    assert!(long.len() < 120);
}

#[test]
fn a_redirected_packet_has_right_checksums() {
    let target = |text: &str| match rule(text).action {
        Action::Redirect(targets) => *targets.iter().next().unwrap(),
        _ => unreachable!(),
    };
    for port in 0..2000 {
        let mut frame = udp(port, 53);
        let seen = view(&frame);
        let to = target("redirect 02:00:00:00:00:09 to 192.168.7.9");
        assert!(redirect(&mut frame, &seen, &to, [2, 0, 0, 0, 0, 2]));
        assert_eq!(frame[..12], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 2]);
        assert_eq!(view(&frame).ip.unwrap().destination, 0xc0a8_0709);
        assert_eq!(transport_sum(&frame), u16::MAX);
    }
    let mut frame = udp(1, 2);
    frame[40..42].fill(0);
    let seen = view(&frame);
    let to = target("redirect 02:00:00:00:00:09 to 192.168.7.9");
    assert!(redirect(&mut frame, &seen, &to, [2; 6]));
    assert_eq!(frame[40..42], [0, 0], "UDP without a checksum stays so");
    let mut frame = udp(1, 2);
    assert!(
        !redirect(&mut frame[..30], &seen, &to, [2; 6]),
        "a short head"
    );
}

/// Each station gets its part of the flows, and those of a station that goes are all that move.
#[test]
fn flows_spread_over_the_stations_of_a_rule() {
    let text = |stations: &[u8]| {
        let one = |n: &u8| format!("02:00:00:00:00:0{n} to 192.168.7.{n}");
        let all: Vec<_> = stations.iter().map(one).collect();
        format!("redirect {}", all.join(" or "))
    };
    let chosen = |stations: &[u8], port| {
        let text = text(stations);
        assert_eq!(rule(&text).to_string(), text);
        let Action::Redirect(targets) = rule(&text).action else {
            unreachable!()
        };
        let seen = view(&udp(port, 53));
        let order: Vec<_> = targets.for_flow(seen.flow()).map(|t| t.mac[5]).collect();
        assert_eq!(order.len(), stations.len());
        order[0]
    };
    let mut counts = [0; 5];
    for port in 0..4000 {
        let (all, fewer) = (chosen(&[1, 2, 3, 4], port), chosen(&[1, 2, 4], port));
        counts[usize::from(all)] += 1;
        assert!(all == 3 || all == fewer, "a flow of another station moved");
    }
    assert!(
        counts[1..].iter().all(|n| (850..1150).contains(n)),
        "{counts:?}"
    );
    let nine: Vec<_> = (1..=9).collect();
    let error = text(&nine).parse::<Rule>().unwrap_err();
    assert!(error.contains("8 stations already"), "{error}");
    let twice = text(&[1, 1]).parse::<Rule>().unwrap_err();
    assert!(twice.contains("another station"), "{twice}");
}

/// The parts of a packet find one station, whether they have its ports or not.
#[test]
fn fragments_have_the_flow_of_their_addresses() {
    let part = |port, at: u16| {
        let mut frame = udp(port, 53);
        frame[20..22].copy_from_slice(&at.to_be_bytes());
        frame[24..26].fill(0);
        let sum = !crate::view::sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        view(&frame).flow()
    };
    assert_eq!(part(1, 0x2000), part(2, 0x0007));
    assert_eq!(part(1, 0x2007), part(2, 0x2000));
    assert_ne!(part(1, 0), part(2, 0));
}

fn some_rule() -> impl Strategy<Value = Rule> {
    let range = |(a, b): (u32, u32)| Range {
        first: a.min(b),
        last: a.max(b),
    };
    let small = |(a, b): (u8, u8)| Range {
        first: a.min(b),
        last: a.max(b),
    };
    let port = |(a, b): (u16, u16)| Range {
        first: a.min(b),
        last: a.max(b),
    };
    let wide = |(a, b): (u128, u128)| Range {
        first: a.min(b),
        last: a.max(b),
    };
    let ip = (
        any::<((u32, u32), (u32, u32))>(),
        any::<((u8, u8), (u8, u8))>(),
        any::<Option<(u16, u16)>>(),
    )
        .prop_map(
            move |((source, destination), (protocol, tos), ports)| IpPattern {
                source: range(source),
                destination: range(destination),
                protocol: small(protocol),
                tos: small(tos),
                source_port: ports.map(port),
                destination_port: None,
            },
        );
    let macs = any::<(Option<[u8; 6]>, Option<[u8; 6]>, Option<u16>)>();
    let ends = any::<Option<((u128, u128), (u128, u128))>>();
    let parts = (any::<bool>(), macs, proptest::option::of(ip), ends);
    parts.prop_map(move |(drop, (from, to, kind), ip, ends)| {
        // The fields of a rule of IPv6 but the addresses are those of the other one.
        let six = ends.map(|(source, destination)| {
            let other = ip.unwrap_or(IpPattern::ANY);
            Ip6Pattern {
                source: wide(source),
                destination: wide(destination),
                protocol: other.protocol,
                tos: other.tos,
                source_port: other.source_port,
                destination_port: other.destination_port,
            }
        });
        Rule {
            action: if drop { Action::Drop } else { Action::Pass },
            ether_source: from,
            ether_destination: to,
            ether_type: kind,
            ip: ip.filter(|_| six.is_none()),
            ip6: six,
        }
    })
}

proptest! {
    #[test]
    fn the_text_of_a_rule_is_the_rule(rule in some_rule()) {
        let ports = rule.ip.map(|ip| (ip.source_port, ip.protocol));
        let ports = ports.or(rule.ip6.map(|ip| (ip.source_port, ip.protocol)));
        let has_any = ports.is_some_and(|(port, protocol)| port.is_some() && protocol == IpPattern::ANY.protocol);
        prop_assume!(!has_any);
        prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
    }

    #[test]
    fn no_text_and_no_frame_panics(text in ".{0,80}", frame: Vec<u8>) {
        let _ = text.parse::<Rule>();
        if let Some(view) = View::of(&frame, frame.len()) {
            let _ = first(&[rule("drop ip"), rule("drop ip6"), rule("drop")], &view);
        }
    }
}
