// SPDX-License-Identifier: Apache-2.0
use alloc::vec;

use super::*;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const UDP: u8 = 17;
const ICMP6: u8 = 58;

/// A packet from 2001:db8::1 to 2001:db8::2 of traffic class 184.
fn packet(next_header: u8, body: &[u8]) -> Vec<u8> {
    let mut frame: Vec<u8> = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
    frame.extend([0x86, 0xdd, 0x6b, 0x80, 0, 0]);
    frame.extend((body.len() as u16).to_be_bytes());
    frame.extend([next_header, 64]);
    for last in [1, 2] {
        frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    frame.extend(body);
    frame
}

/// 12 bytes after the headers, with the checksum of `protocol` at a place.
fn with_checksum(protocol: u8, at: usize) -> Vec<u8> {
    let mut frame = packet(protocol, &[3, 232, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    frame[54 + at..56 + at].fill(0);
    let checksum = !transport_sum(&frame, protocol);
    frame[54 + at..56 + at].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// The sum of the pseudo header and 12 bytes behind it.
fn transport_sum(frame: &[u8], protocol: u8) -> u16 {
    let pseudo = [&frame[22..54], &[0, 0, 0, 12, 0, 0, 0, protocol]].concat();
    sum(&[&pseudo, &frame[54..66]].concat())
}

/// Extension headers, each of a kind and 8 bytes, in front of UDP's from 1000 to 53.
fn chained(kinds: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (n, _) in kinds.iter().enumerate() {
        let next = kinds.get(n + 1).copied().unwrap_or(UDP);
        body.extend([next, 0, 0, 0, 0, 0, 0, 0]);
    }
    body.extend([3, 232, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    packet(kinds.first().copied().unwrap_or(UDP), &body)
}

#[test]
fn each_field_decides() {
    let seen = view(&with_checksum(UDP, 6));
    for (text, matches) in [
        ("drop ip6", true),
        ("drop ip", false),
        ("drop ether-type 86dd", true),
        ("drop src 2001:db8::/32 dst 2001:db8::2", true),
        ("drop src 2001:db8::-2001:db8::1", true),
        ("drop src 2001:db8::2-2001:db8::9", false),
        ("drop dst ::/0", true),
        ("drop dst 2001:db8::4/126", false),
        ("drop ip6 proto 17 sport 1000 dport 1-53", true),
        ("drop proto 17 sport 1000 dport 1-53", false),
        ("drop ip6 proto 17 dport 54-65535", false),
        ("drop ip6 tos 184", true),
        ("drop ip6 tos 0-183", false),
    ] {
        assert_eq!(rule(text).matches(&seen), matches, "{text}");
    }
    assert!(!rule("drop ip6").matches(&view(&udp(1, 2))));
}

#[test]
fn the_protocol_is_behind_the_extension_headers() {
    let ports = rule("drop ip6 proto 17 dport 53");
    for kinds in [
        &[][..],
        &[HOP_BY_HOP],
        &[60, ROUTING, 135],
        &[139, 140, 60, 60, 60],
    ] {
        assert!(ports.matches(&view(&chained(kinds))), "{kinds:?}");
    }
    // The length of this one counts words.
    let mut frame = chained(&[AUTHENTICATION]);
    assert!(ports.matches(&view(&frame)));
    frame[55] = 1;
    assert!(!ports.matches(&view(&frame)));
    let first = chained(&[FRAGMENT]);
    assert!(ports.matches(&view(&first)));
    let mut later = first;
    later[57] = 8;
    assert!(!ports.matches(&view(&later)));
    assert!(rule("drop ip6 proto 17").matches(&view(&later)));
}

/// The guest judges what the switch cannot see as a whole.
#[test]
fn headers_beyond_the_limits_have_no_fields() {
    let good = with_checksum(UDP, 6);
    let broken = |at: usize, to: u8| {
        let mut frame = good.clone();
        frame[at] = to;
        view(&frame).ip6
    };
    assert!(view(&good).ip6.is_some());
    // Version, length beyond the frame, no length.
    for (at, to) in [(14, 0x4b), (19, 13), (19, 0)] {
        assert_eq!(broken(at, to), None, "byte {at}");
    }
    assert_eq!(view(&good[..53]).ip6, None);
    assert_eq!(
        view(&chained(&[60; 8])).ip6.map(|ip| ip.protocol),
        Some(UDP)
    );
    assert_eq!(view(&chained(&[60; 9])).ip6, None, "too many headers");
    // The ports end at byte 130.
    let mut long = chained(&[60]);
    long.splice(62..62, vec![0; 64]);
    (long[55], long[19]) = (8, 84);
    assert_eq!(view(&long).ip6, None, "ports beyond the first 128 bytes");
    let cut = packet(HOP_BY_HOP, &[UDP, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(view(&cut).ip6, None, "an extension header is cut");
    let short = packet(UDP, &[0, 1, 0]);
    assert_eq!(view(&short).ip6.unwrap().source_port, None);
}

#[test]
fn wrong_rules_name_field_and_form() {
    for (bad, words) in [
        ("drop ip6 src 10.0.0.1", "src: expected an IPv6 address"),
        ("drop src 10.0.0.1 dst 2001:db8::1", "an IPv6 address"),
        (
            "drop ip src 2001:db8::1",
            "ip: the rule has a field of IPv6",
        ),
        ("drop ip6 ip", "ip: the rule has a field of IPv6"),
        ("drop src 2001:db8::1/32", "no bits behind"),
        ("drop src 2001:db8::/129", "0 to 128"),
        ("drop src 2001:db8::9-2001:db8::1", "smaller value first"),
        ("drop src 2001:db8:::1", "an IPv6 address"),
        ("drop ip6 dport 80", "need proto"),
        (
            "redirect 02:00:00:00:00:01 ip6 to 10.0.0.1",
            "an IPv6 address",
        ),
    ] {
        let error = bad.parse::<Rule>().unwrap_err();
        assert!(error.contains(words), "{bad}: {error}");
    }
}

#[test]
fn a_redirected_packet_has_a_right_checksum() {
    let text = "redirect 02:00:00:00:00:09 to 2001:db8:7::9 ip6";
    let Action::Redirect(targets) = rule(text).action else {
        unreachable!()
    };
    let to = *targets.iter().next().unwrap();
    assert_eq!(rule(text).to_string(), text);
    let own = [2, 0, 0, 0, 0, 2];
    for (protocol, at) in [(UDP, 6), (ICMP6, 2)] {
        let mut frame = with_checksum(protocol, at);
        let seen = view(&frame);
        assert!(rule(text).matches(&seen));
        assert!(redirect(&mut frame, &seen, &to, own));
        assert_eq!(frame[..12], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 2]);
        let destination = view(&frame).ip6.unwrap().destination;
        assert_eq!(destination, 0x2001_0db8_0007_0000_0000_0000_0000_0009);
        assert_eq!(transport_sum(&frame, protocol), u16::MAX);
    }
    let mut frame = chained(&[ROUTING]);
    let (seen, before) = (view(&frame), frame.clone());
    assert!(
        !redirect(&mut frame, &seen, &to, own),
        "another destination"
    );
    assert_eq!(frame, before);
    let four = Target {
        mac: to.mac,
        address: Some([10, 0, 0, 9].into()),
    };
    assert!(!redirect(&mut frame, &seen, &four, own));
    let same = Target {
        address: None,
        ..to
    };
    assert!(redirect(&mut frame, &seen, &same, own));
}
