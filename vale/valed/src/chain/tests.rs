// SPDX-License-Identifier: Apache-2.0
//! Chains between two clients, with hops that pass on, translate, lie, die and come.
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use vale_proto::{ChainCounters, ChainInfo};

use super::*;
use crate::chain::Definition;
use crate::policy::guard::Guard;

#[path = "claim_tests.rs"]
mod claims;
#[path = "loop_tests.rs"]
mod loops;
#[path = "path_tests.rs"]
mod paths;
#[path = "scale_tests.rs"]
mod scaling;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);
const UDP: u8 = 17;

/// A UDP packet with a number in its payload.
fn packet(macs: (Mac, Mac), ips: (Ipv4Addr, Ipv4Addr), ports: (u16, u16), number: u32) -> Vec<u8> {
    let mut frame = [macs.1.0, macs.0.0].concat();
    frame.extend([8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, UDP, 0, 0]);
    frame.extend([ips.0.octets(), ips.1.octets()].concat());
    frame.extend(
        [
            ports.0.to_be_bytes(),
            ports.1.to_be_bytes(),
            [0, 12],
            [0, 0],
        ]
        .concat(),
    );
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// A packet of a client to the other one.
fn there(number: u32) -> Vec<u8> {
    packet((mac(1), mac(2)), (A, B), (1000, 53), number)
}

/// Its answer.
fn back(number: u32) -> Vec<u8> {
    packet((mac(2), mac(1)), (B, A), (53, 1000), number)
}

/// Two clients and some hops with two ports each; all ports have port security.
struct Net {
    bench: Bench,
    a: Guest,
    b: Guest,
    hops: Vec<[Guest; 2]>,
}

fn secure(last: u8) -> Value {
    let ip = format!("10.0.0.{last}/32");
    json!({"mac": mac(last), "port_security": true, "allowed": [{"ip": ip}]})
}

impl Bench {
    /// Lets a port use a network in addition to its own address.
    fn allow(&mut self, port: &str, network: &str) {
        let name = port.parse().unwrap();
        let mac = self.switch.port_mut(&name).unwrap().face.mac;
        let own = format!("10.0.0.{}/32", mac.unwrap().0[5]);
        let allowed = json!([{"ip": own}, {"ip": network}]);
        let allowed: Vec<_> = serde_json::from_value(allowed).unwrap();
        let mut guard = Guard::of(true, mac, &allowed);
        assert!(self.switch.set_guard(&name, &mut guard));
    }
}

impl Net {
    fn new(hops: u8) -> Self {
        let mut bench = Bench::new();
        let mut add = |name: &str, last| bench.try_add(name, secure(last)).unwrap();
        let (a, b) = (add("a", 1), add("b", 2));
        let hops = (0..hops).map(|n| {
            let side = |side: &str| format!("h{n}-{side}");
            [add(&side("in"), 10 + 2 * n), add(&side("out"), 11 + 2 * n)]
        });
        let hops = hops.collect();
        Self { bench, a, b, hops }
    }

    /// Sets the chain `web` of these hops.
    fn chain(&mut self, hops: Vec<Value>, change: Value) {
        let mut args = json!({"switch": "vale0", "chain": "web", "segment": 1,
            "classifiers": [{"source_port": "a", "protocol": UDP}], "hops": hops});
        for (key, value) in change.as_object().unwrap() {
            args[key] = value.clone();
        }
        let set: ChainSet = serde_json::from_value(args).unwrap();
        set.check().unwrap();
        self.bench
            .switch
            .set_chain(Definition::new(set, None))
            .unwrap();
    }

    /// The hop takes all frames on one side and sends them on the other.
    fn relay(&mut self, hop: usize, forward: bool) -> usize {
        let [ingress, egress] = &mut self.hops[hop];
        let (from, to) = if forward {
            (ingress, egress)
        } else {
            (egress, ingress)
        };
        let frames = from.received();
        frames.iter().for_each(|frame| to.send(frame));
        self.bench.round();
        frames.len()
    }

    fn info(&self) -> ChainInfo {
        self.bench.switch.chains().next().unwrap()
    }

    fn set_link(&mut self, port: &str, up: bool) {
        let port = self.bench.switch.port_mut(&port.parse().unwrap());
        port.unwrap().face.link_up = up;
        self.bench.switch.resolve();
    }
}

fn pair(hop: usize, weight: u16) -> Value {
    json!({"ingress": format!("h{hop}-in"), "egress": format!("h{hop}-out"), "weight": weight})
}

fn transparent(hop: usize) -> Value {
    json!({"pairs": [pair(hop, 1)], "transparent": true})
}

#[test]
fn packets_pass_all_hops_in_order_and_answers_the_other_way() {
    for count in [1, 2, 3, 9, 20] {
        let mut net = Net::new(count);
        net.chain((0..count.into()).map(transparent).collect(), json!({}));
        net.a.send(&there(7));
        net.bench.round();
        for hop in 0..count.into() {
            assert!(net.b.received().is_empty());
            assert_eq!(net.relay(hop, true), 1, "hop {hop} of {count}");
        }
        assert_eq!(net.b.received(), [there(7)]);
        net.b.send(&back(8));
        net.bench.round();
        for hop in (0..count.into()).rev() {
            assert_eq!(net.relay(hop, false), 1, "hop {hop} of {count}");
        }
        assert_eq!(net.a.received(), [back(8)]);
        let info = net.info();
        let both = ChainCounters {
            packets: 2,
            bytes: 120,
            dropped: 0,
            looped: 0,
        };
        assert_eq!(
            (info.counters, info.hop_counters),
            (both, vec![both; count.into()])
        );
    }
}

#[test]
fn other_traffic_goes_straight() {
    let mut net = Net::new(1);
    net.chain(vec![transparent(0)], json!({"classifiers": [
        {"source": "10.0.0.1/32", "protocol": UDP, "destination_ports": {"first": 53, "last": 53}}]}));
    let other = packet((mac(1), mac(2)), (A, B), (1000, 54), 1);
    let mut tcp = there(2);
    tcp[23] = 6;
    let (segment, broadcast) = (frame(mac(2), mac(1), 60), frame(Mac([255; 6]), mac(1), 60));
    net.a.send(&other);
    net.a.send(&tcp);
    net.bench.round();
    assert_eq!(net.b.received(), [other, tcp]);
    // port security refuses these two, with a chain as without
    net.a.send(&segment);
    net.a.send(&broadcast);
    net.bench.round();
    assert_eq!(net.bench.counters(&net.a).dropped_type, 2);
    assert_eq!(net.relay(0, true), 0);
}

#[test]
fn transparent_hops_make_no_storm() {
    let mut net = Net::new(1);
    net.chain(vec![transparent(0)], json!({}));
    let mut request = frame(Mac([255; 6]), mac(1), 60);
    request[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    request[22..32].copy_from_slice(&[2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    net.a.send(&request);
    net.bench.round();
    assert_eq!(net.b.received(), [request]);
    assert_eq!(net.relay(0, true) + net.relay(0, false), 0);
    // Nor do their own frames go anywhere.
    let own = packet(
        (mac(11), mac(2)),
        (Ipv4Addr::new(10, 0, 0, 11), B),
        (5, 6),
        4,
    );
    net.hops[0][1].send(&own);
    net.bench.round();
    assert!(net.b.received().is_empty());
    assert_eq!(net.bench.counters(&net.hops[0][1]).dropped_unknown, 1);
}

#[test]
fn wires_outside_a_chain_make_no_storm() {
    let mut net = Net::new(0);
    for n in 0..2 {
        let mut side = |last| {
            let values = json!({"mac": mac(last), "port_security": false});
            net.bench.try_add(&format!("w{last}"), values).unwrap()
        };
        net.hops.push([side(10 + 2 * n), side(11 + 2 * n)]);
    }
    let mut request = frame(Mac([255; 6]), mac(1), 60);
    request[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    request[22..32].copy_from_slice(&[2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    net.a.send(&request);
    net.bench.round();
    // Each wire gets the request at both ends, and sends it back from both.
    for hop in [0, 1] {
        assert_eq!(net.relay(hop, true) + net.relay(hop, false), 2);
        let ends: u64 = net.hops[hop]
            .iter()
            .map(|end| net.bench.counters(end).dropped_loop)
            .sum();
        assert_eq!(ends, 2);
        assert_eq!(net.relay(hop, true) + net.relay(hop, false), 0);
    }
    assert_eq!(net.b.received(), [request]);
    assert!(net.a.received().is_empty());
}

#[test]
fn a_routed_hop_gets_its_own_address() {
    let mut net = Net::new(1);
    net.chain(vec![json!({"pairs": [pair(0, 1)]})], json!({}));
    net.a.send(&there(1));
    net.bench.round();
    let at_hop = packet((mac(1), mac(10)), (A, B), (1000, 53), 1);
    assert_eq!(net.hops[0][0].received(), [at_hop]);
    let routed = packet((mac(11), mac(2)), (A, B), (1000, 53), 1);
    net.hops[0][1].send(&routed);
    net.bench.round();
    assert_eq!(net.b.received(), [routed]);
}

#[test]
fn a_hostile_hop_sends_only_packets_of_its_chain() {
    let mut net = Net::new(2);
    net.chain(vec![json!({"pairs": [pair(0, 1)]})], json!({}));
    let hostile = [
        packet((mac(1), mac(2)), (OTHER, B), (1000, 53), 1), // a source the client may not use
        packet((mac(99), mac(1)), (OTHER, A), (53, 1000), 2), // by its egress, as an answer
        frame(mac(2), mac(1), 60),                           // no IP
    ];
    for frame in &hostile {
        net.hops[0][1].send(frame);
    }
    // The second hop is in no chain.
    net.hops[1][1].send(&there(3));
    net.bench.round();
    assert!(net.b.received().is_empty() && net.a.received().is_empty());
    let [first, second] = [0, 1].map(|n| net.bench.counters(&net.hops[n][1]));
    assert_eq!((first.dropped_spoof, second.dropped_spoof), (3, 1));
    // Its own traffic passes as before, and enters no chain.
    let own = packet(
        (mac(11), mac(2)),
        (Ipv4Addr::new(10, 0, 0, 11), B),
        (5, 6),
        4,
    );
    net.hops[0][1].send(&own);
    net.bench.round();
    assert_eq!(
        (net.b.received(), net.info().counters.packets),
        (vec![own], 0)
    );
}

#[test]
fn a_hop_without_a_live_pair_blocks_or_is_passed_by() {
    for (policy, arrives) in [("block", false), ("bypass", true)] {
        let mut net = Net::new(2);
        let mut hop = transparent(0);
        hop["on_failure"] = policy.into();
        net.chain(vec![hop, transparent(1)], json!({}));
        net.set_link("h0-out", false);
        assert_eq!(net.info().live_pairs, [0, 1]);
        net.a.send(&there(1));
        net.bench.round();
        assert_eq!(net.relay(1, true), usize::from(arrives), "{policy}");
        assert_eq!(net.info().counters.dropped, u64::from(!arrives));
        let removed = net.bench.switch.remove(&"h1-in".parse().unwrap());
        assert!(removed.is_some());
        net.a.send(&there(2));
        net.bench.round();
        assert_eq!(net.info().counters.dropped, 2 - u64::from(arrives));
        net.set_link("h0-out", true);
        net.a.send(&there(3));
        net.bench.round();
        assert_eq!(net.hops[0][0].received(), [there(3)]);
    }
}

#[test]
fn flows_spread_by_weight_and_answers_find_the_same_instance() {
    let mut net = Net::new(3);
    let pairs = json!([pair(0, 1), pair(1, 2), pair(2, 1)]);
    net.chain(
        vec![json!({"pairs": pairs, "transparent": true})],
        json!({}),
    );
    let mut instance = BTreeMap::new();
    let take = |net: &mut Net, side: usize| {
        let mut hops = net.hops.iter_mut().enumerate();
        hops.find_map(|(n, hop)| (!hop[side].received().is_empty()).then_some(n))
            .unwrap()
    };
    for port in 1001..=1400 {
        net.a.send(&packet((mac(1), mac(2)), (A, B), (port, 53), 0));
        net.bench.round();
        let there = take(&mut net, 0);
        net.b.send(&packet((mac(2), mac(1)), (B, A), (53, port), 0));
        net.bench.round();
        assert_eq!(take(&mut net, 1), there, "port {port}");
        instance.insert(port, there);
    }
    let of = |n| instance.values().filter(|found| **found == n).count();
    let counts = [of(0), of(1), of(2)];
    assert!(
        (60..150).contains(&counts[0]) && (140..260).contains(&counts[1]),
        "{counts:?}"
    );
    // When an instance dies only its flows move.
    net.set_link("h0-in", false);
    for (port, before) in instance {
        net.a.send(&packet((mac(1), mac(2)), (A, B), (port, 53), 0));
        net.bench.round();
        let now = take(&mut net, 0);
        assert!(now != 0 && (before == 0 || now == before), "port {port}");
    }
}

#[test]
fn hops_come_and_go_without_loss() {
    let mut net = Net::new(3);
    let orders: [&[usize]; 5] = [&[0], &[0, 1], &[2, 0, 1], &[1, 2], &[1]];
    let mut number = 0;
    for round in 0..24 {
        let order = orders[round % orders.len()];
        for _ in 0..10 {
            number += 1;
            net.a.send(&there(number));
        }
        net.bench.round();
        // Packets are inside of hops when the chain changes.
        net.chain(
            order.iter().map(|hop| transparent(*hop)).collect(),
            json!({}),
        );
        for hop in [0, 1, 2, 0, 1, 2, 0, 1, 2] {
            net.relay(hop, true);
        }
        let mut arrived: Vec<_> = net.b.received().iter().map(|f| f[45]).collect();
        arrived.sort_unstable();
        let sent: Vec<_> = (number - 9..=number).map(|n| n as u8).collect();
        assert_eq!(arrived, sent, "round {round}");
    }
}

#[test]
fn fragments_cannot_pass_by() {
    let mut net = Net::new(1);
    let classifier = json!([{"source_port": "a", "protocol": UDP,
        "destination_ports": {"first": 53, "last": 53}}]);
    net.chain(vec![transparent(0)], json!({"classifiers": classifier}));
    let mut later = there(1);
    (later[20], later[21]) = (0x20, 3); // more fragments, at offset 24
    net.a.send(&later);
    net.bench.round();
    assert_eq!((net.relay(0, true), net.b.received()), (1, vec![later]));
}

#[test]
fn a_hop_may_translate_sources_that_the_chain_declares() {
    let nat = Ipv4Addr::new(192, 0, 2, 7);
    let mut net = Net::new(2);
    net.bench.allow("h0-out", "192.0.2.7/32");
    let hops = vec![json!({"pairs": [pair(0, 1)]}), transparent(1)];
    net.chain(hops, json!({"nat": ["192.0.2.7/32"]}));
    net.a.send(&there(1));
    net.bench.round();
    assert_eq!(net.hops[0][0].received().len(), 1);
    let translated = packet((mac(11), mac(2)), (nat, B), (5000, 53), 1);
    net.hops[0][1].send(&translated);
    net.bench.round();
    assert_eq!(
        (net.relay(1, true), net.b.received()),
        (1, vec![translated])
    );
    let answer = packet((mac(2), mac(11)), (B, nat), (53, 5000), 2);
    net.b.send(&answer);
    net.bench.round();
    assert_eq!(net.relay(1, false), 1);
    assert_eq!(net.hops[0][1].received(), [answer]);
    let restored = packet((mac(10), mac(1)), (B, A), (53, 1000), 2);
    net.hops[0][0].send(&restored);
    net.bench.round();
    assert_eq!(net.a.received(), [restored]);
}

/// Instances of a NAT that share a public address, and a server that has a network of addresses.
struct SharedNat {
    net: Net,
    server: Guest,
}

impl SharedNat {
    const PUBLIC: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    fn new(hops: u8) -> Self {
        let mut net = Net::new(hops);
        (0..hops).for_each(|n| net.bench.allow(&format!("h{n}-out"), "192.0.2.7/32"));
        let server = json!({"mac": mac(99), "port_security": true,
            "allowed": [{"ip": "10.0.1.0/24"}]});
        let server = net.bench.try_add("server", server).unwrap();
        Self { net, server }
    }

    fn chain(&mut self, instances: &[usize], protocol: u8) {
        let pairs: Vec<_> = instances.iter().map(|n| pair(*n, 1)).collect();
        let change = json!({"nat": ["192.0.2.7/32"],
            "classifiers": [{"source_port": "a", "protocol": protocol},
                {"source_port": "a", "protocol": 1}]});
        self.net.chain(vec![json!({"pairs": pairs})], change);
    }

    /// The instances that a packet to one of the server's addresses and its answer pass. The server knows
    /// the public address by the MAC address of any instance, even one that is gone.
    fn pass(
        &mut self,
        server: u8,
        port: u16,
        change: impl Fn(Vec<u8>, bool) -> Vec<u8>,
    ) -> [usize; 2] {
        let server = Ipv4Addr::new(10, 0, 1, server);
        let frame = packet((mac(1), mac(99)), (A, server), (port, 53), 0);
        self.net.a.send(&change(frame, true));
        self.net.bench.round();
        let translated = self.receiver(0);
        let macs = (mac(11 + 2 * translated as u8), mac(99));
        let frame = packet(macs, (Self::PUBLIC, server), (port, 53), 0);
        self.net.hops[translated][1].send(&change(frame, true));
        self.net.bench.round();
        assert_eq!(self.server.received().len(), 1);
        let frame = packet((mac(99), mac(11)), (server, Self::PUBLIC), (53, port), 0);
        self.server.send(&change(frame, false));
        self.net.bench.round();
        [translated, self.receiver(1)]
    }

    /// The instance that gets an error of a router on the way, about a packet to a server's address.
    fn error(&mut self, server: u8) -> usize {
        let server = Ipv4Addr::new(10, 0, 1, server);
        let router = Ipv4Addr::new(10, 0, 1, 250);
        let about = (Self::PUBLIC, server);
        let about = packet((mac(11), mac(99)), about, (1000, 53), 0);
        let to = (mac(99), mac(11));
        let mut frame = packet(to, (router, Self::PUBLIC), (0, 0), 0);
        frame.truncate(34);
        frame.extend([3, 4, 0, 0, 0, 0, 0, 0]);
        frame.extend(&about[14..42]);
        (frame[17], frame[23]) = (56, 1);
        self.server.send(&frame);
        self.net.bench.round();
        self.receiver(1)
    }

    /// The only instance that got a frame by this port of its pair.
    fn receiver(&mut self, port: usize) -> usize {
        let got = self
            .net
            .hops
            .iter_mut()
            .map(|hop| hop[port].received().len());
        let got: Vec<_> = got.collect();
        assert_eq!(got.iter().sum::<usize>(), 1, "{got:?}");
        got.iter().position(|n| *n == 1).unwrap()
    }
}

#[test]
fn answers_to_a_shared_address_find_the_instance_that_translated() {
    let mut nat = SharedNat::new(3);
    nat.chain(&[0, 1, 2], UDP);
    let mut passed = [0; 3];
    for server in 1..=120 {
        let [there, back] = nat.pass(server, 1000, |frame, _| frame);
        assert_eq!(there, back, "server {server}");
        assert_eq!(nat.error(server), there, "server {server}");
        passed[there] += 1;
    }
    assert!(passed.iter().all(|n| *n > 15), "{passed:?}");
}

#[test]
fn a_switch_has_a_limit_of_chains() {
    let mut net = Net::new(1);
    let set = |n: usize| -> ChainSet {
        serde_json::from_value(
            json!({"switch": "vale0", "chain": format!("c{n}"), "segment": 1,
            "classifiers": [{}], "hops": [transparent(0)]}),
        )
        .unwrap()
    };
    for n in 0..vale_proto::MAX_CHAINS {
        net.bench
            .switch
            .set_chain(Definition::new(set(n), None))
            .unwrap();
    }
    assert_eq!(
        net.bench.switch.set_chain(Definition::new(set(64), None)),
        Err(SetError::TooMany)
    );
    assert_eq!(
        net.bench.switch.set_chain(Definition::new(set(3), None)),
        Ok(())
    );
    net.bench.switch.remove_chain(&"c3".parse().unwrap());
    assert_eq!(
        net.bench.switch.set_chain(Definition::new(set(64), None)),
        Ok(())
    );
}
