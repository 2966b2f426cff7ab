// SPDX-License-Identifier: Apache-2.0
//! Hostile chains and hops: addresses and MAC addresses that belong to others.
use super::paths::{Hosts, at};
use super::*;

const VICTIM: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 5);
const PUBLIC: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

/// Sets the chain `web` of routed hops with one pair each, and these NAT networks.
fn claim(net: &mut Net, hops: usize, nat: &[&str]) -> Result<(), SetError> {
    let hops: Vec<_> = (0..hops).map(|n| json!({"pairs": [pair(n, 1)]})).collect();
    let set = json!({"switch": "vale0", "chain": "web", "segment": 1, "nat": nat,
        "classifiers": [{"source_port": "a"}], "hops": hops});
    let set: ChainSet = serde_json::from_value(set).unwrap();
    net.bench.switch.set_chain(Definition::new(set, None))
}

/// A station of another project on the same segment.
fn victim(net: &mut Net) -> Guest {
    let values = json!({"mac": mac(99), "port_security": true, "allowed": [{"ip": "10.0.1.5/32"}]});
    net.bench.try_add("victim", values).unwrap()
}

fn udp(macs: (u8, u8), ips: (Ipv4Addr, Ipv4Addr), ports: (u16, u16)) -> Vec<u8> {
    packet((mac(macs.0), mac(macs.1)), ips, ports, 0)
}

fn spoofed(net: &Net, hop: usize, side: usize) -> u64 {
    net.bench.counters(&net.hops[hop][side]).dropped_spoof
}

#[test]
fn a_chain_claims_no_more_than_a_hop_may_use() {
    let mut net = Net::new(2);
    net.bench.allow("h1-out", "192.0.2.0/25");
    let refused = [
        "0.0.0.0/0",
        "10.0.0.0/24",
        "10.0.0.12/31",
        "192.0.2.0/24",
        "192.0.2.128/32",
        "::/0",
        "fe80::/64",
    ];
    for network in refused {
        let expected = SetError::Claim(network.parse().unwrap(), "h0-out".parse().unwrap());
        assert_eq!(claim(&mut net, 2, &[network]), Err(expected), "{network}");
        // The one wide network is found among others.
        let refusal = claim(&mut net, 2, &["10.0.0.11/32", network]);
        assert!(refusal.is_err(), "{network}");
    }
    assert!(net.bench.switch.chains().next().is_none());
    for network in [
        "10.0.0.11/32",
        "10.0.0.13/32",
        "192.0.2.0/25",
        "192.0.2.127/32",
    ] {
        assert_eq!(claim(&mut net, 2, &[network]), Ok(()), "{network}");
    }
    net.bench.allow("h1-out", "2001:db8:0:4::/63");
    for network in [
        "2001:db8:0:4::/62",
        "2001:db8::/64",
        "::/0",
        "192.0.2.127/32",
    ] {
        assert!(claim(&mut net, 2, &[network]).is_err(), "{network}");
    }
    for network in ["2001:db8:0:4::/63", "2001:db8:0:5::5/128"] {
        assert_eq!(claim(&mut net, 2, &[network]), Ok(()), "{network}");
    }
    // A refusal leaves the chain as it was.
    assert!(claim(&mut net, 2, &["0.0.0.0/0"]).is_err());
    assert_eq!(json!(net.info().set.nat), json!(["2001:db8:0:5::5/128"]));
}

#[test]
fn each_instance_of_a_hop_must_be_allowed_what_it_claims() {
    let mut net = Net::new(2);
    let set = |net: &mut Net| {
        let set = json!({"switch": "vale0", "chain": "web", "segment": 1, "nat": ["192.0.2.7/32"],
            "classifiers": [{}], "hops": [{"pairs": [pair(0, 1), pair(1, 1), pair(7, 1)]}]});
        let set = serde_json::from_value(set).unwrap();
        net.bench.switch.set_chain(Definition::new(set, None))
    };
    net.bench.allow("h0-out", "192.0.2.7/32");
    let public = "192.0.2.7/32".parse().unwrap();
    let expected = SetError::Claim(public, "h1-out".parse().unwrap());
    assert_eq!(set(&mut net), Err(expected));
    net.bench.allow("h1-out", "0.0.0.0/0");
    assert_eq!(set(&mut net), Ok(()));
}

/// The hop may use the victim's network, as a router on a shared network does.
#[test]
fn a_claim_alone_takes_no_packet_of_another_station() {
    let mut net = Net::new(1);
    let mut victim = victim(&mut net);
    net.bench.allow("h0-out", "10.0.1.0/24");
    claim(&mut net, 1, &["10.0.1.0/24"]).unwrap();
    let frames = [
        udp((2, 99), (B, VICTIM), (1000, 53)),
        udp((2, 99), (B, VICTIM), (53, 1000)),
    ];
    frames.iter().for_each(|frame| net.b.send(frame));
    net.bench.round();
    assert_eq!(victim.received(), frames);
    // The hop translates one flow: its answers enter, and no other packet to the address.
    net.a.send(&udp((1, 2), (A, B), (1000, 53)));
    net.bench.round();
    assert_eq!(net.hops[0][0].received().len(), 1);
    let mine = Ipv4Addr::new(10, 0, 1, 6);
    net.hops[0][1].send(&udp((11, 2), (mine, B), (5000, 53)));
    net.bench.round();
    assert_eq!(net.b.received().len(), 1);
    let answer = udp((2, 98), (B, mine), (53, 5000));
    let others = [
        udp((2, 98), (B, mine), (53, 5001)),
        udp((2, 98), (B, mine), (54, 5000)),
        udp((2, 99), (B, VICTIM), (53, 5000)),
    ];
    others.iter().for_each(|frame| net.b.send(frame));
    net.b.send(&answer);
    net.bench.round();
    let restored = udp((2, 11), (B, mine), (53, 5000));
    assert_eq!(net.hops[0][1].received(), [restored]);
    assert_eq!(victim.received(), [others[2].clone()]);
    // A frame to the hop's own address is no other station's.
    let inbound = udp((2, 11), (B, mine), (7, 8));
    net.b.send(&inbound);
    net.bench.round();
    assert_eq!(net.hops[0][1].received(), [inbound]);
    assert_eq!(net.info().hop_counters[0].packets, 3);
}

/// The classifier alone permits what the hop sends: its client may use any address, or be any station.
/// Instances of a NAT share an address, and an answer may have the MAC address of another one.
#[test]
fn answers_come_back_to_a_nat_whose_client_may_use_any_address() {
    for classifier in [
        json!({"source_port": "a"}),
        json!({"destination": "10.0.0.2/32"}),
    ] {
        let mut net = Net::new(2);
        let outs = ["h0-out", "h1-out"];
        outs.iter()
            .for_each(|out| net.bench.allow(out, "192.0.2.7/32"));
        net.bench.allow("a", "0.0.0.0/0");
        let change = json!({"nat": ["192.0.2.7/32"], "classifiers": [classifier]});
        net.chain(vec![json!({"pairs": [pair(0, 1)]})], change);
        net.a.send(&udp((1, 2), (A, B), (1000, 53)));
        net.bench.round();
        assert_eq!(net.hops[0][0].received().len(), 1, "{classifier}");
        net.hops[0][1].send(&udp((11, 2), (PUBLIC, B), (5000, 53)));
        net.bench.round();
        assert_eq!(net.b.received().len(), 1, "{classifier}");
        net.b.send(&udp((2, 13), (B, PUBLIC), (53, 5000)));
        net.bench.round();
        let restored = udp((2, 11), (B, PUBLIC), (53, 5000));
        assert_eq!(net.hops[0][1].received(), [restored], "{classifier}");
        assert!(net.hops[1][1].received().is_empty(), "{classifier}");
    }
}

#[test]
fn fragments_and_errors_of_a_translated_flow_come_back() {
    let mut net = Net::new(1);
    net.bench.allow("h0-out", "192.0.2.7/32");
    claim(&mut net, 1, &["192.0.2.7/32"]).unwrap();
    let mut later = udp((2, 98), (B, PUBLIC), (53, 5000));
    (later[20], later[21]) = (0x20, 3);
    let mut error = udp((2, 98), (OTHER, PUBLIC), (0, 0));
    error.truncate(34);
    error.extend([3, 4, 0, 0, 0, 0, 0, 0]);
    error.extend(&udp((11, 2), (PUBLIC, B), (5000, 53))[14..42]);
    (error[17], error[23]) = (56, 1);
    net.bench.allow("b", "10.0.0.99/32");
    for enters in [0, 2] {
        net.b.send(&later);
        net.b.send(&error);
        net.bench.round();
        assert_eq!(net.hops[0][1].received().len(), enters);
        net.hops[0][1].send(&udp((11, 2), (PUBLIC, B), (5000, 53)));
        net.bench.round();
    }
}

#[test]
fn a_hop_that_may_no_longer_use_an_address_neither_sends_nor_gets_by_it() {
    let mut net = Net::new(1);
    net.bench.allow("h0-out", "192.0.2.7/32");
    claim(&mut net, 1, &["192.0.2.7/32"]).unwrap();
    let translated = udp((11, 2), (PUBLIC, B), (5000, 53));
    // As before, the address may be known by the MAC address of a hop that is gone.
    let answer = udp((2, 98), (B, PUBLIC), (53, 5000));
    for (allowed, passes) in [
        ("192.0.2.7/32", 1),
        ("192.0.2.8/32", 0),
        ("192.0.2.7/32", 1),
    ] {
        net.bench.allow("h0-out", allowed);
        net.hops[0][1].send(&translated);
        net.b.send(&answer);
        net.bench.round();
        net.b.send(&answer);
        net.bench.round();
        assert_eq!(net.b.received().len(), passes, "{allowed}");
        let answers = net.hops[0][1].received().len();
        assert!(
            (passes..=2 * passes).contains(&answers),
            "{allowed}: {answers}"
        );
    }
    assert_eq!(spoofed(&net, 0, 1), 1);
    // The flow is forgotten with the right to its address.
    for allowed in ["192.0.2.8/32", "192.0.2.7/32"] {
        net.bench.allow("h0-out", allowed);
    }
    net.b.send(&answer);
    net.bench.round();
    assert!(net.hops[0][1].received().is_empty());
}

/// Another port replaces one that translated.
#[test]
fn a_new_port_of_a_hop_inherits_no_right_to_an_address() {
    let mut net = Net::new(2);
    net.bench.allow("h0-out", "192.0.2.7/32");
    claim(&mut net, 2, &["192.0.2.7/32"]).unwrap();
    let translated = |own| udp((own, 2), (PUBLIC, B), (5000, 53));
    let answer = udp((2, 98), (B, PUBLIC), (53, 5000));
    net.hops[0][1].send(&translated(11));
    net.b.send(&answer);
    net.bench.round();
    assert_eq!(net.hops[1][0].received().len(), 1);
    net.b.send(&answer);
    net.bench.round();
    assert!(!net.hops[1][1].received().is_empty());
    net.bench.switch.remove(&"h0-out".parse().unwrap()).unwrap();
    net.hops[0][1] = net.bench.try_add("h0-out", secure(11)).unwrap();
    net.b.send(&answer);
    for (hop, own) in [(0, 11), (1, 13)] {
        net.hops[hop][1].send(&translated(own));
    }
    net.bench.round();
    let [first, second] = &mut net.hops[1];
    assert_eq!((first.received().len(), second.received().len()), (0, 0));
    assert!(net.b.received().is_empty());
    assert_eq!((spoofed(&net, 0, 1), spoofed(&net, 1, 1)), (1, 1));
}

/// The second hop may not use the address, and passes on what the first one translated.
#[test]
fn a_later_hop_translates_nothing_for_itself() {
    let mut net = Net::new(2);
    net.bench.allow("h0-out", "192.0.2.7/32");
    claim(&mut net, 2, &["192.0.2.7/32"]).unwrap();
    let translated = |port| udp((13, 2), (PUBLIC, B), (port, 53));
    net.hops[1][1].send(&translated(5000));
    net.bench.round();
    assert_eq!((net.b.received().len(), spoofed(&net, 1, 1)), (0, 1));
    net.hops[0][1].send(&udp((11, 2), (PUBLIC, B), (5000, 53)));
    net.bench.round();
    assert_eq!(net.hops[1][0].received().len(), 1);
    net.hops[1][1].send(&translated(5000));
    net.hops[1][1].send(&translated(5001));
    net.bench.round();
    assert_eq!(net.b.received(), [translated(5000)]);
    assert_eq!(spoofed(&net, 1, 1), 2);
}

/// The claim contains the client, and the first hop relays it.
#[test]
fn a_wide_claim_changes_nothing_for_the_clients_packets() {
    let mut net = Net::new(2);
    net.bench.allow("h1-out", "0.0.0.0/0");
    claim(&mut net, 2, &["0.0.0.0/0"]).unwrap();
    net.a.send(&there(1));
    net.bench.round();
    assert_eq!(net.hops[0][0].received().len(), 1);
    let sent = packet((mac(11), mac(2)), (A, B), (1000, 53), 1);
    net.hops[0][1].send(&sent);
    net.bench.round();
    assert_eq!(net.hops[1][0].received().len(), 1);
    net.hops[1][1].send(&packet((mac(13), mac(2)), (A, B), (1000, 53), 1));
    net.bench.round();
    assert_eq!(net.b.received().len(), 1);
    net.b.send(&back(2));
    net.bench.round();
    assert_eq!(net.hops[1][1].received().len(), 1);
    // No other traffic enters.
    let straight = udp((2, 10), (B, Ipv4Addr::new(10, 0, 0, 10)), (5, 6));
    net.b.send(&straight);
    net.bench.round();
    assert_eq!(net.hops[0][0].received(), [straight]);
}

#[test]
fn a_hop_sends_with_its_own_address_or_that_of_the_station() {
    for secure in [true, false] {
        let mut net = Net::new(2);
        let _victim = victim(&mut net);
        for name in ["h0-in", "h0-out"] {
            let port = net.bench.switch.port_mut(&name.parse().unwrap()).unwrap();
            let own = Guard::of(secure, port.face.mac, &[]);
            port.face.set_guard(&mut own.clone());
        }
        net.chain(vec![transparent(0), transparent(1)], json!({}));
        let frame = |source| udp((source, 2), (A, B), (1000, 53));
        // No packet has entered: only the addresses of the pair count.
        for (source, passes) in [(1, 0), (99, 0), (2, 0), (10, 1), (11, 1)] {
            net.hops[0][1].send(&frame(source));
            net.bench.round();
            assert_eq!(net.hops[1][0].received().len(), passes, "{source} {secure}");
        }
        net.a.send(&there(1));
        net.bench.round();
        assert_eq!(net.hops[0][0].received(), [there(1)]);
        for (source, passes) in [(1, 1), (99, 0), (2, 0), (12, 0)] {
            net.hops[0][1].send(&frame(source));
            net.bench.round();
            assert_eq!(net.hops[1][0].received().len(), passes, "{source} {secure}");
        }
        // Answers: the server's address is the station's once it has answered.
        let answer = |source| udp((source, 1), (B, A), (53, 1000));
        net.hops[1][0].send(&answer(2));
        net.b.send(&back(1));
        net.bench.round();
        net.hops[1][0].send(&answer(2));
        net.bench.round();
        assert_eq!(net.hops[0][1].received().len(), 1);
        for (source, passes) in [(2, 1), (1, 0), (99, 0)] {
            net.hops[0][0].send(&answer(source));
            net.bench.round();
            assert_eq!(net.a.received().len(), passes, "{source} {secure}");
        }
        assert_eq!(spoofed(&net, 0, 1), 6);
    }
}

/// Both stations are of one chain without a sending port.
#[test]
fn a_hop_mixes_no_stations() {
    let mut net = Net::new(1);
    net.chain(
        vec![transparent(0)],
        json!({"classifiers": [{"protocol": UDP}]}),
    );
    net.a.send(&there(1));
    net.b.send(&back(1));
    net.bench.round();
    net.hops
        .iter_mut()
        .flatten()
        .for_each(|port| drop(port.received()));
    for (source, ip, passes) in [(1, A, 1), (2, A, 0), (1, B, 0)] {
        net.hops[0][1].send(&udp((source, 2), (ip, B), (1000, 53)));
        net.bench.round();
        assert_eq!(net.b.received().len(), passes, "{source} {ip}");
    }
}

#[test]
fn a_hop_keeps_its_stations_when_the_chain_changes() {
    let mut net = Net::new(2);
    net.chain(vec![transparent(0)], json!({}));
    net.a.send(&there(1));
    net.bench.round();
    net.chain(vec![transparent(1), transparent(0)], json!({}));
    assert_eq!(net.relay(0, true), 1);
    net.a.send(&there(2));
    net.bench.round();
    net.chain(vec![transparent(0)], json!({}));
    assert_eq!((net.relay(1, true), net.relay(0, true)), (1, 1));
    assert_eq!(net.b.received(), [there(1), there(2)]);
}

/// Linux takes a packet to its address in a frame to all, unless it is TCP.
#[test]
fn a_client_goes_by_no_chain_with_a_frame_to_all() {
    let mut net = Net::new(1);
    let mut victim = victim(&mut net);
    net.chain(vec![transparent(0)], json!({}));
    let to = |group: Mac, ip: Ipv4Addr| packet((mac(1), group), (A, ip), (1000, 53), 0);
    let back = |group: Mac, ip: Ipv4Addr| packet((mac(2), group), (B, ip), (53, 1000), 0);
    for group in [Mac([255; 6]), Mac([1, 0, 0x5e, 0, 0, 1])] {
        net.a.send(&to(group, B));
        net.b.send(&back(group, A));
        net.bench.round();
        let got = [net.a.received(), net.b.received(), victim.received()];
        assert_eq!(got.concat(), Vec::<Vec<u8>>::new());
        // Packets to many, and those of no flow of the chain, pass as before.
        for ip in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
            net.a.send(&to(group, ip));
        }
        net.b.send(&back(group, VICTIM));
        net.bench.round();
        assert_eq!((net.b.received().len(), victim.received().len()), (2, 3));
        drop(net.a.received());
    }
    assert_eq!(net.info().counters.dropped, 4);
}

/// Linux takes a tag of priority off, however often.
#[test]
fn a_client_goes_by_no_chain_with_a_tag_of_no_vlan() {
    let mut net = Net::new(1);
    let mut open = net
        .bench
        .try_add("open", json!({"mac": mac(40), "port_security": false}))
        .unwrap();
    net.chain(
        vec![transparent(0)],
        json!({"classifiers": [{"source_port": "open", "protocol": UDP}]}),
    );
    let plain = udp((40, 2), (A, B), (1000, 53));
    let tagged = |tags: &[[u8; 4]]| [&plain[..12], &tags.concat(), &plain[12..]].concat();
    let (priority, service) = ([0x81, 0, 0xe0, 0], [0x88, 0xa8, 0, 0]);
    for tags in [&[priority][..], &[service], &[service, priority]] {
        open.send(&tagged(tags));
    }
    net.bench.round();
    assert!(net.b.received().is_empty() && net.hops[0][0].received().is_empty());
    assert_eq!(net.info().counters.dropped, 3);
    // Those of a VLAN are no packets of this segment.
    let others = [
        tagged(&[[0x81, 0, 0xe0, 1]]),
        tagged(&[priority, [0x81, 0, 15, 0xff]]),
    ];
    others.iter().for_each(|frame| open.send(frame));
    net.bench.round();
    assert_eq!(net.b.received(), others);
}

/// In a network of one's own one may have the MAC address of any station.
#[test]
fn a_chain_that_moves_to_another_segment_leaves_its_stations_there() {
    let mut net = Net::new(1);
    let values = json!({"mac": mac(99), "segment": 2, "port_security": true,
        "allowed": [{"ip": "10.0.0.1/32"}]});
    let mut twin = net.bench.try_add("twin", values).unwrap();
    let elsewhere = json!({"segment": 2, "classifiers": [{"source_port": "twin"}]});
    let mut victim = victim(&mut net);
    for n in 1..3 {
        net.chain(vec![transparent(0)], elsewhere.clone());
        twin.send(&udp((99, 2), (A, B), (1000, 53)));
        net.bench.round();
        assert_eq!(net.hops[0][0].received().len(), 1);
        net.chain(vec![transparent(0)], json!({}));
        net.hops[0][1].send(&udp((99, 2), (A, B), (1000, 53)));
        net.bench.round();
        assert_eq!((net.b.received().len(), spoofed(&net, 0, 1)), (0, n));
    }
    assert!(victim.received().is_empty());
}

/// Hosts behind the uplink would learn a station of theirs at this host.
#[test]
fn a_station_behind_an_uplink_is_sent_to_no_uplink_by_a_hop() {
    let mut net = Net::new(1);
    let mut uplink = net.bench.try_add("up", json!({})).unwrap();
    net.bench.switch.port_mut(&uplink.name).unwrap().face.learns = true;
    net.chain(vec![transparent(0)], json!({}));
    let remote = Ipv4Addr::new(10, 0, 0, 50);
    net.a.send(&udp((1, 50), (A, remote), (1000, 53)));
    uplink.send(&udp((50, 1), (remote, A), (53, 1000)));
    uplink.send(&udp((51, 2), (OTHER, B), (1, 2)));
    net.bench.round();
    let first = udp((1, 50), (A, remote), (1000, 53));
    assert_eq!(net.hops[0][0].received(), std::slice::from_ref(&first));
    let answer = udp((50, 1), (remote, A), (53, 1000));
    assert_eq!(net.hops[0][1].received(), std::slice::from_ref(&answer));
    // The hop passes on what it got, and sends the answer to other stations too.
    net.hops[0][1].send(&first);
    net.hops[0][0].send(&answer);
    for destination in [51, 98] {
        net.hops[0][0].send(&udp((50, destination), (remote, A), (53, 1000)));
    }
    net.bench.round();
    assert_eq!(
        (uplink.received(), net.a.received()),
        (vec![first], vec![answer.clone()])
    );
    assert_eq!(spoofed(&net, 0, 0), 2);
    // The hop keeps an answer. The station is silent for so long that the switch has forgotten it, and
    // the chain has not.
    uplink.send(&answer);
    net.bench.round();
    assert_eq!(net.hops[0][1].received(), std::slice::from_ref(&answer));
    net.bench.scratch.now = 301_000_000_000;
    uplink.send(&udp((51, 2), (OTHER, B), (1, 2)));
    net.bench.round();
    for destination in [50, 51, 98] {
        net.hops[0][0].send(&udp((50, destination), (remote, A), (53, 1000)));
    }
    net.hops[0][0].send(&answer);
    net.bench.round();
    assert_eq!(
        (uplink.received(), net.a.received()),
        (vec![], vec![answer])
    );
    assert_eq!(spoofed(&net, 0, 0), 5);
}

/// The instances of a NAT are on two hosts, and the server knows the public address by the MAC address of
/// the first one.
#[test]
fn an_answer_to_any_instance_comes_back_to_the_one_that_translated() {
    let mut hosts = Hosts::new(2);
    for n in 0..2 {
        let bench = &mut hosts.nets[n].bench;
        bench.allow(&format!("h{n}-out"), "192.0.2.7/32");
        bench.allow("b", "10.0.0.0/24");
    }
    let hop = json!({"pairs": [at(0, 1), at(1, 1)]});
    let classifiers = json!([{"source_port": "a", "host": "127.0.0.1",
        "senders": ["10.0.0.1/32"]}]);
    let change = json!({"nat": ["192.0.2.7/32"], "classifiers": classifiers});
    hosts.chain(vec![hop], change);
    let mut passed = [0, 0];
    for last in 100..140 {
        let server = Ipv4Addr::new(10, 0, 0, last);
        hosts.nets[0].a.send(&udp((1, 2), (A, server), (1000, 53)));
        hosts.round();
        let got = [0, 1].map(|n| hosts.nets[n].hops[0][0].received().len());
        let n = got.iter().position(|count| *count == 1).unwrap();
        let own = 11 + 2 * n as u8;
        hosts.nets[n].hops[0][1].send(&udp((own, 2), (PUBLIC, server), (5000, 53)));
        hosts.round();
        assert_eq!(hosts.nets[n].b.received().len(), 1);
        hosts.nets[0]
            .b
            .send(&udp((2, 11), (server, PUBLIC), (53, 5000)));
        hosts.round();
        let back = [0, 1].map(|n| hosts.nets[n].hops[0][1].received().len());
        assert_eq!(back, got, "{server}");
        passed[n] += 1;
    }
    assert!(passed.iter().all(|count| *count > 5), "{passed:?}");
    // To another station's MAC address no packet enters, at either host.
    for n in 0..2 {
        let mut victim = victim(&mut hosts.nets[n]);
        let foreign = udp((2, 99), (B, PUBLIC), (53, 6000));
        hosts.nets[n].b.send(&foreign);
        hosts.round();
        assert_eq!(victim.received(), [foreign]);
    }
}

#[test]
fn a_hop_of_another_host_sends_with_the_address_of_the_station_only() {
    let mut hosts = Hosts::new(2);
    let wires = [1, 0].map(|n| json!({"pairs": [at(n, 1)], "transparent": true}));
    hosts.chain(wires.into(), json!({}));
    let forged = |source| udp((source, 2), (A, B), (1000, 53));
    hosts.nets[1].hops[0][1].send(&forged(1));
    hosts.round();
    assert!(hosts.nets[0].hops[0][0].received().is_empty());
    // A hop sends no more frames than entered it.
    (1..=2).for_each(|number| hosts.nets[0].a.send(&there(number)));
    hosts.round();
    for (source, passes) in [(99, 0), (2, 0), (1, 1), (13, 1)] {
        hosts.nets[1].hops[0][1].send(&forged(source));
        hosts.round();
        assert_eq!(
            hosts.nets[0].hops[0][0].received().len(),
            passes,
            "{source}"
        );
    }
    assert_eq!(spoofed(&hosts.nets[1], 0, 1), 3);
}
