// SPDX-License-Identifier: Apache-2.0
use std::net::Ipv6Addr;

use serde_json::json;

use super::*;
use crate::frame::packet::MAX_EXTENSIONS;

const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
const PAIR: Mac = Mac([2, 0, 0, 0, 0, 2]);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 9]);

const RARP: u16 = 0x8035;

fn guard() -> Guard {
    guard_with(false)
}

fn guard_with(vlan_tags: bool) -> Guard {
    let add: PortAdd = serde_json::from_value(json!({
        "switch": "vale0", "port": "p", "kind": "process", "segment": 1, "mac": OWN, "vlan_tags": vlan_tags,
        "allowed": [{"ip": "10.0.0.5/32"}, {"mac": PAIR, "ip": "10.0.9.0/24"}, {"ip": "2001:db8::5/128"}],
    }))
    .unwrap();
    Guard::new(&add)
}

fn frame(source: Mac, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [[0xff; 6], source.0].concat();
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

fn judge(frame: &[u8]) -> Result<usize, DropReason> {
    guard().judge(&Ethernet::parse(frame).unwrap(), frame)
}

fn allows(frame: &[u8]) -> bool {
    judge(frame).is_ok()
}

/// The verdict on an IPv4 packet of the port's own address.
fn judge_v4(packet: &[u8]) -> Result<usize, DropReason> {
    judge(&frame(OWN, IPV4, packet))
}

/// As [`judge_v4`], from the own global address.
fn judge_v6(next: u8, body: &[u8]) -> Result<usize, DropReason> {
    judge(&frame(OWN, IPV6, &ipv6("2001:db8::5", next, body)))
}

fn ipv4(source: [u8; 4], protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![
        0x45,
        0,
        0,
        20 + body.len() as u8,
        0,
        0,
        0,
        0,
        64,
        protocol,
        0,
        0,
    ];
    packet.extend(source);
    packet.extend([255; 4]);
    packet.extend(body);
    packet
}

fn ipv6(source: &str, next: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, body.len() as u8, next, 255];
    packet.extend(source.parse::<Ipv6Addr>().unwrap().octets());
    packet.extend([0xff; 16]);
    packet.extend(body);
    packet
}

fn arp(mac: Mac, ip: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 2];
    packet.extend(mac.0);
    packet.extend(ip);
    packet.extend([0; 10]);
    packet
}

/// A request without a sender's address (RFC 5227).
fn probe(target: [u8; 4]) -> Vec<u8> {
    let mut packet = arp(OWN, [0; 4]);
    packet[7] = 1;
    packet[24..28].copy_from_slice(&target);
    packet
}

/// A neighbor solicitation (135) or advertisement (136) for `target` with a link-layer option.
fn discovery(kind: u8, target: &str, mac: Mac) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.parse::<Ipv6Addr>().unwrap().octets());
    message.extend([kind - 134, 1]);
    message.extend(mac.0);
    message
}

#[test]
fn mac_and_ipv4_source_belong_together() {
    for (source, ip, expected) in [
        (OWN, [10, 0, 0, 5], true),
        (OWN, [10, 0, 0, 6], false),
        (OTHER, [10, 0, 0, 5], false),
        (PAIR, [10, 0, 9, 200], true),
        (PAIR, [10, 0, 0, 5], false),
        (OWN, [10, 0, 9, 200], false),
        (OWN, [0, 0, 0, 0], false),
    ] {
        assert_eq!(
            allows(&frame(source, IPV4, &ipv4(ip, 1, &[8]))),
            expected,
            "{source} {ip:?}"
        );
    }
    assert!(
        !allows(&frame(OWN, IPV4, &[0x45; 15])),
        "too short for an address"
    );
}

#[test]
fn dhcp_may_come_from_the_unspecified_address_with_the_right_mac() {
    let request = ipv4([0; 4], 17, &[0, 68, 0, 67, 0, 8, 0, 0]);
    assert!(allows(&frame(OWN, IPV4, &request)));
    assert!(!allows(&frame(OTHER, IPV4, &request)));
    assert!(!allows(&frame(
        OWN,
        IPV4,
        &ipv4([0; 4], 17, &[0, 67, 0, 68, 0, 8, 0, 0])
    )));
    let mut fragment = request.clone();
    fragment[7] = 1;
    assert!(!allows(&frame(OWN, IPV4, &fragment)));
}

#[test]
fn arp_speaks_for_the_sender_only() {
    assert!(allows(&frame(OWN, ARP, &arp(OWN, [10, 0, 0, 5]))));
    assert!(allows(&frame(OWN, ARP, &probe([10, 0, 0, 5]))));
    assert!(
        !allows(&frame(OWN, ARP, &probe([10, 0, 0, 9]))),
        "a probe for another's address"
    );
    for (at, value) in [
        (1, 6),
        (3, 0x86),
        (4, 8),
        (5, 16),
        (7, 3),
        (7, 4),
        (7, 8),
        (7, 9),
    ] {
        let mut odd = arp(OWN, [10, 0, 0, 5]);
        odd[at] = value;
        let verdict = judge(&frame(OWN, ARP, &odd));
        assert_eq!(verdict, Err(DropReason::Type), "octet {at} is {value}");
    }
    let mut answer = probe([10, 0, 0, 5]);
    answer[7] = 2;
    assert!(!allows(&frame(OWN, ARP, &answer)), "a reply from nobody");
    assert!(
        !allows(&frame(OWN, ARP, &arp(OWN, [10, 0, 0, 1]))),
        "another's address"
    );
    assert!(
        !allows(&frame(OWN, ARP, &arp(OTHER, [10, 0, 0, 5]))),
        "another's MAC"
    );
    assert!(!allows(&frame(OTHER, ARP, &arp(OTHER, [10, 0, 0, 5]))));
    assert!(!allows(&frame(OWN, ARP, &arp(OWN, [10, 0, 0, 5])[..17])));
}

#[test]
fn ipv6_sources_are_allowed_link_local_or_unspecified_for_dad() {
    let own_link_local = "fe80::ff:fe00:1";
    assert!(allows(&frame(OWN, IPV6, &ipv6("2001:db8::5", 17, &[0; 8]))));
    assert!(allows(&frame(
        OWN,
        IPV6,
        &ipv6(own_link_local, 17, &[0; 8])
    )));
    assert!(!allows(&frame(
        OWN,
        IPV6,
        &ipv6("fe80::ff:fe00:2", 17, &[0; 8])
    )));
    assert!(!allows(&frame(
        OWN,
        IPV6,
        &ipv6("2001:db8::6", 17, &[0; 8])
    )));
    assert!(!allows(&frame(
        PAIR,
        IPV6,
        &ipv6("2001:db8::5", 17, &[0; 8])
    )));
    assert!(!allows(&frame(OWN, IPV6, &ipv6("::", 17, &[0; 8]))));
    assert!(allows(&frame(
        OWN,
        IPV6,
        &ipv6("::", ICMPV6, &discovery(135, "2001:db8::5", OWN))
    )));
    assert!(!allows(&frame(
        OWN,
        IPV6,
        &ipv6("::", ICMPV6, &discovery(135, "2001:db8::6", OWN))
    )));
}

#[test]
fn neighbor_discovery_cannot_claim_anothers_address() {
    let from = "2001:db8::5";
    assert!(allows(&frame(
        OWN,
        IPV6,
        &ipv6(from, ICMPV6, &discovery(136, from, OWN))
    )));
    assert!(!allows(&frame(
        OWN,
        IPV6,
        &ipv6(from, ICMPV6, &discovery(136, "2001:db8::1", OWN))
    )));
    assert!(!allows(&frame(
        OWN,
        IPV6,
        &ipv6(from, ICMPV6, &discovery(136, from, OTHER))
    )));
    assert!(allows(&frame(
        OWN,
        IPV6,
        &ipv6(from, ICMPV6, &discovery(135, "2001:db8::1", OWN))
    )));
    assert!(!allows(&frame(
        OWN,
        IPV6,
        &ipv6(from, ICMPV6, &discovery(135, "2001:db8::1", OTHER))
    )));
    let mut hidden = vec![ICMPV6, 0, 0, 0, 0, 0, 0, 0];
    hidden.extend(discovery(136, "2001:db8::1", OWN));
    assert!(
        !allows(&frame(OWN, IPV6, &ipv6(from, 0, &hidden))),
        "behind a hop-by-hop header"
    );
    let mut endless = discovery(136, from, OWN);
    endless[25] = 0;
    assert!(!allows(&frame(OWN, IPV6, &ipv6(from, ICMPV6, &endless))));
}

#[test]
fn no_chain_of_headers_hides_a_claim() {
    let (from, claim) = ("2001:db8::5", discovery(136, "2001:db8::1", OWN));
    let chained = |headers: usize, message: &[u8]| {
        let kinds = std::iter::repeat_n(60, headers - 1).chain([ICMPV6]);
        let mut body: Vec<u8> = kinds.flat_map(|next| [next, 0, 1, 4, 0, 0, 0, 0]).collect();
        body.extend(message);
        frame(OWN, IPV6, &ipv6(from, 60, &body))
    };
    for headers in 1..=20 {
        assert!(!allows(&chained(headers, &claim)), "{headers} headers");
    }
    let honest = discovery(136, from, OWN);
    assert!(allows(&chained(MAX_EXTENSIONS, &honest)));
    let cut_short = frame(OWN, IPV6, &ipv6(from, 60, &[ICMPV6, 1, 1, 4]));
    assert!(!allows(&cut_short));
}

#[test]
fn no_guest_is_its_segments_router_or_dhcp_server() {
    let advertisement = [134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    let link_local = "fe80::ff:fe00:1";
    assert!(!allows(&frame(
        OWN,
        IPV6,
        &ipv6(link_local, ICMPV6, &advertisement)
    )));
    for (from, to, allowed) in [(67, 68, false), (9, 68, false), (68, 67, true)] {
        let packet = ipv4([10, 0, 0, 5], 17, &[0, from, 0, to, 0, 8, 0, 0]);
        assert_eq!(allows(&frame(OWN, IPV4, &packet)), allowed, "{from} {to}");
    }
    for (from, to, allowed) in [(0x23, 0x22, false), (9, 0x22, false), (0x22, 0x23, true)] {
        let packet = ipv6(link_local, 17, &[2, from, 2, to, 0, 8, 0, 0]);
        assert_eq!(allows(&frame(OWN, IPV6, &packet)), allowed, "{from} {to}");
    }
}

#[test]
fn without_security_anything_goes() {
    let add: PortAdd = serde_json::from_value(json!({
        "switch": "vale0", "port": "p", "kind": "process", "segment": 1, "port_security": false,
    }))
    .unwrap();
    let frame = frame(OTHER, IPV4, &[]);
    let verdict = Guard::new(&add).judge(&Ethernet::parse(&frame).unwrap(), &frame);
    assert_eq!(verdict, Ok(ETHERNET));
}

/// An IPv4 packet from the own address with fragment fields and options.
fn fragment_v4(protocol: u8, offset: u16, more: bool, body: &[u8]) -> Vec<u8> {
    let mut packet = ipv4([10, 0, 0, 5], protocol, body);
    let field = offset | u16::from(more) << 13;
    packet[6..8].copy_from_slice(&field.to_be_bytes());
    packet
}

/// A fragment header and what follows.
fn fragment_v6(next: u8, offset: u16, more: bool, body: &[u8]) -> Vec<u8> {
    let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
    [&[next, 0, high, low, 0, 0, 0, 7][..], body].concat()
}

/// To the client's port of DHCPv6.
const DHCPV6_ANSWER: [u8; 8] = [2, 0x23, 2, 0x22, 0, 8, 0, 0];
const DHCP_ANSWER: [u8; 8] = [0, 67, 0, 68, 0, 8, 0, 0];
const ADVERTISEMENT: [u8; 16] = [134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn only_ipv4_arp_and_ipv6_leave_and_untagged() {
    // 802.3 lengths with LLC, MPLS, PPPoE, RARP, LLDP, 802.1X, provider backbone, QinQ variants.
    for kind in [
        0, 3, 46, 1500, 1501, 0x5ff, 0x8847, 0x8848, 0x8863, 0x8864, RARP, 0x88cc, 0x888e, 0x88e7,
        0x9200, 0x9300, 0x88b5,
    ] {
        assert_eq!(
            judge(&frame(OWN, kind, &[0; 50])),
            Err(DropReason::Type),
            "{kind:#x}"
        );
    }
    let snap = [
        &[0xaa, 0xaa, 3, 0, 0, 0, 8, 6][..],
        &arp(OWN, [10, 0, 0, 1]),
    ]
    .concat();
    assert_eq!(
        judge(&frame(OWN, snap.len() as u16, &snap)),
        Err(DropReason::Type)
    );
    for tag in [0x8100, 0x88a8, 0x9100] {
        for identifier in [0, 5] {
            for (source, expected) in [(5, Ok(39)), (6, Err(DropReason::Spoof))] {
                let packet = ipv4([10, 0, 0, source], 1, &[8]);
                let tagged = [&[0, identifier, 8, 0][..], &packet].concat();
                let tagged = frame(OWN, tag, &tagged);
                let ethernet = Ethernet::parse(&tagged).unwrap();
                assert_eq!(guard().judge(&ethernet, &tagged), Err(DropReason::Type));
                assert_eq!(guard_with(true).judge(&ethernet, &tagged), expected);
            }
        }
    }
}

#[test]
fn lengths_that_lie_are_malformed() {
    let good = ipv4([10, 0, 0, 5], 17, &[0, 9, 0, 9, 0, 8, 0, 0]);
    assert_eq!(judge_v4(&good), Ok(38));
    assert!(judge_v4(&[&good[..], &[0; 18]].concat()).is_ok(), "padding");
    for (at, value) in [
        (0, 0x44),
        (0, 0x40),
        (0, 0x65),
        (0, 0x4f),
        (3, 19),
        (3, 29),
        (3, 27),
        (2, 1),
    ] {
        let mut odd = good.clone();
        odd[at] = value;
        assert_eq!(
            judge_v4(&odd),
            Err(DropReason::Malformed),
            "octet {at} is {value:#x}"
        );
    }
    let good = ipv6("2001:db8::5", 17, &[0, 9, 0, 9, 0, 8, 0, 0]);
    for (at, value) in [(0, 0x40), (5, 9), (5, 7), (4, 1)] {
        let mut odd = good.clone();
        odd[at] = value;
        assert_eq!(judge(&frame(OWN, IPV6, &odd)), Err(DropReason::Malformed));
    }
    // Linux reads on after a length of 0 with hop-by-hop options; then the length is an option's.
    let mut jumbo = ipv6(
        "2001:db8::5",
        0,
        &[&[ICMPV6, 0, 1, 4, 0, 0, 0, 0][..], &ADVERTISEMENT].concat(),
    );
    jumbo[5] = 0;
    assert_eq!(judge(&frame(OWN, IPV6, &jumbo)), Err(DropReason::Hidden));
}

#[test]
fn an_ipv4_packet_goes_no_way_of_its_senders_choice() {
    let with = |options: &[u8]| {
        let mut packet = ipv4([10, 0, 0, 5], 6, &[0; 20]);
        packet.splice(20..20, options.iter().copied());
        packet[0] = 0x45 + options.len() as u8 / 4;
        packet[3] += options.len() as u8;
        judge_v4(&packet)
    };
    assert!(with(&[148, 4, 0, 0]).is_ok(), "router alert");
    assert!(with(&[1, 1, 0, 131]).is_ok(), "nothing follows the end");
    for route in [131, 137] {
        let verdict = with(&[1, 7, 3, 4, route, 7, 4, 10, 0, 0, 1, 0]);
        assert_eq!(verdict, Err(DropReason::Rogue));
    }
    for odd in [[7, 0, 0, 0], [7, 1, 0, 0], [7, 5, 0, 0], [1, 1, 1, 7]] {
        assert_eq!(with(&odd), Err(DropReason::Malformed), "{odd:?}");
    }
}

#[test]
fn fragments_hide_no_dhcp_answer_in_ipv4() {
    let (udp, mut data) = (17, [0; 32]);
    assert!(judge_v4(&fragment_v4(udp, 0, true, &data)).is_ok());
    assert!(judge_v4(&fragment_v4(udp, 3, false, &data)).is_ok());
    assert!(judge_v4(&fragment_v4(udp, 3, true, &data)).is_ok());
    data[..8].copy_from_slice(&DHCP_ANSWER);
    assert_eq!(
        judge_v4(&fragment_v4(udp, 0, true, &data)),
        Err(DropReason::Rogue)
    );
    for (offset, more, len) in [
        (0, true, 0),
        (0, true, 8),
        (0, true, 16),
        (1, true, 32),
        (1, false, 32),
        (2, false, 32),
        (8191, false, 32),
    ] {
        let verdict = judge_v4(&fragment_v4(udp, offset, more, &[0; 32][..len]));
        assert_eq!(
            verdict,
            Err(DropReason::Hidden),
            "offset {offset}, {len} octets"
        );
    }
    let mut unnumbered = fragment_v4(udp, 0, true, &[[0, 68, 0, 67, 0, 32, 0, 0]; 4].concat());
    unnumbered[12..16].fill(0);
    assert_eq!(judge_v4(&unnumbered), Err(DropReason::Spoof));
}

#[test]
fn fragments_hide_nothing_in_ipv6() {
    let claim = discovery(136, "2001:db8::1", OWN);
    let honest = discovery(136, "2001:db8::5", OWN);
    let long = |start: &[u8]| [start, &[0; 64]].concat();
    for more in [false, true] {
        for message in [&claim, &honest, &ADVERTISEMENT.to_vec()] {
            let verdict = judge_v6(44, &fragment_v6(ICMPV6, 0, more, &long(message)));
            assert_eq!(verdict, Err(DropReason::Hidden), "RFC 6980");
        }
        let verdict = judge_v6(44, &fragment_v6(UDP, 0, more, &long(&DHCPV6_ANSWER)));
        assert_eq!(verdict, Err(DropReason::Rogue));
        let echo = judge_v6(44, &fragment_v6(ICMPV6, 0, more, &long(&[128])));
        assert!(echo.is_ok());
        let chained = [&[UDP, 0, 1, 4, 0, 0, 0, 0][..], &long(&DHCPV6_ANSWER)].concat();
        for extension in [0, 43, 44, 51, 60, 135, 139, 140, 253] {
            let verdict = judge_v6(44, &fragment_v6(extension, 0, more, &chained));
            assert_eq!(
                verdict,
                Err(DropReason::Hidden),
                "{extension} in a fragment"
            );
        }
    }
    for (offset, more, len) in [
        (0, true, 8),
        (0, true, 16),
        (1, false, 32),
        (2, true, 32),
        (8191, false, 32),
    ] {
        let verdict = judge_v6(44, &fragment_v6(UDP, offset, more, &[0; 32][..len]));
        assert_eq!(
            verdict,
            Err(DropReason::Hidden),
            "offset {offset}, {len} octets"
        );
    }
    assert!(judge_v6(44, &fragment_v6(UDP, 3, false, &[0; 8])).is_ok());
    let outer = [
        &[44, 0, 1, 4, 0, 0, 0, 0][..],
        &fragment_v6(UDP, 0, false, &DHCPV6_ANSWER),
    ]
    .concat();
    assert_eq!(judge_v6(60, &outer), Err(DropReason::Rogue));
}

#[test]
fn no_extension_header_hides_a_claim() {
    let advertisement = |next_header: [u8; 8]| [&next_header[..], &ADVERTISEMENT].concat();
    for extension in [0, 43, 60, 135, 139, 140] {
        let body = advertisement([ICMPV6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            judge_v6(extension, &body),
            Err(DropReason::Rogue),
            "{extension}"
        );
        let echo = [&[ICMPV6, 0, 0, 0, 0, 0, 0, 0][..], &[128; 8]].concat();
        assert!(judge_v6(extension, &echo).is_ok(), "{extension}");
        let cut = [ICMPV6, 2, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            judge_v6(extension, &cut),
            Err(DropReason::Hidden),
            "{extension}"
        );
    }
    for length in [0u8, 1, 4] {
        let mut header = vec![0; (usize::from(length) + 2) * 4];
        header[..2].copy_from_slice(&[ICMPV6, length]);
        let body = [&header[..], &ADVERTISEMENT].concat();
        assert_eq!(
            judge_v6(51, &body),
            Err(DropReason::Rogue),
            "authentication {length}"
        );
        header[0] = UDP;
        let body = [&header[..], &DHCP_ANSWER].concat();
        assert_eq!(
            judge_v4(&ipv4([10, 0, 0, 5], 51, &body)),
            Err(DropReason::Rogue)
        );
    }
    for experiment in [253, 254] {
        assert_eq!(
            judge_v6(experiment, &advertisement([ICMPV6, 0, 0, 0, 0, 0, 0, 0])),
            Err(DropReason::Hidden)
        );
    }
    let late = [
        &[0, 0, 0, 0, 0, 0, 0, 0][..],
        &advertisement([ICMPV6, 0, 0, 0, 0, 0, 0, 0]),
    ]
    .concat();
    assert_eq!(
        judge_v6(60, &late),
        Err(DropReason::Hidden),
        "hop-by-hop comes first"
    );
    let routed = [&[ICMPV6, 0, 4, 1, 0, 0, 0, 0][..], &[128; 8]].concat();
    assert_eq!(
        judge_v6(43, &routed),
        Err(DropReason::Rogue),
        "segments left"
    );
    for opaque in [4, 41, 47, 50, 59, 132] {
        assert!(judge_v6(opaque, &ADVERTISEMENT).is_ok(), "{opaque}");
    }
}

#[test]
fn roles_of_routers_and_servers_are_refused() {
    let v4 = |protocol: u8, kind: u8| {
        judge_v4(&ipv4([10, 0, 0, 5], protocol, &[kind, 0, 0, 0, 0, 0, 0, 0]))
    };
    for kind in 0..=255 {
        let router = [5, 9, 18].contains(&kind);
        let host = [0, 3, 8, 10, 11, 12, 13, 14, 15, 16, 42, 43].contains(&kind);
        assert!(!(router && host));
        assert_eq!(v4(1, kind).is_ok(), host, "ICMP {kind}");
        assert_eq!(
            v4(2, kind).is_ok(),
            [0x12, 0x16, 0x17, 0x22].contains(&kind),
            "IGMP {kind}"
        );
        assert!(v4(112, kind).is_ok(), "VRRP from own addresses");
    }
    for kind in [
        130, 134, 137, 138, 139, 140, 141, 142, 151, 153, 155, 0, 100, 255,
    ] {
        let body = [kind, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            judge_v6(ICMPV6, &body),
            Err(DropReason::Rogue),
            "ICMPv6 {kind}"
        );
    }
    for kind in [1, 2, 3, 4, 128, 129, 131, 132, 143] {
        assert_eq!(
            judge_v6(ICMPV6, &[kind, 0, 0, 0, 0, 0, 0, 0]),
            Ok(55),
            "ICMPv6 {kind}"
        );
    }
    assert_eq!(v4(1, 8), Ok(35), "the checksum may still be completed");
    let solicitation = discovery(135, "2001:db8::1", OWN);
    assert_eq!(judge_v6(ICMPV6, &solicitation), Ok(54 + solicitation.len()));
}

proptest::proptest! {
    #[test]
    fn no_frame_makes_it_panic(kind in proptest::sample::select(vec![IPV4, ARP, RARP, IPV6, 1]), payload in proptest::collection::vec(proptest::num::u8::ANY, 0..120), next in proptest::sample::select(vec![0u8, 43, 58, 60])) {
        let mut payload = payload;
        if kind == IPV6 && payload.len() > 6 {
            payload[6] = next;
        }
        allows(&frame(OWN, kind, &payload));
    }
}

/// Answers of DHCP servers for IPv4 and IPv6, from an address.
fn dhcp_answers(source: [u8; 4], source6: &str) -> [Vec<u8>; 2] {
    let answer6 = [2, 35, 2, 34, 0, 8, 0, 0];
    [
        frame(OWN, IPV4, &ipv4(source, UDP, &DHCP_ANSWER)),
        frame(OWN, IPV6, &ipv6(source6, UDP, &answer6)),
    ]
}

#[test]
fn the_role_of_a_dhcp_server_lets_its_own_answers_pass() {
    let judged = |guard: &Guard, frame: &[u8]| guard.judge(&Ethernet::parse(frame).unwrap(), frame);
    let mut port = guard();
    let allowed = ["10.0.0.5/32", "2001:db8::5/128"].map(|a| a.parse().unwrap());
    let mut server = Guard::of(true, Some(OWN), &allowed).serving_dhcp(true);
    let own = dhcp_answers([10, 0, 0, 5], "2001:db8::5");
    for frame in &own {
        assert_eq!(judged(&port, frame), Err(DropReason::Rogue));
        assert!(judged(&server, frame).is_ok());
        let relayed = server.judge_relayed(&Ethernet::parse(frame).unwrap(), frame, true);
        assert_eq!(
            relayed,
            Err(DropReason::Rogue),
            "a hop passes no answers on"
        );
    }
    for frame in &dhcp_answers([10, 0, 0, 6], "2001:db8::6") {
        assert_eq!(judged(&server, frame), Err(DropReason::Spoof));
    }
    let redirect = frame(OWN, IPV4, &ipv4([10, 0, 0, 5], 1, &[5; 8]));
    assert_eq!(judged(&server, &redirect), Err(DropReason::Rogue));
    assert!(port.exchange(&mut server), "port-guard brings the role");
    assert!(judged(&port, &own[0]).is_ok() && judged(&server, &own[0]).is_err());
}

#[test]
fn a_port_takes_other_addresses_and_keeps_its_tags() {
    let judges = |guard: &Guard, source: [u8; 4]| {
        let frame = frame(OWN, IPV4, &ipv4(source, UDP, &[0; 8]));
        guard
            .judge(&Ethernet::parse(&frame).unwrap(), &frame)
            .is_ok()
    };
    let mut port = guard_with(true);
    let allowed = ["10.0.0.6/32".parse().unwrap()];
    let mut other = Guard::of(true, Some(OWN), &allowed);
    assert!(judges(&port, [10, 0, 0, 5]) && !judges(&port, [10, 0, 0, 6]));
    assert!(port.exchange(&mut other));
    assert!(!judges(&port, [10, 0, 0, 5]) && judges(&port, [10, 0, 0, 6]));
    assert!(port.tags && judges(&other, [10, 0, 0, 5]));
    assert!(!port.exchange(&mut Guard::of(true, Some(OWN), &allowed)));
    assert!(port.exchange(&mut Guard::of(false, Some(OWN), &[])));
    assert!(judges(&port, [10, 0, 0, 7]));
}
