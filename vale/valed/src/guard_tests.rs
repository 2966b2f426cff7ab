// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;

const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
const PAIR: Mac = Mac([2, 0, 0, 0, 0, 2]);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 9]);

fn guard() -> Guard {
    let add: PortAdd = serde_json::from_value(json!({
        "switch": "vale0", "port": "p", "kind": "process", "segment": 1, "mac": OWN,
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

fn allows(frame: &[u8]) -> bool {
    guard().allows(&Ethernet::parse(frame).unwrap(), frame)
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
            allows(&frame(source, IPV4, &ipv4(ip, 1, &[]))),
            expected,
            "{source} {ip:?}"
        );
    }
    let tagged = [
        &frame(OWN, 0x8100, &[0, 5, 8, 0])[..],
        &ipv4([10, 0, 0, 6], 1, &[]),
    ]
    .concat();
    assert!(!allows(&tagged), "a tag hides nothing");
    assert!(
        !allows(&frame(OWN, IPV4, &[0x45; 15])),
        "too short for an address"
    );
    assert!(allows(&frame(OWN, 0x88cc, &[])), "neither IP nor ARP");
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
    assert!(allows(&frame(OWN, ARP, &arp(OWN, [0; 4]))), "a probe");
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
    assert!(Guard::new(&add).allows(&Ethernet::parse(&frame).unwrap(), &frame));
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
