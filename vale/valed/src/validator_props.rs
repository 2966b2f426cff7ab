// SPDX-License-Identifier: Apache-2.0
//! Properties of all validators. Each compares the code with a simpler statement of its own. A test
//! builds the frame from parts that say the answer, or the answer follows from plain arithmetic.
use std::net::Ipv4Addr;

use proptest::prelude::*;
use serde_json::{Value, json};
use vale_proto::{ChainSet, Mac, PortAdd, PortName, SwitchName};

use crate::device::vxlan;
use crate::frame::drop_reason::DropReason;
use crate::frame::gso::{Checksum, TxOffload, complete};
use crate::frame::headers::Ethernet;
use crate::frame::packet::{self, FragmentPart};
use crate::frame::rx_frame::RxFrame;
use crate::frame::tx_frame::TxFrame;
use crate::policy::guard::Guard;
use crate::policy::rogue;

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

fn ethernet(destination: [u8; 6], source: [u8; 6], tags: &[(u16, u16)], kind: u16) -> Vec<u8> {
    let mut frame = [destination, source].concat();
    for (tpid, tci) in tags {
        frame.extend(tpid.to_be_bytes());
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(kind.to_be_bytes());
    frame
}

/// The ones' complement sum of RFC 1071, word by word.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn ipv4(options: usize, source: [u8; 4], protocol: u8, body: &[u8]) -> Vec<u8> {
    let total = (20 + options * 4 + body.len()) as u16;
    let mut packet = vec![0x45 + options as u8, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source);
    packet.extend([10, 0, 0, 200]);
    packet.extend(vec![1; options * 4]); // no operation
    packet.extend(body);
    packet
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let fields = [from, to, length, 0].map(u16::to_be_bytes).concat();
    [&fields, payload].concat()
}

proptest! {
    #[test]
    fn an_ethernet_header_is_read_as_it_was_built(
        destination: [u8; 6],
        source: [u8; 6],
        tags in prop::collection::vec((prop::sample::select(&TAGS[..]), any::<u16>()), 0..5),
        kind: u16,
        rest in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        prop_assume!(!TAGS.contains(&kind));
        let header = ethernet(destination, source, &tags, kind);
        let frame = [&header[..], &rest].concat();
        let expected = (tags.len() <= 2 && source[0] % 2 == 0).then_some(Ethernet {
            destination: Mac(destination),
            source: Mac(source),
            kind,
            payload: header.len(),
        });
        prop_assert_eq!(Ethernet::parse(&frame), expected);
        for len in 0..header.len() {
            prop_assert_eq!(Ethernet::parse(&frame[..len]), None);
        }
    }

    #[test]
    fn link_control_has_reserved_addresses_or_types(
        last: u8, near in prop::array::uniform6(any::<u8>()), reserved: bool,
        kind in prop::sample::select(&[0x0800u16, 0x8808, 0x8809, 0x86dd][..]),
    ) {
        let to = if reserved { [1, 0x80, 0xc2, 0, 0, last] } else { near };
        let frame = ethernet(to, [2, 0, 0, 0, 0, 1], &[], kind);
        let text = Mac(to).to_string();
        let expected = text.starts_with("01:80:c2:00:00:0") || [0x8808, 0x8809].contains(&kind);
        prop_assert_eq!(Ethernet::parse(&frame).unwrap().is_link_control(), expected, "{}", text);
    }

    #[test]
    fn an_ipv4_packet_is_read_as_it_was_built(
        options in 0usize..11, source: [u8; 4], protocol: u8,
        body in prop::collection::vec(any::<u8>(), 0..200), padding in 0usize..20,
    ) {
        prop_assume!(protocol != 51); // an authentication header has a form of its own
        let packet = ipv4(options, source, protocol, &body);
        let padded = [&packet[..], &vec![7; padding]].concat();
        let read = packet::ipv4(&padded).unwrap();
        prop_assert_eq!((read.protocol, read.headers), (protocol, 20 + 4 * options));
        prop_assert_eq!((read.body, read.part), (&body[..], FragmentPart::Whole));
        for len in 0..packet.len() {
            prop_assert_eq!(packet::ipv4(&packet[..len]).err(), Some(DropReason::Malformed));
        }
    }

    #[test]
    fn any_ipv4_header_without_options_is_judged_by_its_lengths(mut bytes in prop::collection::vec(any::<u8>(), 0..80), total in 0u16..90) {
        if bytes.len() > 3 {
            bytes[0] = bytes[0] & 0xf0 | 5;
            bytes[2..4].copy_from_slice(&total.to_be_bytes());
        }
        if bytes.len() > 9 {
            bytes[6..8].copy_from_slice(&[0x40, 0]); // do not fragment
            bytes[9] = 6;
        }
        let good = bytes.len() >= 20 && bytes[0] >> 4 == 4 && total >= 20 && usize::from(total) <= bytes.len();
        let read = packet::ipv4(&bytes);
        prop_assert_eq!(read.is_ok(), good);
        if let Ok(read) = read {
            prop_assert_eq!(read.body, &bytes[20..total.into()]);
        }
    }

    #[test]
    fn any_ipv6_header_is_judged_by_its_lengths(mut bytes in prop::collection::vec(any::<u8>(), 0..120), len in 0u16..90) {
        if bytes.len() > 6 {
            bytes[4..6].copy_from_slice(&len.to_be_bytes());
            bytes[6] = 17;
        }
        let end = 40 + usize::from(len);
        let good = bytes.len() >= end.max(40) && bytes[0] >> 4 == 6;
        let read = packet::ipv6(&bytes);
        prop_assert_eq!(read.is_ok(), good);
        if let Ok(read) = read {
            prop_assert_eq!((read.body, read.headers), (&bytes[40..end], 40));
        }
    }

    /// The list of docs/adr/0009: messages that only routers and servers send.
    #[test]
    fn messages_of_routers_and_servers_are_refused(kind: u8, port: u16, body in prop::collection::vec(any::<u8>(), 8..40)) {
        let message = |protocol, mut body: Vec<u8>| {
            body[0] = kind;
            let packet = ipv4(0, [10, 0, 0, 5], protocol, &body);
            rogue::ipv4(&packet::ipv4(&packet).unwrap(), false).is_ok()
        };
        let icmp = message(1, body.clone());
        prop_assert!(icmp || ![0, 3, 8, 11].contains(&kind), "errors and echo pass: {}", kind);
        let routers = [5, 9, 18];
        prop_assert!(!(icmp && routers.contains(&kind)), "ICMP {}", kind);
        prop_assert!(!(message(2, body) && kind == 0x11), "queries of IGMP");
        let packet = ipv4(0, [10, 0, 0, 5], 17, &udp(1, port, &[]));
        let served = rogue::ipv4(&packet::ipv4(&packet).unwrap(), false);
        prop_assert_eq!(served.is_ok(), port != 68, "answers of DHCP");
    }

    /// A port with two pairs of MAC and network: both of one pair, or nothing.
    #[test]
    fn a_secure_port_sends_from_its_own_addresses_alone(
        mac in 1u8..5, third in 0u8..3, fourth: u8, tag in prop::option::of(any::<u16>()),
        ports in (1u16..60, 100u16..60000),
    ) {
        let own: PortAdd = serde_json::from_value(json!({
            "switch": "vale0", "port": "p", "kind": "process", "segment": 1,
            "mac": "02:00:00:00:00:01",
            "allowed": [{"ip": "10.0.0.5/32"}, {"mac": "02:00:00:00:00:02", "ip": "10.0.1.0/25"}],
        })).unwrap();
        let source = [10, 0, third, fourth];
        let tags: Vec<_> = tag.map(|tci| (0x8100, tci)).into_iter().collect();
        let mut frame = ethernet([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, mac], &tags, 0x0800);
        frame.extend(ipv4(0, source, 17, &udp(ports.0, ports.1, b"hello")));
        let judged = Guard::new(&own).judge(&Ethernet::parse(&frame).unwrap(), &frame);
        let first = mac == 1 && source == [10, 0, 0, 5];
        let second = mac == 2 && third == 1 && fourth < 128;
        prop_assert_eq!(judged.is_ok(), tag.is_none() && (first || second));
        let refused = judged.err().map(|e| e == DropReason::Spoof || e == DropReason::Type);
        prop_assert!(refused != Some(false));
    }

    #[test]
    fn any_offload_is_judged_by_its_sums(header: [u8; 10], small: [u8; 4], len in 0usize..3000) {
        // Half of the bits at random hardly ever fit: bound the offsets as well.
        let mut header = header;
        (header[0], header[1]) = (small[0] % 2, (small[1] % 8) | (small[2] & 0x80));
        (header[7], header[9]) = (header[7] % 16, header[9] % 16);
        let field = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        let needs = header[0] == 1;
        let fits = !needs || field(6) + field(8) + 2 <= len;
        let kind = header[1] % 128;
        let cut = kind == 0 || [1, 4, 5].contains(&kind) && needs && field(4) > 0;
        let parsed = TxOffload::parse(&header, len);
        prop_assert_eq!(parsed.is_some(), fits && cut);
        if let Some(offload) = parsed {
            prop_assert_eq!((offload.checksum.is_some(), offload.gso.is_some()), (needs, kind != 0));
        }
    }

    #[test]
    fn a_completed_checksum_makes_the_sum_complete(
        mut frame in prop::collection::vec(any::<u8>(), 2..400), start in 0usize..300, half in 0usize..40,
    ) {
        let offset = 2 * half;
        prop_assume!(start + offset + 2 <= frame.len());
        frame[start + offset..start + offset + 2].copy_from_slice(&[0, 0]);
        complete(&mut frame, Checksum { start: start as u16, offset: offset as u16 });
        prop_assert_eq!(sum(&frame[start..]), 0xffff);
    }

    #[test]
    fn segments_hold_the_payload_once_and_in_order(payload in prop::collection::vec(any::<u8>(), 1..6000), size in 400u16..1460) {
        let tcp = [&[0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0][..], &payload].concat();
        let mut frame = ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1], &[], 0x0800);
        frame.extend(ipv4(0, [10, 0, 0, 5], 6, &tcp));
        let mut header = [1, 1, 54, 0, 0, 0, 34, 0, 16, 0];
        header[4..6].copy_from_slice(&size.to_ne_bytes());
        let offload = TxOffload::parse(&header, frame.len()).unwrap();
        let taken = RxFrame { bytes: &mut frame, rest: None, offload };
        let mut out = TxFrame::new(taken, 14, 14).unwrap();
        let (mut gathered, mut buffer, mut count) = (Vec::new(), Vec::new(), 0usize);
        let expected = payload.len().div_ceil(size.into());
        prop_assert_eq!(out.count(), expected);
        out.finish(&mut buffer, |segment, rest| {
            assert!(rest.is_none() && segment.len() <= 54 + usize::from(size));
            let sequence = u32::from_be_bytes(segment[38..42].try_into().unwrap());
            assert_eq!(sequence as usize, 1 + gathered.len());
            assert_eq!(sum(&segment[14..34]), 0xffff, "the checksum of the IP header");
            gathered.extend_from_slice(&segment[54..]);
            count += 1;
        });
        prop_assert_eq!((gathered, count), (payload, expected));
    }

    #[test]
    fn a_vxlan_header_has_a_flag_and_a_number(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let expected = (bytes.len() >= 8 && bytes[0] / 8 % 2 == 1).then(|| {
            let number = bytes[4..7].iter().fold(0, |n, byte| n * 256 + u32::from(*byte));
            (number, bytes[8..].to_vec())
        });
        let found = vxlan::parse(&bytes).map(|(number, frame)| (number, frame.to_vec()));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_name_has_few_characters_and_a_length(text in "[a-z0-9A-Z_.-]{0,20}|\\PC{0,20}|vale[0-9]{0,6}") {
        let usual = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let fits = (1..16).contains(&text.chars().count()) && text.chars().all(usual)
            && !text.starts_with('-') && text != "." && text != "..";
        prop_assert_eq!(text.parse::<PortName>().is_ok(), fits);
        let number = text.strip_prefix("vale").map(|n| n.chars().all(|c| c.is_ascii_digit()) && !n.is_empty() && n.len() < 5);
        prop_assert_eq!(text.parse::<SwitchName>().is_ok(), number == Some(true));
    }

    #[test]
    fn a_chain_keeps_to_its_limits(
        segment in 0u32..3, hops in 0usize..23, pairs in 0usize..19, weight in 0u16..19,
        classifiers in 0usize..19, nat in 0usize..19, protocol in prop::option::of(0u8..20), range in prop::option::of((0u16..9, 0u16..9)),
        families in (0u8..3, 0u8..3),
    ) {
        let net = |family: u8| [Value::Null, json!("10.0.0.0/8"), json!("2001:db8::/32")][usize::from(family)].clone();
        let ports = range.map(|(first, last)| json!({"first": first, "last": last}));
        let classifier = json!({"protocol": protocol, "source_ports": ports, "source": net(families.0), "destination": net(families.1)});
        let pair = json!({"ingress": "a", "egress": "b", "weight": weight});
        let set: ChainSet = serde_json::from_value(json!({
            "switch": "vale0", "chain": "web", "segment": segment,
            "classifiers": vec![classifier; classifiers],
            "hops": vec![json!({"pairs": vec![pair; pairs]}); hops], "nat": vec!["10.0.0.0/8"; nat],
        })).unwrap();
        let counts = segment > 0 && (1..21).contains(&hops) && (1..17).contains(&pairs)
            && (1..17).contains(&weight) && (1..17).contains(&classifiers) && nat < 17;
        let has_ports = protocol == Some(6) || protocol == Some(17);
        let ranged = range.is_none_or(|(first, last)| first <= last && has_ports);
        let one_family = families.0 * families.1 != 2;
        prop_assert_eq!(set.check().is_ok(), counts && ranged && one_family);
    }

    #[test]
    fn a_port_keeps_to_its_limits(
        segment in 0u32..3, mtu in 0u16..3000, slots in 0u32..5000, power in 0u32..14, is_power: bool,
        first_octet: u8, secure: bool, has_mac: bool, allowed in 0usize..300, vlan in prop::option::of(0u16..5000), veth: bool, named: bool,
    ) {
        let slots = if is_power { 1 << power } else { slots };
        let mac = has_mac.then(|| format!("{first_octet:02x}:00:00:00:00:01"));
        let kind = if veth { "veth" } else { "process" };
        let add: Result<PortAdd, _> = serde_json::from_value(json!({
            "switch": "vale0", "port": "p", "kind": kind, "segment": segment, "mtu": mtu, "slots": slots,
            "mac": mac, "port_security": secure, "allowed": vec![json!({"ip": "10.0.0.1/32"}); allowed],
            "vlan": vlan, "ifname": named.then_some("eth0"),
        }));
        let lengths = segment > 0 && (68..=9000).contains(&mtu) && allowed <= 256
            && [64, 128, 256, 512, 1024, 2048].contains(&slots);
        let station = !has_mac || first_octet % 2 == 0;
        let can_send = has_mac || !secure && allowed == 0;
        let far_end = named == veth && vlan.is_none_or(|v| veth && v > 0 && v < 4095);
        let good = lengths && station && can_send && far_end;
        prop_assert_eq!(add.is_ok_and(|add| add.check().is_ok()), good);
    }

    /// A request of a stranger, with one byte changed: it is refused or within its limits.
    #[test]
    fn a_damaged_request_is_refused_or_harmless(at in 0usize..400, byte: u8) {
        let mut text = json!({
            "switch": "vale0", "chain": "web", "segment": 7, "symmetric": true,
            "classifiers": [{"source_port": "a", "protocol": 17, "source": "10.0.0.0/8", "host": "192.0.2.1", "senders": ["10.0.0.1/32"]}],
            "hops": [{"pairs": [{"ingress": "in", "egress": "out", "weight": 3, "host": "192.0.2.2"}], "on_failure": "bypass"}],
            "path": {"number": 7, "local": "192.0.2.1", "hosts": ["192.0.2.1", "192.0.2.2"]},
        }).to_string().into_bytes();
        let at = at % text.len();
        text[at] = byte;
        let set = serde_json::from_slice::<ChainSet>(&text);
        if let Ok(set) = set.map_err(|e| e.to_string()).and_then(|s| s.check().map(|()| s)) {
            prop_assert!((1..=20).contains(&set.hops.len()) && set.segment > 0);
            let path = set.path.unwrap();
            prop_assert!(path.number > 0 && path.number < 1 << 23 && path.hosts.contains(&path.local));
            let hosts = set.hops.iter().flat_map(|h| &h.pairs).filter_map(|p| p.host);
            prop_assert!(hosts.chain(set.classifiers[0].host).all(|h| path.hosts.contains(&h)));
        }
    }
}

#[test]
fn the_sum_of_a_known_header_is_complete() {
    let mut header = ipv4(0, Ipv4Addr::new(192, 168, 0, 1).octets(), 17, &[]);
    let checksum = !sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(sum(&header), 0xffff);
}
